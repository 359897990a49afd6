/**
 * The program of `svc witness` by itself: it is to be small, and whatever else `main.ts` can load
 * would be read with it. @module
 */
import { runCommand } from "./run_command.ts";
import { witness } from "./witness.ts";

if (import.meta.main) {
  const [name, ...args] = Deno.args;
  Deno.exit(await runCommand(name, () => witness(args)));
}
