import type { Entry, Outcome } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Icon } from "./icon.tsx";
import type { IconName } from "./icon_names.ts";

/** Of a chart: what was blocked, asked of others, answered by ourselves, and what failed. */
export const BANDS = ["blocked", "asked", "ours", "failed"] as const;
export type Band = typeof BANDS[number];

export const OUTCOMES = {
  blocked: { icon: "ban", band: "blocked" },
  forwarded: { icon: "arrow-up-right", band: "asked" },
  recursed: { icon: "network", band: "asked" },
  cached: { icon: "zap", band: "ours" },
  local: { icon: "house", band: "ours" },
  rewritten: { icon: "pencil-line", band: "ours" },
  safe_search: { icon: "search-check", band: "ours" },
  refused: { icon: "octagon-x", band: "failed" },
  failed: { icon: "triangle-alert", band: "failed" },
} as const satisfies Record<Outcome, { icon: IconName; band: Band }>;

export const OUTCOME_NAMES = Object.keys(OUTCOMES) as Outcome[];

function isOutcome(text: string): text is Outcome {
  return Object.hasOwn(OUTCOMES, text);
}

/** A word with its picture: the colour is never alone. */
export function OutcomeTag({ outcome, iconOnly = false }: { outcome: string; iconOnly?: boolean }) {
  if (!isOutcome(outcome)) return <span class="outcome">{outcome}</span>;
  return (
    <span class={`outcome ${outcome}`} title={iconOnly ? t.outcomes[outcome] : undefined}>
      <Icon name={OUTCOMES[outcome].icon} size={14} />
      <span class={iconOnly ? "for-ears" : ""}>{t.outcomes[outcome]}</span>
    </span>
  );
}

/** Who asked, as people know them. */
export function clientOf({ client_name, client_id, client }: Entry): string {
  return client_name ?? client_id ?? client ?? "";
}
