import {
  decodeRulesBatch,
  type Envelope,
  ID_PREFIX,
  RulesBatch,
  type SpecOf,
} from "../../model/mod.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { RulesBatchAnswer } from "../schemas/resources.ts";
import { change, specOf } from "./resources.ts";

export const rulesBatchEndpoints: readonly Endpoint[] = [
  endpoint("POST /api/v1/rules/batch", {
    operationId: "changeRules",
    tag: "rules",
    summary: "Add and remove up to 10,000 rules in one change: all of it or nothing",
    need: "admin",
    body: RulesBatch,
    decode: (json) => specOf(decodeRulesBatch(json)),
    answer: RulesBatchAnswer,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async (call) => {
      const { body: { add, remove }, deps: { newId } } = call;
      if (add.length + remove.length === 0) return { body: { added: [], removed: 0 } };
      const rules = add.map((spec) => ({ id: newId(ID_PREFIX.rules), spec }));
      const added = await change(call, { type: "rules_batch", add: rules, remove });
      return {
        body: {
          added: added as readonly Envelope<SpecOf<"rules">>[],
          removed: remove.length,
        },
      };
    },
  }),
];
