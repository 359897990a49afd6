/** Does this browser ask this resolver? Names that only the service answers tell. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { call, get } from "../data/api.ts";
import type { LeakTest } from "../data/types.ts";
import { Button, Card, PageHead } from "../parts/basics.tsx";
import { attempt } from "../parts/errors.tsx";
import { Icon } from "../parts/icon.tsx";
import { t } from "../text/mod.ts";

const WATCH_MS = 5_000;
const POLL_MS = 500;

export default function LeakTestPage() {
  const test = useSignal<LeakTest | null>(null);
  const isRunning = useSignal(false);
  const run = async () => {
    isRunning.value = true;
    test.value = null;
    await attempt(async () => {
      const begun = await call<LeakTest>("POST", "leak-tests");
      for (const name of begun.names) lookUp(name);
      for (const end = Date.now() + WATCH_MS; Date.now() < end;) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        test.value = await get<LeakTest>(`leak-tests/${begun.id}`);
        if (test.value.reached === begun.names.length) break;
      }
    });
    isRunning.value = false;
  };
  useEffect(() => void run(), []);
  return (
    <>
      <PageHead title={t.pages.leakTest} lead={t.leak.lead}>
        <Button
          kind="primary"
          icon="refresh-cw"
          label={t.leak.again}
          isBusy={isRunning.value}
          onClick={run}
        />
      </PageHead>
      <Card class="leak">
        <div role="status" aria-live="polite">
          {isRunning.value && test.value?.reached !== test.value?.names.length
            ? (
              <p class="leak-line">
                <span class="pulse" aria-hidden="true" />
                {t.leak.running}
              </p>
            )
            : test.value !== null && <Result of={test.value} />}
        </div>
      </Card>
    </>
  );
}

/** An image is looked up; it is never there. */
function lookUp(name: string): void {
  new Image().src = `${location.protocol}//${name}/leak.png`;
}

function Result({ of: { reached, names, lookups } }: { of: LeakTest }) {
  const kind = reached === names.length ? "ok" : reached === 0 ? "danger" : "warning";
  const text = { ok: t.leak.all, warning: t.leak.some, danger: t.leak.none }[kind];
  const who = [
    ...new Set(
      lookups.map(({ address, protocol, client }) =>
        t.leak.from(client ?? address, protocol.toUpperCase())
      ),
    ),
  ];
  return (
    <>
      <p class={`leak-line ${kind}`}>
        <Icon name={kind === "ok" ? "shield-check" : "triangle-alert"} size={24} />
        <strong>{t.leak.reached(reached, names.length)}</strong>
      </p>
      <p>{text}</p>
      {who.length > 0 && <ul class="muted">{who.map((one) => <li key={one}>{one}</li>)}</ul>}
      {kind !== "ok" && <p class="muted">{t.leak.help}</p>}
    </>
  );
}
