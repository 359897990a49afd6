/**
 * The program of `svc vrrp` by itself: it is to be small, and goes on as a next one within the time
 * that the other node waits. @module
 */
import { runCommand } from "./run_command.ts";
import { vrrp } from "./vrrp.ts";

if (import.meta.main) {
  const [name, ...args] = Deno.args;
  Deno.exit(await runCommand(name, () => vrrp(args)));
}
