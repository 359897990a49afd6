/**
 * Stage 1 of a service: with whatever rights it was started, it opens what takes them, gives them up
 * and executes the program anew. Loads nothing that answers anybody. Scope: ffi, read, write. @module
 */
import { dirname } from "node:path/posix";
import type { Config } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Native } from "../native/mod.ts";
import type { Process } from "../native/system.ts";
import {
  Capability,
  cString,
  denySystemCalls,
  dropPrivileges,
  environmentOf,
  executeProgram,
  hasCapabilities,
  lookUpUser,
  nameOf,
  ownProgram,
  type PathRule,
  restrictPaths,
  type UserIds,
} from "../process/mod.ts";
import { workersOf } from "./isolate_counts.ts";
import { FILE_VARIABLE } from "./next_program.ts";
import { narrowed, placesOf, type ProgramPlaces } from "./places.ts";
import { namedSockets, openSockets, type SocketName } from "./sockets.ts";
import { warmCaches } from "./warm.ts";

/** What stage 1 tells stage 2, beside the sockets. */
export interface StageNotes {
  /** Of the descriptors that are left, one by one. */
  readonly sockets: readonly SocketName[];
  /** The name of who runs the service, or the number of who has none. */
  readonly user: string;
  readonly fence: Fence;
}

/** What the kernel denies the process, and every one that it starts, from stage 1 on. */
export interface Fence {
  readonly landlock: boolean;
  readonly seccomp: boolean;
  /** Where `landlock` is: what it leaves open. */
  readonly rules: readonly PathRule[];
  /** What should be and is not. */
  readonly problems: readonly string[];
}

const NOTIFY_VARIABLE = "NOTIFY_SOCKET";
const TEMPORARY_VARIABLE = "TMPDIR";
const UNPRIVILEGED_PORT_MIN = 1_024;
const OWNER_ONLY = 0o700;
/** The folder of all modules, without the slash at its end. */
const PROGRAM = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * Opens the sockets of a node, becomes who it is to be with what it is to keep, and goes on as stage
 * 2, which finds `StageNotes`. Does not return. `configFile` is where the configuration is looked for.
 *
 * @throws {SvcError} With what keeps the node from starting.
 */
export async function enterFirstStage(
  native: Native,
  process: Process,
  config: Config,
  configFile: string,
): Promise<never> {
  const user = userOf(process, config);
  const program = ownProgram(process);
  const places = programPlaces(process, configFile, user);
  for (const path of filesOf(places)) checkReach(config, user, path);
  makeStoreDirectory(process, config, user);
  await warmCaches(places);
  const rules = placesOf(config, places, realPath);
  const sockets = namedSockets(openSockets(native, config, workersOf(config)), config);
  const userName = nameOf(process, user?.uid ?? process.symbols.geteuid());
  const keep = needsLowPorts(config) ? [Capability.NetBindService] : [];
  dropPrivileges(process, keep.filter((one) => hasCapabilities(process, [one])), user);
  const fence = config.security.sandbox ? raiseFence(process, rules) : NO_FENCE;
  const args = config.security.sandbox ? narrowed(program.args, rules) : program.args;
  const notes: StageNotes = { sockets: sockets.map(({ name }) => name), user: userName, fence };
  return executeProgram(process, { ...program, args }, {
    descriptors: sockets.map(({ fd }) => fd),
    notes,
  });
}

const PRELOAD_VARIABLE = "LD_PRELOAD";
/** Nothing is denied, as somebody wishes. */
const NO_FENCE: Fence = { landlock: false, seccomp: false, rules: [], problems: [] };

/** Whom the process becomes; `null`: it is, and stays, who it is. */
function userOf(process: Process, { server: { user } }: Config): UserIds | null {
  const { symbols } = process;
  const isRoot = symbols.geteuid() === 0;
  if (user === null) {
    if (isRoot) log.warn("runs as root: name a user in server.user");
    return null;
  }
  const ids = lookUpUser(process, user);
  if (ids === null) {
    throw new SvcError(
      "invalid",
      `server.user: there is no user ${user}: make it, or name another`,
    );
  }
  if (!isRoot && ids.uid !== symbols.geteuid()) {
    throw new SvcError(
      "forbidden",
      `server.user: only root can become ${user}: start svc as root or as ${user}, or leave it out`,
    );
  }
  return isRoot ? ids : null;
}

/** What the service's user has to get at to run it; a compiled file carries its own modules. */
function filesOf({ runtime, modules }: ProgramPlaces): string[] {
  return Deno.build.standalone ? [runtime] : [runtime, `${modules}/deno.json`];
}

