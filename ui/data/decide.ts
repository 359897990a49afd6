/** What allowing and blocking write, and whether it works then. */
import { type Remedy, ruleText } from "../../src/client/remedy.ts";
import { t } from "../text/mod.ts";
import { lowered, moment } from "../parts/format.ts";
import { outcomeName } from "../parts/outcome.tsx";
import { toast } from "../parts/toasts.tsx";
import { ApiError, get } from "./api.ts";
import { change, create, remove } from "./collections.ts";
import { endOf, type Period } from "./periods.ts";
import { offerWayBack } from "./ways_back.ts";
import type { Explanation, Resource } from "./types.ts";

/** What is allowed or blocked: for whom, how long, and how much of it. */
export interface Decision {
  readonly action: "allow" | "block";
  readonly name: string;
  /** The name alone, or all names below it too. */
  readonly isBelow: boolean;
  readonly who: { readonly kind: "all" } | {
    readonly kind: "client" | "group";
    readonly id: string;
    readonly name: string;
  };
  readonly period: Period;
}

/** Who asked what; the entry of the log that it is about, if it is about one. */
export interface Asked {
  readonly type: string;
  readonly client: string | null;
  readonly entry: string | null;
}

/** Writes it, says so, and says whether it works now or what still decides. */
export async function decide(decision: Decision, remedy: Remedy, ask: Asked): Promise<void> {
  const { who, period } = decision;
  const end = endOf(period);
  const { action } = decision;
  const text = ruleText(action, decision, remedy.kind === "exception" ? remedy.modifiers : "");
  const made = await create("rules", {
    rule: text,
    enabled: true,
    comment: "",
    managed_by: "api",
    expires_at: end?.toISOString() ?? null,
    clients: who.kind === "client" ? [who.id] : [],
    groups: who.kind === "group" ? [who.id] : [],
  });
  const back = offerWayBack(
    ask.entry,
    () => remove("rules", made, { undo: false, said: t.common.undone }),
  );
  const now = await explainNow(decision.name, ask.type, ask.client);
  const isBlocked = now?.outcome === "blocked";
  const works = now === null || isBlocked === (decision.action === "block");
  const whom = who.kind === "all" ? lowered(t.panel.everybody) : who.name;
  const said = decision.action === "allow" ? t.panel.allowedFor : t.panel.blockedFor;
  const until = end === null ? t.panel.forEver : t.panel.until(moment(end));
  const rest = works
    ? ""
    : ` ${t.panel.stillDecides(now?.rule ?? outcomeName(now?.outcome ?? ""))}`;
  toast(
    `${said(decision.name, whom, until)}${rest}`,
    back,
    works ? "plain" : "danger",
    [],
    end === null ? null : { label: t.panel.keep, run: () => keepRule(made) },
  );
}

/** Takes the end off a rule that was for a while. */
async function keepRule({ id }: Resource<"rules">): Promise<void> {
  await change("rules", id, (spec) => ({ ...spec, expires_at: null }), { said: t.panel.kept });
}

async function explainNow(
  name: string,
  type: string,
  client: string | null,
): Promise<Explanation | null> {
  try {
    return await get<Explanation>("explain", { name, type, client });
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

/** Pauses a service of a group, or takes the pause away; `entry` is the one it is done from. */
export async function pauseService(
  group: string,
  service: string,
  until: Date | null,
  said: string,
  entry: string | null = null,
): Promise<void> {
  let before: string | null = null;
  const put = (until: string | null, said: string | undefined) =>
    change("groups", group, (spec) => ({
      ...spec,
      blocked_services: spec.blocked_services.map((one) => {
        if (one.service !== service) return one;
        before = one.paused_until ?? null;
        return { ...one, paused_until: until };
      }),
    }), { undo: false, ...(said !== undefined && { said }) });
  await put(until?.toISOString() ?? null, undefined);
  const back = before;
  toast(said, offerWayBack(entry, () => put(back, t.common.undone)));
}
