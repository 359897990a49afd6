import { SvcError } from "../errors.ts";
import type { Process } from "../native/system.ts";
import { cString } from "./c_string.ts";

/** The same on every architecture. */
const CREATE_RULESET = 444n;
const ADD_RULE = 445n;
const RESTRICT_SELF = 446n;
const CREATE_VERSION = 1n;
const RULE_PATH_BENEATH = 1n;
const O_PATH_CLOEXEC = 0o12000000;
/** `landlock_path_beneath_attr`, which is packed. */
const PATH_BENEATH_BYTES = 12;

const Right = {
  Execute: 1n << 0n,
  WriteFile: 1n << 1n,
  ReadFile: 1n << 2n,
  ReadDir: 1n << 3n,
  RemoveDir: 1n << 4n,
  RemoveFile: 1n << 5n,
  MakeDir: 1n << 7n,
  MakeRegular: 1n << 8n,
  Refer: 1n << 13n,
  Truncate: 1n << 14n,
  IoctlDevice: 1n << 15n,
} as const;
/** Every right of the first version: 0 to 12. */
const FIRST_RIGHTS = (1n << 13n) - 1n;
/** Of a file a rule may name no others. */
const FILE_RIGHTS = Right.Execute | Right.WriteFile | Right.ReadFile | Right.Truncate |
  Right.IoctlDevice;
/** Sockets in the abstract namespace of other programs; signals to them. */
const SCOPE_ABSTRACT_SOCKETS = 1n;
const SCOPE_SIGNALS = 2n;

const READ = Right.ReadFile | Right.ReadDir;
const RIGHTS = {
  read: READ,
  execute: READ | Right.Execute,
  write: READ | Right.WriteFile | Right.RemoveDir | Right.RemoveFile | Right.MakeDir |
    Right.MakeRegular | Right.Refer | Right.Truncate,
} as const;

/** A path, and what may be done at and below it. Who may write or execute may read. */
export interface PathRule {
  readonly path: string;
  readonly may: keyof typeof RIGHTS;
}

export interface LandlockOptions {
  readonly rules: readonly PathRule[];
  /** The supervisor of services is told over such a socket. */
  readonly abstractSockets: boolean;
}

/** The version of Landlock that this kernel has; 0: none. */
export function landlockVersion({ symbols }: Process): number {
  return Math.max(
    0,
    Number(symbols.landlock_create_ruleset(CREATE_RULESET, null, 0n, CREATE_VERSION)),
  );
}

/**
 * Denies this thread, and whatever it executes, every path but those of the rules; a path that is not
 * there gets none. Returns the version of Landlock; `no_new_privs` has to be set.
 *
 * @throws {SvcError} `unavailable`, with the step that the kernel refuses.
 */
export function restrictPaths(process: Process, options: LandlockOptions): number {
  const { symbols } = process;
  const version = landlockVersion(process);
  if (version < 1) throw new SvcError("unavailable", "this kernel has no Landlock");
  const handled = FIRST_RIGHTS | (version >= 2 ? Right.Refer : 0n) |
    (version >= 3 ? Right.Truncate : 0n) | (version >= 5 ? Right.IoctlDevice : 0n);
  const scoped = SCOPE_SIGNALS | (options.abstractSockets ? 0n : SCOPE_ABSTRACT_SOCKETS);
  const attributes = BigUint64Array.of(handled, 0n, version >= 6 ? scoped : 0n);
  const bytes = version >= 6 ? 24n : version >= 4 ? 16n : 8n;
  const ruleset = Number(
    symbols.landlock_create_ruleset(CREATE_RULESET, new Uint8Array(attributes.buffer), bytes, 0n),
  );
  if (ruleset < 0) throw new SvcError("unavailable", "Landlock: the kernel makes no rule set");
  try {
    for (const { path, may } of options.rules) {
      addRule(process, ruleset, path, RIGHTS[may] & handled);
    }
    if (symbols.landlock_restrict_self(RESTRICT_SELF, BigInt(ruleset), 0n) !== 0n) {
      throw new SvcError("unavailable", "Landlock: the kernel takes no further restriction");
    }
  } finally {
    symbols.close(ruleset);
  }
  return version;
}

function addRule({ symbols }: Process, ruleset: number, path: string, rights: bigint): void {
  const fd = symbols.open(cString(path), O_PATH_CLOEXEC);
  if (fd < 0) return;
  const rule = new Uint8Array(PATH_BENEATH_BYTES);
  const view = new DataView(rule.buffer);
  view.setInt32(8, fd, true);
  const add = (allowed: bigint) => {
    view.setBigUint64(0, allowed, true);
    const set = BigInt(ruleset);
    return symbols.landlock_add_rule(ADD_RULE, set, RULE_PATH_BENEATH, rule, 0n) === 0n;
  };
  // The kernel refuses what only a directory can be given where the path is of a file.
  const isAdded = add(rights) || add(rights & FILE_RIGHTS);
  symbols.close(fd);
  if (!isAdded) throw new SvcError("unavailable", `Landlock: the kernel takes no rule for ${path}`);
}
