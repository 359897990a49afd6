import { openApiDocument } from "../api/mod.ts";
import { readOptions } from "./options.ts";

const HELP = `svc openapi

Prints the OpenAPI 3.1 document of the management API, as GET /api/v1/openapi.json answers it.`;

/** `svc openapi`; returns the exit code. */
// deno-lint-ignore require-await -- a command like the others
export async function openapi(args: string[]): Promise<number> {
  const options = readOptions("openapi", HELP, args, {});
  if (typeof options === "number") return options;
  console.log(JSON.stringify(openApiDocument(), null, 2));
  return 0;
}
