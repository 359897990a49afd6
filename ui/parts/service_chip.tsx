/** A blocked service of a group: how long it is let through, by a press. */
import { pauseService } from "../data/decide.ts";
import { mayChange, nowMs } from "../data/node.ts";
import { pauseEnd } from "../data/pauses.ts";
import { endOf } from "../data/periods.ts";
import type { Specs } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Popover, Tag } from "./basics.tsx";
import { attempt } from "./errors.tsx";
import { moment } from "./format.ts";
import { serviceName } from "./names.ts";

export function ServiceChip(
  { group, blocked: { service, paused_until }, isNamed = true }: {
    group: string;
    /** Otherwise its name stands beside it. */
    isNamed?: boolean;
    blocked: Specs["groups"]["blocked_services"][number];
  },
) {
  const name = serviceName(service);
  const end = pauseEnd(paused_until, nowMs.value);
  if (!mayChange.value) {
    return <Tag icon={end === null ? "ban" : "clock"}>{name}</Tag>;
  }
  const pause = (period: "hour" | "today") => {
    const until = endOf(period);
    return attempt(() =>
      pauseService(group, service, until, t.groups.serviceAllowed(name, moment(until)))
    );
  };
  return (
    <Popover
      small
      align="start"
      icon={end === null ? "ban" : "clock"}
      label={end === null
        ? isNamed ? name : t.groups.allowAWhile
        : isNamed
        ? t.groups.until(name, moment(end))
        : t.panel.until(moment(end))}
    >
      {(close) => (
        <div class="menu">
          {end !== null && (
            <button
              type="button"
              onClick={() => {
                close();
                void attempt(() =>
                  pauseService(group, service, null, t.groups.serviceBlocked(name))
                );
              }}
            >
              {t.groups.blockAgain(name)}
            </button>
          )}
          <button type="button" onClick={() => (close(), void pause("hour"))}>
            {t.groups.allowHour(name)}
          </button>
          <button type="button" onClick={() => (close(), void pause("today"))}>
            {t.groups.allowToday(name)}
          </button>
          <a href={`/groups/${group}?tab=services`} onClick={close}>{t.common.details}</a>
        </div>
      )}
    </Popover>
  );
}
