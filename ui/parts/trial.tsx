/** What a name would come to, for whom, with rules that are not saved yet. */
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, call, get } from "../data/api.ts";
import type { Explanation } from "../data/types.ts";
import { param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";
import { Field, Select } from "./controls.tsx";
import { ErrorBox } from "./errors.tsx";
import { Panel } from "./panel.tsx";
import { Picker, type PickOption } from "./picker.tsx";
import { Explained } from "./why.tsx";

const TYPES = ["A", "AAAA", "HTTPS", "CNAME", "TXT", "MX", "PTR"] as const;
/** Behind the last key, before it is asked. */
const TYPING_MS = 250;

async function explain(
  name: string,
  type: string,
  client: string,
  draft: readonly string[],
): Promise<Explanation> {
  if (draft.length > 0) {
    try {
      return await call<Explanation>("POST", "explain", {
        body: { name, type, ...(client !== "" && { client }), draft },
      });
    } catch (error) {
      // A rule that is half typed is none: what stands without it is told.
      if (!(error instanceof ApiError && error.status === 422)) throw error;
    }
  }
  return await get<Explanation>("explain", { name, type, client });
}

export function Trial({ draft, clients }: { draft: string; clients: readonly PickOption[] }) {
  const [name, type, client] = [param("test"), param("type") || "A", param("client")];
  const answer = useSignal<Explanation | null>(null);
  const error = useSignal<unknown>(null);
  const turn = useSignal(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const lines = draft.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  useEffect(() => {
    let isOver = false;
    clearTimeout(timer.current);
    if (name === "") {
      answer.value = null;
      error.value = null;
      return;
    }
    timer.current = setTimeout(async () => {
      try {
        const found = await explain(name, type, client, lines);
        if (isOver) return;
        answer.value = found;
        error.value = null;
      } catch (failure) {
        if (!isOver) error.value = failure;
      }
    }, answer.value === null ? 0 : TYPING_MS);
    return () => {
      isOver = true;
    };
  }, [name, type, client, lines.join("\n"), turn.value]);
  return (
    <div class="form" role="search" aria-label={t.rules.try}>
      <div class="fields">
        <Field label={t.common.name}>
          {(ids) => (
            <input
              {...ids}
              class="mono"
              autocomplete="off"
              spellcheck={false}
              placeholder="www.example.com"
              value={name}
              onInput={(event) => setParams({ test: event.currentTarget.value.trim() })}
            />
          )}
        </Field>
        <Field label={t.records.type}>
          {(ids) => (
            <Select
              {...ids}
              value={type}
              onChange={(value) => setParams({ type: value === "A" ? null : value })}
              choices={TYPES.map((one) => ({ value: one as string, label: one }))}
            />
          )}
        </Field>
        <Field label={t.rules.asWho} hint={t.rules.asWhoHint}>
          {(ids) => (
            <Picker
              ids={ids}
              free
              value={client}
              options={clients}
              onPick={(value) => setParams({ client: value })}
            />
          )}
        </Field>
      </div>
      <div aria-live="polite">
        {error.value !== null
          ? <ErrorBox error={error.value} onRetry={() => turn.value++} />
          : answer.value !== null && (
            <>
              <Explained of={answer.value} />
              <Panel
                key={`${answer.value.name} ${answer.value.outcome}`}
                name={answer.value.target ?? answer.value.name}
                type={type}
                decider={answer.value}
                client={{
                  id: answer.value.client?.id ?? null,
                  label: answer.value.client?.name ?? "",
                  ask: client === "" ? null : client,
                }}
                group={answer.value.group.id}
                onDone={() => turn.value++}
              />
            </>
          )}
      </div>
    </div>
  );
}
