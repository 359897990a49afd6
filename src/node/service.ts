import { formatHostPort } from "../addr/mod.ts";
import type { Config } from "../config/mod.ts";
import { log } from "../log.ts";
import {
  openHost,
  raiseFileLimit,
  returnLargeAllocations,
  setTimeSlice,
  stepHelpersBack,
  TimeSlice,
} from "../native/mod.ts";
import type { Legacy } from "../process/mod.ts";
import { VERSION } from "../version.ts";
import { Node } from "./node.ts";
import { notBuilt } from "./not_built.ts";
import { fileLimitWarning } from "./open_files.ts";
import { secondStage } from "./second_stage.ts";
import { Signals } from "./signals.ts";

/** Permissions that no part of a running service asks for. */
const UNUSED = ["run", "env", "import"] as const;

/** How a service comes to run. */
export interface ServiceStart {
  /** What stage 1 left; `null`: there was none, as the C library can't be had. */
  readonly legacy: Legacy | null;
  /** Where a configuration was looked for in vain, where it is of built-in defaults. */
  readonly missingFile: string | null;
}

/**
 * Runs a node in this process until a signal asks for its end.
 *
 * @throws {SvcError} With what keeps the node from starting.
 */
export async function runService(
  config: Config,
  { legacy, missingFile }: ServiceStart,
): Promise<void> {
  const host = openHost();
  if (host !== null) {
    returnLargeAllocations(host); // Before anything large is allocated.
    setTimeSlice(host, TimeSlice.Request);
    stepHelpersBack(host);
  }
  const signals = new Signals();
  const files = host === null ? null : raiseFileLimit(host);
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
  const stage = secondStage(config, legacy);
  if (config.security.sandbox) {
    for (const name of UNUSED) Deno.permissions.revokeSync({ name });
  }
  const node = await Node.open(config, files, stage);
  await node.start();
  signals.onHangup = () => node.reload();
  const signal = await signals.stop;
  log.info("stopping", { signal });
  signals.onHangup = () => {};
  await node.stop();
  log.info("stopped");
}
