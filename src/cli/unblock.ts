import type { Explanation } from "../api/mod.ts";
import { type ApiClient, ELSEWHERE, remedyFor, ruleText } from "../client/mod.ts";
import { formatDuration, parseDuration } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { API_HELP, API_OPTIONS, apiClient, asked } from "./api_access.ts";
import { harmless } from "./harmless.ts";
import { readOperand, wrongUsage } from "./options.ts";

const SECOND_MS = 1_000;
const PERIOD_DEFAULT = "1h";
/** Longer is for good: a rule without an end says so. */
const PERIOD_MS_MAX = 366 * 86_400_000;

const HELP = `svc unblock NAME [--client ADDR] [--for 1h] [--api URL]

Lets NAME and all names below it through for a while, by an exception in the running service that ends
by itself. A service that is blocked for a group is paused there instead.

  --client ADDR      for whom: an address or ID of a client, or its name (default: everybody)
  --for PERIOD       for how long, such as 30m, 1h or 7d (default ${PERIOD_DEFAULT}, at most ${
  formatDuration(PERIOD_MS_MAX)
})
${API_HELP}
  --help             this text`;

const OPTIONS = {
  client: { type: "string" },
  for: { type: "string" },
  ...API_OPTIONS,
} as const;

/** `svc unblock NAME`; returns the exit code. */
export async function unblock(args: string[]): Promise<number> {
  const read = readOperand("unblock", HELP, args, OPTIONS, "NAME");
  if (typeof read === "number") return read;
  const { values, operand } = read;
  const period = values.for ?? PERIOD_DEFAULT;
  const periodMs = parseDuration(period);
  if (periodMs === null || periodMs < SECOND_MS || periodMs > PERIOD_MS_MAX) {
    return wrongUsage(
      "unblock",
      `--for: ${period} is no period from 1s to ${
        formatDuration(PERIOD_MS_MAX)
      }: write a whole number and s, m, h or d, such as ${PERIOD_DEFAULT}`,
    );
  }
  const api = await apiClient("unblock", values);
  if (typeof api === "number") return api;
  const { client } = values;
  const query = { name: operand.toLowerCase().replace(/(?<=.)\.$/, ""), client };
  const found = await asked(api.call("GET explain", { query }));
  const until = new Date(api.clock.nowMs + periodMs).toISOString();
  console.log(harmless(await lift(api, found, client, until)));
  const now = await asked(api.call("GET explain", { query }));
  if (now.outcome !== "blocked" && now.outcome !== "rewritten") return 0;
  const by = now.rule === null ? "" : ` by ${now.rule} of ${now.list}`;
  console.error(harmless(`svc unblock: ${now.name} is still ${now.outcome}${by}`));
  return 1;
}

/** Does what lifts the block until then; says what that was. */
async function lift(
  api: ApiClient,
  found: Explanation,
  asker: string | undefined,
  until: string,
): Promise<string> {
  const remedy = remedyFor(found);
  if (remedy.kind === "elsewhere") {
    throw new SvcError("conflict", `${found.name}: no exception lifts ${ELSEWHERE[remedy.what]}`);
  }
  if (remedy.kind === "service") return await pauseService(api, found, remedy.service, until);
  if (asker !== undefined && found.client === null) {
    throw new SvcError(
      "not_found",
      `--client: no client has ${asker}: add one with it, or leave --client out for everybody`,
    );
  }
  // A local record comes before the filter: only where it leads can be let through.
  const name = found.target ?? found.name;
  const reach = { name, isBelow: true };
  const rule = ruleText("allow", reach, remedy.modifiers);
  const clients = asker === undefined || found.client === null ? [] : [found.client.id];
  const body = { rule, comment: "svc unblock", clients, groups: [], expires_at: until };
  const { id } = await asked(api.call("POST rules", { body }));
  const whom = clients.length === 0 || found.client === null ? "everybody" : found.client.name;
  return `${name} and all below: allowed for ${whom} until ${until} (${id}: ${rule})`;
}

async function pauseService(
  api: ApiClient,
  { group }: Explanation,
  service: string,
  until: string,
): Promise<string> {
  const { id } = group;
  const { spec, revision } = await asked(api.call("GET groups/{id}", { id }));
  const blocked_services = spec.blocked_services.map((one) =>
    one.service === service ? { ...one, paused_until: until } : one
  );
  const body = { ...spec, blocked_services };
  await asked(api.call("PUT groups/{id}", { id, ifMatch: revision, body }));
  return `${service}: allowed for group ${group.name} until ${until}`;
}
