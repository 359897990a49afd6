import * as z from "zod";
import { answer, count, EXAMPLE_DIGITS, type Shown, timestamp } from "./common.ts";
import { ProblemItem } from "./node.ts";

/** The data of an event `change`. */
export const ChangeEvent = answer(
  "ChangeEvent",
  z.object({
    type: z.string().describe("as in the audit log: rule, list, group, client, settings, user, …"),
    id: z.string().nullable()
      .describe("of the resource; null: there is one only, or many were changed: read all of them"),
    revision: z.int().nullable().describe("of the resource now; null: it is gone, or one of many"),
  }),
  { type: "rule", id: `ru_${EXAMPLE_DIGITS}`, revision: 3 },
);
export type ChangeEvent = Shown<z.infer<typeof ChangeEvent>>;

/** The data of an event `status`. */
export const StatusEvent = answer(
  "StatusEvent",
  z.object({
    version: z.string().describe("of the program"),
    status: z.enum(["ok", "degraded"]).describe("as GET health says it"),
    protection: z.boolean().describe("the setting: false filters for nobody"),
    paused_until: timestamp.nullable().describe("until when this node filters nothing"),
    problem_items: z.array(ProblemItem).describe("as in the status"),
    generation: count.describe("grows with each change that is in force"),
    writable: z.boolean().describe("whether changes can be made through this node"),
  }),
  {
    version: "0.7.0",
    status: "ok",
    protection: true,
    paused_until: null,
    problem_items: [],
    generation: 7,
    writable: true,
  },
);
export type StatusEvent = Shown<z.infer<typeof StatusEvent>>;
