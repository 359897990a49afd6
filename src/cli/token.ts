import { newToken, tokenSha256 } from "../auth/mod.ts";
import type { ApiClient } from "../client/mod.ts";
import { formatDuration, parseDuration } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { API_HELP, API_OPTIONS, apiClient, asked, harmless } from "./api_access.ts";
import { readOperands, wrongUsage } from "./options.ts";

/** Longer is for good: a token without an end says so. */
const PERIOD_MS_MAX = 36_525 * 86_400_000;

const HELP = `svc token [add NAME | list | remove NAME]

Alone it prints a new token for the API, and the line for [api] in the configuration file that makes it
valid. The token is kept nowhere: the line holds its SHA-256. Send it as "Authorization: Bearer TOKEN".

With one of these words it asks the running service, which keeps named tokens beside that one:

  add NAME     makes a token and prints it, once
  list         prints all tokens, and when each was last used
  remove NAME  revokes a token, by its name or ID, on every node

  --role ROLE        viewer (default: reads) or admin (everything), for add
  --expires PERIOD   for how long it is valid, such as 12h or 90d (default: for good), for add
${API_HELP}
  --help             this text`;

const OPTIONS = {
  role: { type: "string" },
  expires: { type: "string" },
  ...API_OPTIONS,
} as const;

interface Wanted {
  readonly name: string;
  readonly role: string;
  /** `null`: it does not end. */
  readonly expiresAt: string | null;
}

interface Action {
  readonly takesName: boolean;
  readonly run: (api: ApiClient, wanted: Wanted) => Promise<void>;
}

const ACTIONS: Readonly<Record<string, Action>> = {
  add: { takesName: true, run: add },
  list: { takesName: false, run: list },
  remove: { takesName: true, run: remove },
};

/** `svc token`; returns the exit code. */
export async function token(args: string[]): Promise<number> {
  const read = readOperands("token", HELP, args, OPTIONS);
  if (typeof read === "number") return read;
  const { values, operands: [verb, name, ...more] } = read;
  const wrong = (reason: string) => wrongUsage("token", reason);
  if (verb === undefined) {
    const [option] = Object.keys(values);
    return option === undefined ? print() : wrong(`--${option} goes with add, list or remove`);
  }
  const action = Object.hasOwn(ACTIONS, verb) ? ACTIONS[verb] : undefined;
  if (action === undefined) return wrong(`${JSON.stringify(verb)} is nothing it does`);
  if (action.takesName && (name === undefined || name === "")) return wrong(`${verb} takes a NAME`);
  const [extra] = action.takesName ? more : [name, ...more];
  if (extra !== undefined) return wrong(`${JSON.stringify(extra)} is one argument too many`);
  const { role = "viewer", expires } = values;
  if (verb !== "add" && (values.role ?? expires) !== undefined) {
    return wrong("--role and --expires are for add");
  }
  if (role !== "viewer" && role !== "admin") return wrong(`--role ${role}: take viewer or admin`);
  const periodMs = expires === undefined ? null : parseDuration(expires);
  const isPeriod = expires === undefined ||
    (periodMs !== null && periodMs > 0 && periodMs <= PERIOD_MS_MAX);
  if (!isPeriod) {
    return wrong(
      `--expires: ${expires} is no period up to ${formatDuration(PERIOD_MS_MAX)}: write a whole ` +
        "number and s, m, h or d",
    );
  }
  const api = await apiClient("token", values);
  if (typeof api === "number") return api;
  const expiresAt = periodMs === null ? null : new Date(Date.now() + periodMs).toISOString();
  await action.run(api, { name: name ?? "", role, expiresAt });
  return 0;
}

function print(): number {
  const made = newToken();
  console.log(made);
  console.log(`token_sha256 = "${tokenSha256(made)}"`);
  return 0;
}

async function add(api: ApiClient, { name, role, expiresAt }: Wanted): Promise<void> {
  const body = { name, role, expires_at: expiresAt };
  const made = await asked(api.call("POST tokens", { body }));
  const until = expiresAt === null ? "" : ` until ${expiresAt}`;
  console.error(harmless(`token ${name} was added (${role}${until}); it is shown this once:`));
  console.log(made.token);
}

async function list(api: ApiClient): Promise<void> {
  const { items } = await asked(api.call("GET tokens"));
  if (items.length === 0) console.log("no tokens");
  const rows = items.map(({ id, spec: { name, role, expires_at }, last_used_at }) => [
    name,
    role,
    expires_at === null ? "for good" : `until ${expires_at}`,
    last_used_at === null ? "never used" : `used ${last_used_at}`,
    id,
  ]);
  const widths = [0, 1, 2, 3].map((i) => Math.max(0, ...rows.map((row) => row[i].length)));
  for (const row of rows) {
    console.log(harmless(row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")));
  }
}

async function remove(api: ApiClient, { name }: Wanted): Promise<void> {
  const { items } = await asked(api.call("GET tokens"));
  const found = items.find(({ id, spec }) => id === name || spec.name === name);
  if (found === undefined) {
    throw new SvcError("not_found", `no token is called ${JSON.stringify(name)}: svc token list`);
  }
  await asked(api.call("DELETE tokens/{id}", { id: found.id }));
  console.log(harmless(`token ${found.spec.name} was revoked`));
}
