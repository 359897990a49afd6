import type { Config } from "../config/mod.ts";
import { log } from "../log.ts";
import { openNative } from "../native/mod.ts";
import { openProcess } from "../native/system.ts";
import { heldBy, type Legacy } from "../process/mod.ts";
import type { StageNotes } from "./first_stage.ts";
import { workersOf } from "./isolate_counts.ts";
import { LeftSockets, openSockets, type Sockets } from "./sockets.ts";
import { upgradeNotes } from "./take_over.ts";

/** What this process may do, for the status. */
export interface SandboxStatus {
  /** `null`: this system does not tell. */
  readonly user: string | null;
  /** As the system spells them. */
  readonly capabilities: readonly string[];
  readonly landlock: boolean;
  readonly seccomp: boolean;
}

/** What a process finds that has gone through stage 1. */
export interface SecondStage {
  /** `null`: whoever listens opens sockets of its own. */
  readonly sockets: Sockets | null;
  /** For the next program; `null`: there was no stage 1. */
  readonly notes: StageNotes | null;
  readonly status: SandboxStatus;
  readonly problems: readonly string[];
}

/**
 * Takes over what stage 1, or a former program, left.
 *
 * @throws {SvcError} `unavailable`, for a socket that is lacking and can't be opened.
 */
export function secondStage(config: Config, legacy: Legacy | null): SecondStage {
  const [native, process] = [openNative(), openProcess()];
  const held = process === null ? null : heldBy(process);
  process?.close();
  if (native === null || legacy === null) {
    return { sockets: null, notes: null, ...unfenced(config.security.sandbox) };
  }
  const notes = upgradeNotes(legacy)?.stage ?? legacy.notes as StageNotes;
  const { sockets, user, fence } = notes;
  const status: SandboxStatus = {
    user,
    capabilities: held?.capabilities ?? [],
    landlock: fence.landlock,
    seccomp: fence.seccomp && (held?.isFiltered ?? false),
  };
  log.info("shut in", { ...status });
  return {
    sockets: openSockets(
      native,
      config,
      workersOf(config),
      new LeftSockets(native, sockets, legacy.descriptors),
    ),
    notes,
    status,
    problems: fence.problems,
  };
}

/** Where the C library can't be had. */
function unfenced(isWanted: boolean): Pick<SecondStage, "status" | "problems"> {
  const problem = "sandbox: this needs Linux with the GNU C library, and the right to call it";
  return {
    status: { user: null, capabilities: [], landlock: false, seccomp: false },
    problems: isWanted ? [problem] : [],
  };
}
