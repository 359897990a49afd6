import type { Entry, Outcome } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Icon } from "./icon.tsx";
import type { IconName } from "./icon_names.ts";

/** Of a chart: what was blocked, asked of others, answered by ourselves, and what failed. */
export const BANDS = ["blocked", "asked", "ours", "failed"] as const;
export type Band = typeof BANDS[number];

/** In the order of their legend. */
export const OUTCOMES = {
  blocked: "blocked",
  forwarded: "asked",
  recursed: "asked",
  cached: "ours",
  local: "ours",
  rewritten: "ours",
  safe_search: "ours",
  refused: "failed",
  failed: "failed",
} as const satisfies Record<Outcome, Band>;

/** Those of lists are in styles/outcomes.css, which has the same. */
const ICONS = {
  blocked: "ban",
  forwarded: "arrow-up-right",
  recursed: "network",
  cached: "zap",
  local: "house",
  rewritten: "pencil-line",
  safe_search: "search-check",
  refused: "octagon-x",
  failed: "triangle-alert",
} as const satisfies Record<Outcome, IconName>;

export const OUTCOME_NAMES = Object.keys(OUTCOMES) as Outcome[];

function isOutcome(text: string): text is Outcome {
  return Object.hasOwn(OUTCOMES, text);
}

/** The word for an outcome, as far as there is one. */
export function outcomeName(outcome: string): string {
  return isOutcome(outcome) ? t.outcomes[outcome] : outcome;
}

/** A word with its picture: the colour is never alone. */
export function OutcomeTag({ outcome }: { outcome: string }) {
  if (!isOutcome(outcome)) return <span class="outcome">{outcome}</span>;
  return (
    <span class={`outcome ${outcome}`}>
      <Icon name={ICONS[outcome]} size={14} />
      {t.outcomes[outcome]}
    </span>
  );
}

/** The same in rows of which there are hundreds: without nodes of its own. */
export function ListedOutcome(
  { outcome, iconOnly = false }: { outcome: string; iconOnly?: boolean },
) {
  if (!isOutcome(outcome)) return <span class="outcome">{outcome}</span>;
  return (
    <span class={`outcome listed ${outcome}`} title={iconOnly ? t.outcomes[outcome] : undefined}>
      {iconOnly ? <span class="for-ears">{t.outcomes[outcome]}</span> : t.outcomes[outcome]}
    </span>
  );
}

/** Who asked, as people know them. */
export function clientOf({ client_name, client_id, client }: Entry): string {
  return client_name ?? client_id ?? client ?? "";
}
