import { parseArgs } from "node:util";
import {
  type Auth,
  changeUser,
  createUser,
  issueReset,
  newPassword,
  removeUser,
  userByName,
  type UserStore,
} from "../auth/mod.ts";
import { type Config, formatProblem } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import type { Actor, Role, StoredUser } from "../model/mod.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";
import { openUsers } from "./open_users.ts";
import { readSecretFile } from "./secret_file.ts";

/** The exit code of wrong usage and of an invalid configuration. */
const EXIT_USAGE = 2;

const HELP = `svc user add|list|passwd|reset|remove|disable|enable [NAME]

Users of a node that is stopped; one that runs is asked through its API, and so is a cluster.

  add NAME        makes a user; prints a password, once, unless a file gives one
  list            prints all users
  passwd NAME     sets a new password; prints it, once, unless a file gives one
  reset NAME      prints a link by which the user sets a password, once and within an hour
  remove NAME     takes the user away
  disable NAME    keeps the user from signing in
  enable NAME     lets the user sign in again

  --role ROLE           admin (default) or viewer, for add
  --password-file FILE  its first line is the password, for add and passwd
  --config FILE         the configuration (default ${DEFAULT_CONFIG_FILE})
  --help                this text

Whoever changes password or state of a user ends all sessions of that user.`;

/** Every change of this command is the operator's. */
const ACTOR: Actor = { kind: "cli", name: null, address: null };
const ROLES: readonly string[] = ["admin", "viewer"] satisfies readonly Role[];

/** The users of a stopped node. */
export interface OpenUsers {
  readonly users: UserStore;
  /** Gives the store free. */
  close(): Promise<void>;
}

/** Opens the users of the node that a configuration describes. */
export type UsersOpener = (config: Config) => Promise<OpenUsers>;

/** One call of the command. */
interface Call {
  readonly config: Config;
  readonly auth: Pick<Auth, "users" | "clock">;
  /** "" where the action takes none. */
  readonly name: string;
  readonly role: Role;
  readonly passwordFile: string | undefined;
}

interface Action {
  readonly takesName: boolean;
  /** Which of the options it takes beside `--config`. */
  readonly options: readonly ("role" | "password-file")[];
  readonly run: (call: Call) => void | Promise<void>;
}

const ACTIONS: Readonly<Record<string, Action>> = {
  add: { takesName: true, options: ["role", "password-file"], run: add },
  list: { takesName: false, options: [], run: list },
  passwd: { takesName: true, options: ["password-file"], run: passwd },
  reset: { takesName: true, options: [], run: reset },
  remove: { takesName: true, options: [], run: remove },
  disable: { takesName: true, options: [], run: (call) => setDisabled(call, true) },
  enable: { takesName: true, options: [], run: (call) => setDisabled(call, false) },
};

/** `svc user`; returns the exit code. `open` stands for the store in tests. */
export async function user(args: string[], open: UsersOpener = openUsers): Promise<number> {
  const read = readCall(args);
  if (read === null) {
    console.log(HELP);
    return 0;
  }
  if (typeof read === "string") {
    console.error(`svc user: ${read} (svc user --help tells more)`);
    return EXIT_USAGE;
  }
  const { action, configFile, ...options } = read;
  const { config, problems } = await loadConfig(configFile);
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null) return EXIT_USAGE;
  if (config.cluster !== null) {
    throw new SvcError(
      "conflict",
      "cluster: this node is a member: change users through the API of any member that runs",
    );
  }
  const { users, close } = await open(config);
  try {
    await action.run({ config, auth: { users, clock: { nowMs: () => Date.now() } }, ...options });
    return 0;
  } finally {
    await close();
  }
}

type ReadCall = Pick<Call, "name" | "role" | "passwordFile"> & {
  readonly action: Action;
  readonly configFile: string | undefined;
};

