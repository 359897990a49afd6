import { readOptions } from "./options.ts";

/** This release; `deno.json` says the same, and a test holds them together. */
export const VERSION = "0.7.0";
/**
 * A day on which this release was made, in milliseconds since 1970: no right clock is before it. A
 * test wants it to be no older than the newest version in the changelog that has a date.
 */
export const RELEASED_MS: number = Date.UTC(2026, 10, 20);

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
