import { newToken, tokenSha256 } from "../auth/mod.ts";
import { readOptions } from "./options.ts";

const HELP = `svc token

Prints a new token for the API, and the line for [api] in the configuration file that makes it valid.
The token is kept nowhere: the line holds its SHA-256. Send it as "Authorization: Bearer TOKEN".

  --help  this text`;

/** `svc token`; returns the exit code. */
// deno-lint-ignore require-await -- a command like the others
export async function token(args: string[]): Promise<number> {
  const options = readOptions("token", HELP, args, {});
  if (typeof options === "number") return options;
  const made = newToken();
  console.log(made);
  console.log(`token_sha256 = "${tokenSha256(made)}"`);
  return 0;
}