/** What the arguments ask for; `null`: help; a text: what is wrong with them. */
function readCall(args: string[]): ReadCall | string | null {
  let parsed;
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: {
        "config": { type: "string" },
        "help": { type: "boolean" },
        "password-file": { type: "string" },
        "role": { type: "string" },
      },
    });
  } catch (error) {
    return messageOf(error).split("\n", 1)[0];
  }
  const { values, positionals: [verb, name, ...more] } = parsed;
  if (values.help) return null;
  if (verb === undefined) return "say what to do: add, list, passwd, reset, remove, …";
  const action = Object.hasOwn(ACTIONS, verb) ? ACTIONS[verb] : undefined;
  if (action === undefined) return `${JSON.stringify(verb)} is nothing it does`;
  if (action.takesName && (name === undefined || name === "")) return `${verb} takes a NAME`;
  const [extra] = action.takesName ? more : [name, ...more];
  if (extra !== undefined) return `${JSON.stringify(extra)} is one argument too many`;
  for (const option of ["role", "password-file"] as const) {
    if (values[option] !== undefined && !action.options.includes(option)) {
      return `--${option} is not for ${verb}`;
    }
  }
  const role = values.role ?? "admin";
  if (!ROLES.includes(role)) return `--role ${role}: take ${ROLES.join(" or ")}`;
  return {
    action,
    name: name ?? "",
    role: role as Role,
    passwordFile: values["password-file"],
    configFile: values.config,
  };
}

function found({ auth, name }: Call): StoredUser {
  const known = userByName(auth.users, name);
  if (known !== null) return known;
  throw new SvcError("not_found", `no user is called ${JSON.stringify(name)}: svc user list`);
}

/** The password from the file, or a new one that is printed once it holds. */
async function passwordFor({ passwordFile }: Call) {
  if (passwordFile === undefined) {
    const password = newPassword();
    return { password, print: () => console.log(`password: ${password}`) };
  }
  return { password: await readSecretFile(passwordFile), print: () => {} };
}

async function add(call: Call): Promise<void> {
  const { auth, name, role } = call;
  const { password, print } = await passwordFor(call);
  const made = await createUser(auth, { name, role, disabled: false, password }, ACTOR);
  console.log(`user ${made.name} was added (${role})`);
  print();
}

function list({ auth }: Call): void {
  const rows = Array.from(auth.users.state.users.values(), (known) => [
    known.name,
    known.role,
    known.disabled ? "disabled" : "enabled",
    known.otp?.active ? "second factor" : "password only",
  ]);
  if (rows.length === 0) console.log("no users");
  const widths = [0, 1, 2].map((i) => Math.max(0, ...rows.map((row) => row[i].length)));
  for (const row of rows) {
    console.log(row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd());
  }
}

async function passwd(call: Call): Promise<void> {
  const known = found(call);
  const { password, print } = await passwordFor(call);
  await changeUser(call.auth, known.id, { ...known, password }, null, ACTOR);
  console.log(`user ${known.name} has a new password`);
  print();
}

async function reset(call: Call): Promise<void> {
  const { listen, publicUrl } = call.config.api;
  if (listen.length === 0) {
    throw new SvcError("conflict", "api.listen: names no address, so a link would lead nowhere");
  }
  const { path, expiresAt } = await issueReset(call.auth, found(call).id, ACTOR);
  console.log((publicUrl ?? "") + path);
  const where = publicUrl === null
    ? "open it behind the API's address (api.public_url makes it a whole link)"
    : "open it there";
  console.error(`good once, until ${expiresAt}: start the node, and ${where}`);
}

async function remove(call: Call): Promise<void> {
  const known = found(call);
  await removeUser(call.auth, known.id, null, ACTOR);
  console.log(`user ${known.name} was removed`);
}

async function setDisabled(call: Call, disabled: boolean): Promise<void> {
  const known = found(call);
  await changeUser(call.auth, known.id, { ...known, disabled, password: null }, null, ACTOR);
  console.log(`user ${known.name} is ${disabled ? "disabled" : "enabled"}`);
}
