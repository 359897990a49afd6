import { formatHostPort } from "../addr/mod.ts";
import type { Config } from "../config/mod.ts";
import { log } from "../log.ts";
import {
  anonymousBytes,
  dropCode,
  openHost,
  raiseFileLimit,
  returnFreeAllocations,
  returnLargeAllocations,
  setTimeSlice,
  stepHelpersBack,
  TimeSlice,
} from "../native/mod.ts";
import type { Legacy, Notifier } from "../process/mod.ts";
import { FreeMemory, giveBackHeap } from "../free_memory.ts";
import { VERSION } from "../version.ts";
import { Node } from "./node.ts";
import { fileLimitWarning } from "./open_files.ts";
import { type SecondStage, secondStage } from "./second_stage.ts";
import { Signals } from "./signals.ts";
import { feedWatchdog, findSupervisor } from "./supervised.ts";
import { TakeOver } from "./take_over.ts";
import { Upgrade } from "./upgrade.ts";

/** Permissions that no part of a running service asks for. */
const UNUSED = ["run", "env", "import"] as const;

/** How often memory is looked at, and what change of it is worth giving back. */
const MEMORY_LOOK_MS = 5_000;
const MEMORY_CHANGE_BYTES_MIN = 8 * 1024 * 1024;

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
    // Code comes and goes with what is done, and is no growth.
    const memory = new FreeMemory(() => anonymousBytes(host) ?? Deno.memoryUsage().rss, () => {
      giveBackHeap();
      returnFreeAllocations(host);
      dropCode(host);
    }, MEMORY_CHANGE_BYTES_MIN);
    Deno.unrefTimer(setInterval(() => memory.look(), MEMORY_LOOK_MS));
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
  const { listen, tls } = config.server;
  if (tls.requireClientId && listen.length > 0) {
    log.warn("plain DNS gets no answers: server.tls.require_client_id asks for a client ID", {
      listen: listen.map(formatHostPort),
    });
  }
  if (config.security.sandbox) {
    for (const name of UNUSED) Deno.permissions.revokeSync({ name });
  }
  const takeOver = TakeOver.of(legacy);
  try {
    const stage = secondStage(config, legacy);
    const former = await takeOver?.begin() ?? null;
    const node = await Node.open(config, files, stage, former);
    await node.start(takeOver);
    await live(node, stage, signals, findSupervisor());
  } catch (error) {
    takeOver?.fail(error); // Heard by nobody once the former program is gone.
    throw error;
  }
}

/** Until a signal asks for the end, or the next program answers. */
async function live(
  node: Node,
  stage: SecondStage,
  signals: Signals,
  supervisor: Notifier | null,
): Promise<void> {
  const handedOver = Promise.withResolvers<"SIGUSR2">();
  const upgrade = new Upgrade({
    node,
    stage,
    onReady: (pid) => supervisor?.handedOver(pid),
  });
  let upgrading: Promise<void> = Promise.resolve();
  node.problems.watch("upgrade", () => upgrade.problems);
  supervisor?.ready();
  const endWatchdog = await feedWatchdog(supervisor, node.listening);
  signals.reload.onWish = () => {
    supervisor?.reloading();
    void node.reload().then(() => supervisor?.ready());
  };
  signals.upgrade.onWish = () => {
    upgrading = upgrade.run().then((isDone) => {
      if (isDone) handedOver.resolve("SIGUSR2");
    });
  };
  const signal = await Promise.race([signals.stop, handedOver.promise]);
  log.info("stopping", { signal });
  endWatchdog();
  signals.reload.onWish = null;
  signals.upgrade.onWish = null;
  if (signal === "SIGUSR2") {
    await node.retire();
  } else {
    supervisor?.stopping();
    upgrade.cancel();
    await upgrading;
    await node.stop();
  }
  log.info("stopped");
}
