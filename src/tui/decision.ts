/** Blocking and allowing from an entry of the log. */
import type { QuerylogEntry } from "../api/mod.ts";
import { ELSEWHERE, type Remedy, remedyFor, ruleText } from "../client/mod.ts";
import { messageOf } from "../errors.ts";
import { endOf, type Period, PERIODS, type Reach, reachesOf } from "./decide.ts";
import { Form } from "./dialogs.ts";
import { clockTime } from "./text.ts";
import type { Ui } from "./ui.ts";

type Action = "allow" | "block";

/** For whom a rule holds. */
interface Whom {
  readonly label: string;
  readonly clients: readonly string[];
  readonly groups: readonly string[];
}

/** Asks what, for whom and how long, and does it; preset as what is wanted most. */
export function decisionForm(action: Action, entry: QuerylogEntry, ui: Ui): void {
  const remedy = action === "block"
    ? { kind: "exception", modifiers: "" } as const
    : remedyFor(entry);
  if (remedy.kind === "elsewhere") return ui.say(`no rule lifts ${ELSEWHERE[remedy.what]}`);
  const period = { label: "how long", options: PERIODS, index: action === "allow" ? 0 : 2 };
  if (remedy.kind === "service") {
    const limited = { ...period, options: PERIODS.slice(0, 2) };
    const title = `Allow ${remedy.service} for group ${ui.node.nameOf(entry.group)}`;
    return ui.open(
      new Form(title, [limited], ([i]) => allowService(remedy, entry, PERIODS[i], ui)),
    );
  }
  const reaches = reachesOf(entry.name);
  const whoms = whomsOf(entry, ui);
  const preset = action === "allow" ? 0 : whoms.length - 1;
  const title = action === "allow" ? "Allow" : "Block";
  ui.open(
    new Form(title, [
      { label: "name", options: reaches.map(({ label }) => label), index: 0 },
      { label: "for", options: whoms.map(({ label }) => label), index: preset },
      period,
    ], ([reach, whom, i]) => {
      decide(
        action,
        { reach: reaches[reach], whom: whoms[whom], period: PERIODS[i] },
        entry,
        remedy,
        ui,
      );
    }),
  );
}

/** The client, its group, everybody: as far as they are known. */
function whomsOf({ client_name, group }: QuerylogEntry, ui: Ui): Whom[] {
  const client = ui.node.clients.find(({ spec }) => spec.name === client_name);
  const whoms: Whom[] = [];
  if (client !== undefined) {
    whoms.push({ label: client.spec.name, clients: [client.id], groups: [] });
  }
  if (group !== null && ui.node.groups.some(({ id }) => id === group)) {
    whoms.push({ label: `group ${ui.node.nameOf(group)}`, clients: [], groups: [group] });
  }
  return [...whoms, { label: "everybody", clients: [], groups: [] }];
}

function untilText(end: string | null, now: Date): string {
  return end === null ? "for ever" : `until ${clockTime(end, now)}`;
}

function decide(
  action: Action,
  { reach, whom, period }: { readonly reach: Reach; readonly whom: Whom; readonly period: Period },
  entry: QuerylogEntry,
  remedy: Extract<Remedy, { kind: "exception" }>,
  ui: Ui,
): void {
  const expires_at = endOf(period, ui.node.now);
  const { clients, groups, label } = whom;
  const rule = ruleText(action, reach, remedy.modifiers);
  const done = action === "allow" ? "allowed" : "blocked";
  ui.act(`${done} ${reach.label} for ${label} ${untilText(expires_at, ui.node.now)}`, async () => {
    const body = { rule, comment: "", clients, groups, expires_at };
    const { id } = await ui.client.call("POST rules", { body });
    const undo = async () => void await ui.client.call("DELETE rules/{id}", { id });
    const still = await stillDecides(action, entry, ui);
    return { undo, but: still };
  });
}

/** What decides otherwise all the same; nothing, where it works or nobody could tell. */
async function stillDecides(action: Action, entry: QuerylogEntry, ui: Ui): Promise<string | null> {
  const query = { name: entry.name, type: entry.type, client: entry.client ?? undefined };
  try {
    const { outcome, rule } = await ui.client.call("GET explain", { query });
    if ((outcome === "blocked") === (action === "block")) return null;
    return `still ${outcome}${rule === null ? "" : ` by ${rule}`}`;
  } catch (error) {
    return messageOf(error);
  }
}

function allowService(
  { service }: Extract<Remedy, { kind: "service" }>,
  { group }: QuerylogEntry,
  period: Period,
  ui: Ui,
): void {
  if (group === null) return ui.say("the group of this query is not known");
  const until = endOf(period, ui.node.now);
  ui.act(`allowed ${service} ${untilText(until, ui.node.now)}`, async () => {
    await pauseService(ui, group, service, until);
    return { undo: () => pauseService(ui, group, service, null), but: null };
  });
}

/** Lets a group have a blocked service until then; `null`: not any more. */
export async function pauseService(ui: Ui, group: string, service: string, until: string | null) {
  await ui.node.change("groups", group, (spec) => ({
    ...spec,
    blocked_services: spec.blocked_services.map((one) =>
      one.service === service ? { ...one, paused_until: until } : one
    ),
  }));
}