/**
 * A program that root alone can get at is no program for anybody else.
 *
 * @throws {SvcError} `forbidden`, with the directory in the way.
 */
function checkReach({ server: { user: name } }: Config, user: UserIds | null, path: string): void {
  if (user === null) return;
  for (let folder = dirname(path);; folder = dirname(folder)) {
    const { uid, gid, mode } = Deno.statSync(folder);
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
    if (((mode ?? 0) >> shift & 1) === 0) {
      throw new SvcError(
        "forbidden",
        `server.user: ${name} may not enter ${folder}, where the program is: put it into a folder ` +
          "that everybody may enter, or set SVC_CACHE_DIR to one",
      );
    }
    if (folder === "/") return;
  }
}

/** The owner can't make it itself where only root may write. */
function makeStoreDirectory(
  { symbols }: Process,
  { store: { dir } }: Config,
  user: UserIds | null,
): void {
  try {
    Deno.statSync(dir);
    return;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) return; // Whoever opens it says what is wrong.
  }
  try {
    Deno.mkdirSync(dir, { recursive: true, mode: OWNER_ONLY });
  } catch {
    return; // The same.
  }
  if (user !== null) symbols.chown(cString(dir), user.uid, user.gid);
}

/** QUIC's sockets are the runtime's, as those of proofs over DNS: no other process can open them. */
function needsLowPorts({ server: { tls: { doq } }, acme }: Config): boolean {
  const proofs = acme?.challenge === "dns-01" ? acme.listen : [];
  return [...doq, ...proofs].some(({ port }) => port > 0 && port < UNPRIVILEGED_PORT_MIN);
}

/** Has the kernel deny what it can deny; a kernel that can't is a problem, and no failure. */
export function raiseFence(process: Process, rules: readonly PathRule[]): Fence {
  const problems: string[] = [];
  const attempt = (work: () => void): boolean => {
    try {
      work();
      return true;
    } catch (error) {
      const problem = `sandbox: ${messageOf(error)}: what is denied otherwise holds`;
      log.warn("a part of the sandbox can't be had", { error: messageOf(error) });
      problems.push(problem);
      return false;
    }
  };
  const notify = environmentOf(process, NOTIFY_VARIABLE);
  const abstractSockets = notify?.startsWith("@") ?? false;
  // What somebody has preloaded has files of its own, which nobody here knows.
  const preloaded = environmentOf(process, PRELOAD_VARIABLE);
  if (preloaded !== null) {
    log.warn("paths stay open for what is preloaded", { preloaded });
    problems.push(`sandbox: ${PRELOAD_VARIABLE} is set, so paths stay open: start svc without it`);
  }
  const landlock = preloaded === null &&
    attempt(() => void restrictPaths(process, { rules, abstractSockets }));
  const seccomp = attempt(() => denySystemCalls(process));
  return { landlock, seccomp, rules: landlock ? rules : [], problems };
}

export function programPlaces(
  process: Process,
  configFile: string,
  user: UserIds | null,
): ProgramPlaces {
  const home = environmentOf(process, "HOME");
  const cacheHome = environmentOf(process, "XDG_CACHE_HOME") ??
    (home === null ? null : `${home}/.cache`);
  return {
    runtime: Deno.execPath(),
    modules: PROGRAM,
    file: environmentOf(process, FILE_VARIABLE),
    caches: environmentOf(process, "DENO_DIR") ?? (cacheHome === null ? null : `${cacheHome}/deno`),
    temporary: temporaryDirectory(process, user),
    config: configFile,
  };
}

/**
 * A directory of the user's own for files of the moment, in place of one that everybody shares;
 * `null`, where somebody else has made it. It stays: whoever is shut in can't remove it.
 */
function temporaryDirectory(process: Process, user: UserIds | null): string | null {
  const { symbols } = process;
  const uid = user?.uid ?? symbols.geteuid();
  const former = environmentOf(process, TEMPORARY_VARIABLE) ?? "/tmp";
  const name = `/svc-tmp-${uid}`;
  const path = former.endsWith(name) ? former : former + name; // It is, behind an upgrade.
  try {
    Deno.mkdirSync(path, { mode: OWNER_ONLY });
    if (user !== null) symbols.chown(cString(path), user.uid, user.gid);
  } catch {
    // It is there, or nothing can be.
  }
  try {
    const found = Deno.lstatSync(path);
    if (!found.isDirectory || found.uid !== uid) return null;
  } catch {
    return null;
  }
  symbols.setenv(cString(TEMPORARY_VARIABLE), cString(path), 1);
  return path;
}

export function realPath(path: string): string | null {
  try {
    return Deno.realPathSync(path);
  } catch {
    return null;
  }
}
