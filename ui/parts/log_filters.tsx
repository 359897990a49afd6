/** Which entries are shown: every part of it stands in the URL. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { LogFilter } from "../data/log.ts";
import { param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";
import { Popover } from "./basics.tsx";
import { Check } from "./controls.tsx";
import { moment, visible } from "./format.ts";
import { Icon } from "./icon.tsx";
import { deciderName, groupName } from "./names.ts";
import { OUTCOME_NAMES, outcomeName, OutcomeTag } from "./outcome.tsx";

/** Behind the last key, before a search is sent. */
const TYPING_MS = 200;
const FIELDS = [
  ...["outcome", "client", "name", "type", "protocol", "group", "list", "upstream"],
  ...["since", "until"],
] as const;

/** The filter of the URL, under the API's parameter names. */
export function useFilter(): LogFilter {
  return Object.fromEntries(FIELDS.map((field) => [field, param(field) || null]));
}

const AGES_MIN = [15, 60, 24 * 60, 7 * 24 * 60] as const;

function describe(field: string, value: string): string {
  if (field === "group") return groupName(value);
  if (field === "list") return deciderName(value);
  if (field === "since") return t.log.since(moment(new Date(value)));
  if (field === "until") return t.log.until(moment(new Date(value)));
  return visible(value);
}

export function LogFilters(
  { filter, children }: { filter: LogFilter; children: ComponentChildren },
) {
  const typed = useSignal(filter.name ?? "");
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (document.activeElement?.getAttribute("type") !== "search") typed.value = filter.name ?? "";
  }, [filter.name]);
  const outcomes = (filter.outcome ?? "").split(",").filter((one) => one !== "");
  const toggle = (outcome: string, on: boolean) => {
    const next = on ? [...outcomes, outcome] : outcomes.filter((one) => one !== outcome);
    setParams({ outcome: next.join(",") });
  };
  const chips = FIELDS.filter((field) =>
    field !== "name" && field !== "outcome" && filter[field] !== null
  );
  const hasAny = chips.length > 0 || outcomes.length > 0 || filter.name !== null;
  return (
    <div class="log-filters" role="search">
      <input
        type="search"
        class="search-box"
        value={typed.value}
        placeholder={t.log.searchName}
        aria-label={t.log.searchName}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setParams({ name: typed.value.trim() }), TYPING_MS);
        }}
      />
      <Popover
        label={outcomes.length === 0 ? t.log.outcome : t.log.outcomes(outcomes.length)}
        icon="list-filter"
        align="start"
      >
        {() => (
          <div class="menu checks">
            {OUTCOME_NAMES.map((outcome) => (
              <Check
                key={outcome}
                isOn={outcomes.includes(outcome)}
                label={<OutcomeTag outcome={outcome} />}
                onChange={(on) => toggle(outcome, on)}
              />
            ))}
          </div>
        )}
      </Popover>
      <Popover label={t.log.when} icon="clock" align="start">
        {(close) => (
          <div class="menu">
            {AGES_MIN.map((age) => (
              <button
                key={age}
                type="button"
                onClick={() => {
                  close();
                  const since = new Date(Date.now() - age * 60_000).toISOString();
                  setParams({ since, until: null });
                }}
              >
                {t.log.ages[age]}
              </button>
            ))}
            <button
              type="button"
              onClick={() => {
                close();
                setParams({ until: new Date().toISOString(), live: null });
              }}
            >
              {t.log.freeze}
            </button>
            <button
              type="button"
              onClick={() => (close(), setParams({ since: null, until: null }))}
            >
              {t.log.allTime}
            </button>
          </div>
        )}
      </Popover>
      {outcomes.map((outcome) => (
        <button
          key={outcome}
          type="button"
          class="chip"
          aria-label={t.log.remove(outcomeName(outcome))}
          onClick={() => toggle(outcome, false)}
        >
          <OutcomeTag outcome={outcome} />
          <Icon name="x" size={14} />
        </button>
      ))}
      {chips.map((field) => (
        <button
          key={field}
          type="button"
          class="chip"
          aria-label={t.log.remove(describe(field, filter[field]!))}
          onClick={() => setParams({ [field]: null })}
        >
          <bdi>{describe(field, filter[field]!)}</bdi>
          <Icon name="x" size={14} />
        </button>
      ))}
      {hasAny && (
        <button
          type="button"
          class="chip clear"
          onClick={() => {
            typed.value = "";
            setParams(Object.fromEntries(FIELDS.map((field) => [field, null])));
          }}
        >
          {t.log.clear}
        </button>
      )}
      <div class="log-tools">{children}</div>
    </div>
  );
}
