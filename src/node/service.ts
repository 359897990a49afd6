import { formatHostPort } from "../addr/mod.ts";
import type { Config } from "../config/mod.ts";
import { log } from "../log.ts";
import {
  openNative,
  raiseFileLimit,
  returnLargeAllocations,
  stepHelpersBack,
  takeTurns,
  Turn,
} from "../native/mod.ts";
import { VERSION } from "../version.ts";
import { Node } from "./node.ts";
import { notBuilt } from "./not_built.ts";
import { fileLimitWarning } from "./open_files.ts";
import { Signals } from "./signals.ts";

/**
 * Runs a node in this process until a signal asks for its end. `missingFile` is where a configuration
 * was looked for in vain, where this one is of built-in defaults.
 *
 * @throws {SvcError} With what keeps the node from starting.
 */
export async function runService(config: Config, missingFile: string | null): Promise<void> {
  const native = openNative();
  if (native !== null) {
    returnLargeAllocations(native); // Before anything large is allocated.
    takeTurns(native, Turn.Request);
    stepHelpersBack(native);
  }
  const signals = new Signals();
  const files = native === null ? null : raiseFileLimit(native);
  log.info("starting", {
    version: VERSION,
    deno: Deno.version.deno,
    ...(files !== null && { openFiles: files.soft }),
  });
  const tooFewFiles = fileLimitWarning(config, files);
  if (tooFewFiles !== null) log.warn(tooFewFiles);
  if (missingFile !== null) {
    log.info("no configuration file: built-in defaults", { looked: missingFile });
  }
  const missing = notBuilt(config);
  if (missing.length > 0) log.warn("not built yet, and so not in force", { keys: missing });
  const { listen, tls } = config.server;
  if (tls.requireClientId && listen.length > 0) {
    log.warn("plain DNS gets no answers: server.tls.require_client_id asks for a client ID", {
      listen: listen.map(formatHostPort),
    });
  }
  const node = await Node.open(config, files);
  await node.start();
  signals.onHangup = () => node.reload();
  const signal = await signals.stop;
  log.info("stopping", { signal });
  signals.onHangup = () => {};
  await node.stop();
  log.info("stopped");
}
