import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { number } from "./format.ts";

const STEP = 100;

/** The first of many, and more of them by a press: ten thousand at once take long to be drawn. */
export function Pieces<R>(
  { of, step = STEP, children }: {
    of: readonly R[];
    step?: number;
    children: (shown: readonly R[]) => ComponentChildren;
  },
) {
  const most = useSignal(step);
  return (
    <>
      {children(of.slice(0, most.value))}
      {of.length > most.value && (
        <div class="pieces">
          <span class="muted small">{t.common.shown(number(most.value), number(of.length))}</span>
          <Button small label={t.common.more} onClick={() => most.value += step} />
        </div>
      )}
    </>
  );
}
