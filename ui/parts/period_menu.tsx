import { endOf } from "../data/periods.ts";
import { t } from "../text/mod.ts";
import { Popover } from "./basics.tsx";
import type { IconName } from "./icon_names.ts";

/** A button that asks for how long: an hour, or the rest of today. */
export function PeriodMenu(
  { label, icon, small = false, onPick }: {
    label: string;
    icon: IconName;
    small?: boolean;
    onPick: (until: Date) => unknown;
  },
) {
  return (
    <Popover label={label} icon={icon} small={small}>
      {(close) => (
        <div class="menu">
          {(["hour", "today"] as const).map((period) => (
            <button
              key={period}
              type="button"
              onClick={() => {
                close();
                onPick(endOf(period));
              }}
            >
              {t.panel.periods[period]}
            </button>
          ))}
        </div>
      )}
    </Popover>
  );
}
