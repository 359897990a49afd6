/**
 * `svc` with an isolate in it that is hostile: what answers DNS may do as much, and so may who takes
 * it over. Beside it one as who compiles lists. Both log how each attempt ended. For the test of the
 * sandbox; no release holds this file.
 */
import { main } from "../../src/cli/mod.ts";
import { log } from "../../src/log.ts";
import { SCOPES } from "../../src/isolate/mod.ts";

function release(permissions: Deno.PermissionOptions, attempts: string): void {
  const url = new URL("./hostile_worker.ts", import.meta.url);
  const worker = new Worker(url, { type: "module", name: attempts, deno: { permissions } });
  worker.onmessage = ({ data }) => log.info("attempted", { attempts, ...data });
  worker.postMessage({ attempts, directory: Deno.args[2].replace(/\/[^/]*$/, "") });
}

/** Whoever stage 1 executes is told of it here; FFI reads the variable without the right to. */
function isSecondStage(): boolean {
  const { symbols } = Deno.dlopen("libc.so.6", {
    getenv: { parameters: ["buffer"], result: "pointer" },
  });
  return symbols.getenv(new TextEncoder().encode("SVC_INHERITED\0")) !== null;
}

if (import.meta.main) {
  if (isSecondStage()) {
    release(SCOPES.dns(), "calls");
    release(SCOPES.compile(), "runtime");
  }
  Deno.exit(await main(Deno.args));
}
