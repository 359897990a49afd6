import { checkNewToken, newToken, tokenSha256 } from "../../auth/mod.ts";
import { SvcError } from "../../errors.ts";
import { type Credential, CREDENTIAL_PREFIX, findNameProblem, shownText } from "../../model/mod.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import type { ApiDeps } from "../ports.ts";
import { NewToken, Token, TokenBody, TokenCollection } from "../schemas/tokens.ts";
import { change } from "./resources.ts";

const PATH = "/api/v1/tokens";

/** A token as the API shows it: without what it is known by. */
function shownToken(
  { tokenUses }: ApiDeps,
  { id, revision, created_at, updated_at, spec }: Credential<"tokens">,
): Token {
  const usedMs = tokenUses.lastUsedMs(id);
  const last_used_at = usedMs === null ? null : new Date(usedMs).toISOString();
  return { id, revision, created_at, updated_at, spec, last_used_at };
}

/** @throws {SvcError} `invalid` */
export function checkName(name: string): void {
  const problem = findNameProblem(name);
  if (problem !== null) throw new SvcError("invalid", `name: ${problem}`);
}

export const tokenEndpoints: readonly Endpoint[] = [
  endpoint(`POST ${PATH}`, {
    operationId: "createToken",
    hasSecrets: true,
    tag: "tokens",
    summary: "Make a token; what it is sent as is shown this once",
    need: "admin",
    body: TokenBody,
    status: 201,
    answer: NewToken,
    hasEtag: true,
    errors: ["conflict", "unavailable"],
    handle: async (call) => {
      const { body: spec, caller, deps } = call;
      checkName(spec.name);
      checkNewToken(spec, caller, deps.clock.nowMs());
      const token = newToken();
      const made = await change(call, {
        type: "credential_create",
        kind: "tokens",
        id: deps.newId(CREDENTIAL_PREFIX.tokens),
        spec,
        secret: { sha256: tokenSha256(token) },
      }) as Credential<"tokens">;
      return {
        body: { ...shownToken(deps, made), token },
        revision: made.revision,
        location: `${PATH}/${made.id}`,
      };
    },
  }),
  endpoint(`GET ${PATH}`, {
    operationId: "listTokens",
    tag: "tokens",
    summary: "Every token, oldest first",
    need: "viewer",
    answer: TokenCollection,
    handle: ({ deps }) => {
      const { tokens } = deps.replicator.state.credentials;
      return { body: { items: Array.from(tokens.values(), (one) => shownToken(deps, one)) } };
    },
  }),
  endpoint(`GET ${PATH}/{id}`, {
    operationId: "getToken",
    tag: "tokens",
    summary: "One token",
    need: "viewer",
    answer: Token,
    hasEtag: true,
    errors: ["not_found"],
    handle: ({ deps, param }) => {
      const one = deps.replicator.state.credentials.tokens.get(param);
      if (one === undefined) {
        throw new SvcError("not_found", `${shownText(param)}: there is no such token`);
      }
      return { body: shownToken(deps, one), revision: one.revision };
    },
  }),
  endpoint(`PUT ${PATH}/{id}`, {
    operationId: "replaceToken",
    tag: "tokens",
    summary: "Give a token another name, role or end",
    need: "admin",
    body: TokenBody,
    takesIfMatch: true,
    answer: Token,
    hasEtag: true,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async (call) => {
      const { body: spec, caller, deps, param: id, ifMatch } = call;
      checkName(spec.name);
      checkNewToken(spec, caller, deps.clock.nowMs());
      const made = await change(call, {
        ...{ type: "credential_replace", kind: "tokens", id, ifMatch, spec, secret: {} },
      }) as Credential<"tokens">;
      return { body: shownToken(deps, made), revision: made.revision };
    },
  }),
  endpoint(`DELETE ${PATH}/{id}`, {
    operationId: "deleteToken",
    tag: "tokens",
    summary: "Revoke a token: on every node, and with it the streams that it opened",
    need: "admin",
    takesIfMatch: true,
    errors: ["conflict", "not_found", "unavailable"],
    handle: async (call) => {
      const { param: id, ifMatch } = call;
      await change(call, { type: "credential_delete", kind: "tokens", id, ifMatch });
      return {};
    },
  }),
];
