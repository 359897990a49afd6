/**
 * The first of the two processes of an upgrade: checks what the next program would find, starts it
 * and ends, so that it is nobody's child. Scope: ffi, read. @module
 */
import type { Config } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { openHandOver, type Process } from "../native/system.ts";
import { type Legacy, ownProgram, type PathRule, startProgram } from "../process/mod.ts";
import { programPlaces, raiseFence, realPath } from "./first_stage.ts";
import { narrowed, placesOf } from "./places.ts";
import { TakeOver, upgradeNotes } from "./take_over.ts";
import type { UpgradeNotes } from "./upgrade.ts";

/** Says whether a legacy is one to launch. */
export function isToLaunch(legacy: Legacy): boolean {
  return upgradeNotes(legacy)?.step === "launch";
}

/** Tells the former program that there is no next one, and why. */
export function refuse(legacy: Legacy, reason: string): void {
  TakeOver.of(legacy)?.fail(new SvcError("invalid", reason));
}

/**
 * Starts the program that is to serve by this configuration. Whoever it is told to is told of what
 * is in its way.
 *
 * @throws {SvcError} With that.
 */
export function launch(
  process: Process,
  config: Config,
  configFile: string,
  legacy: Legacy,
): void {
  try {
    start(process, config, configFile, legacy);
  } catch (error) {
    TakeOver.of(legacy)?.fail(error);
    throw error;
  }
}

function start(process: Process, config: Config, configFile: string, legacy: Legacy): void {
  const library = openHandOver();
  const notes = upgradeNotes(legacy);
  if (library === null || notes === null) {
    throw new SvcError("unavailable", "this needs Linux with the GNU C library");
  }
  const { stage } = notes;
  checkUser(config, stage.user);
  const rules = placesOf(config, programPlaces(process, configFile, null), realPath);
  const wasOff = !stage.fence.landlock && !stage.fence.seccomp &&
    stage.fence.problems.length === 0;
  if (stage.fence.landlock) checkPlaces(rules, stage.fence.rules);
  const fence = wasOff && config.security.sandbox ? raiseFence(process, rules) : stage.fence;
  const next: UpgradeNotes = { stage: { ...stage, fence }, step: "serve" };
  const program = ownProgram(process);
  const args = config.security.sandbox ? narrowed(program.args, rules) : program.args;
  startProgram(process, library, { ...program, args }, {
    descriptors: legacy.descriptors,
    notes: next,
  });
}

/** Nobody becomes somebody else any more. */
function checkUser({ server: { user } }: Config, runsAs: string): void {
  if (user === null || user === runsAs) return;
  throw new SvcError(
    "forbidden",
    `server.user: ${runsAs} runs, and only a new start can become ${user}: restart svc`,
  );
}

/** What the kernel has denied it denies for good. */
function checkPlaces(wanted: readonly PathRule[], granted: readonly PathRule[]): void {
  const isGranted = ({ path, may }: PathRule) =>
    granted.some((rule) =>
      (path === rule.path || path.startsWith(`${rule.path}/`)) &&
      (may === "read" || may === rule.may)
    );
  const beyond = wanted.find((rule) => !isGranted(rule));
  if (beyond === undefined) return;
  const { path, may } = beyond;
  throw new SvcError(
    "forbidden",
    `the running program is shut in, and the next one could not ${may} ${path}: restart svc`,
  );
}
