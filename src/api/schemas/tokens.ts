import * as z from "zod";
import { CREDENTIAL_PREFIX, CREDENTIAL_SPECS } from "../../model/mod.ts";
import { answer, EXAMPLE_TIME, request, timestamp } from "./common.ts";
import { envelope, exampleHead } from "./resources.ts";

const EXAMPLE = {
  name: "Home Assistant",
  role: "viewer",
  expires_at: "2027-01-02T00:00:00.000Z",
} as const;

export const TokenBody = request("TokenBody", CREDENTIAL_SPECS.tokens, EXAMPLE);
const TokenSpec = answer("TokenSpec", CREDENTIAL_SPECS.tokens, EXAMPLE);

const last_used_at = timestamp.nullable().describe(
  "to the minute, on the node that is asked; null: never, as far as it knows",
);
const EXAMPLE_TOKEN = {
  ...exampleHead(CREDENTIAL_PREFIX.tokens),
  spec: EXAMPLE,
  last_used_at: EXAMPLE_TIME,
};
export const Token = answer("Token", envelope(TokenSpec).extend({ last_used_at }), EXAMPLE_TOKEN);
export type Token = z.infer<typeof Token>;
export const TokenCollection = answer(
  "TokenCollection",
  z.object({ items: z.array(Token).describe("oldest first, those that have ended as well") }),
  { items: [EXAMPLE_TOKEN] },
);
export const NewToken = answer(
  "NewToken",
  Token.extend({
    token: z.string().describe(
      "what is sent as Bearer: svc_ and 64 hexadecimal digits; shown this once",
    ),
  }),
  { ...EXAMPLE_TOKEN, last_used_at: null, token: `svc_${"0123456789abcdef".repeat(4)}` },
);
export type NewToken = z.infer<typeof NewToken>;
