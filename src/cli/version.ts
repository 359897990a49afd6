import { VERSION } from "../version.ts";
import { readOptions } from "./options.ts";

const HELP = `svc version

Prints the version of svc, of Deno and of V8, and the target it was built for.`;

/** `svc version`; returns the exit code. */
// deno-lint-ignore require-await -- a command like the others
export async function version(args: string[]): Promise<number> {
  const options = readOptions("version", HELP, args, {});
  if (typeof options === "number") return options;
  const { deno, v8 } = Deno.version;
  console.log(`svc ${VERSION} (Deno ${deno}, V8 ${v8}, ${Deno.build.target})`);
  return 0;
}
