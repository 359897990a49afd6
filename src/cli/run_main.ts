/**
 * The program of `svc run` by itself, for the sake of its start: the runtime reads all that literal
 * imports name, then or later, before the first line runs, and whoever begins here goes through that
 * twice. So stage 1 names what it needs, and the service is named where it is reached. @module
 */
import { beginRun } from "./begin_run.ts";
import { runCommand } from "./run_command.ts";
import type * as Service from "./run.ts";

/** By its URL: a literal import would be read; see above. */
const SERVICE = new URL("./run.ts", import.meta.url).href;

if (import.meta.main) {
  const [name, ...args] = Deno.args;
  const code = await runCommand(name, async () => {
    const begun = await beginRun(args);
    if (typeof begun === "number") return begun;
    const { serve }: typeof Service = await import(SERVICE);
    return await serve(begun);
  });
  Deno.exit(code);
}
