import { useSignal } from "@preact/signals";
import {
  changeSettings,
  hasCluster,
  isReadOnly,
  nowMs,
  pausedUntil,
  pauseFor,
  resume,
  status,
} from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import { secondsUntilHour } from "../data/periods.ts";
import { t } from "../text/mod.ts";
import { Button, Popover } from "./basics.tsx";
import { attempt } from "./errors.tsx";
import { countdown } from "./format.ts";
import { Icon } from "./icon.tsx";

const MORNING_HOUR = 6;
const MINUTES_MAX = 7 * 24 * 60;

/** Whether queries are filtered, and a way to stop that for a while. */
export function PauseControl() {
  const minutes = useSignal("");
  if (status.value === null) return null;
  const until = pausedUntil.value;
  const isOff = !status.value.protection;
  const state = isOff ? "off" : until !== null ? "paused" : "on";
  const left = until === null ? "" : countdown(until.getTime() - nowMs.value);
  const text = { on: t.pause.filtering, paused: t.pause.pausedFor(left), off: t.pause.off }[state];
  return (
    <div class={`filtering ${state}`}>
      <span class="filtering-state" title={text}>
        <Icon name={state === "on" ? "shield-check" : state === "off" ? "shield-off" : "pause"} />
        <span class="filtering-text">{text}</span>
      </span>
      {isAdmin.value && state === "paused" && (
        <Button
          small
          icon="play"
          label={t.pause.resume}
          onClick={() => attempt(resume)}
        />
      )}
      {isAdmin.value && state === "on" && (
        <Popover small label={t.pause.pause} icon="pause">
          {(close) => {
            const go = (seconds: number) => {
              close();
              void attempt(() => pauseFor(seconds));
            };
            const own = Number(minutes.value);
            const isGood = Number.isInteger(own) && own >= 1 && own <= MINUTES_MAX;
            return (
              <div class="menu">
                {hasCluster.value && <p class="menu-note">{t.pause.nodeOnly}</p>}
                <button type="button" onClick={() => go(300)}>{t.pause.minutes(5)}</button>
                <button type="button" onClick={() => go(1_800)}>{t.pause.minutes(30)}</button>
                <button type="button" onClick={() => go(3_600)}>{t.pause.hour}</button>
                <button type="button" onClick={() => go(secondsUntilHour(MORNING_HOUR))}>
                  {t.pause.untilMorning}
                </button>
                <form
                  class="menu-form"
                  onSubmit={(event) => {
                    event.preventDefault();
                    if (isGood) go(own * 60);
                  }}
                >
                  <input
                    inputMode="numeric"
                    aria-label={t.pause.own}
                    placeholder={t.pause.own}
                    value={minutes.value}
                    onInput={(event) => minutes.value = event.currentTarget.value}
                  />
                  <Button small type="submit" label={t.pause.pause} disabled={!isGood} />
                </form>
              </div>
            );
          }}
        </Popover>
      )}
      {isAdmin.value && state === "off" && (
        <Button
          small
          icon="play"
          label={t.pause.turnOn}
          disabled={isReadOnly.value}
          onClick={() =>
            attempt(() => changeSettings((settings) => ({ ...settings, protection: true }), null))}
        />
      )}
    </div>
  );
}
