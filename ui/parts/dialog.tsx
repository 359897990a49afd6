import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { t } from "../text/mod.ts";
import { Button } from "./basics.tsx";
import { Icon } from "./icon.tsx";

/** What had the focus before each dialog that is there. */
const befores = new Map<HTMLDialogElement, Element | null>();

/** A matter of its own; the focus is kept in it and goes back behind it. */
export function Dialog(
  { title, onClose, children, wide = false, canClose = true }: {
    title: string;
    onClose: () => void;
    children: ComponentChildren;
    wide?: boolean;
    canClose?: boolean;
  },
) {
  const ref = useRef<HTMLDialogElement>(null);
  const begun = useRef<EventTarget | null>(null);
  const id = useId();
  // With what is drawn, not behind a paint: keys may come at once.
  useLayoutEffect(() => {
    const dialog = ref.current!;
    befores.set(dialog, document.activeElement);
    dialog.showModal();
    dialog.querySelector<HTMLElement>("[data-focus], input:not([type=hidden]), select, textarea")
      ?.focus();
    return () => {
      const before = befores.get(dialog) ?? null;
      befores.delete(dialog);
      // One that came of this and stays leads back past it.
      for (const [other, element] of befores) {
        if (dialog.contains(element)) befores.set(other, before);
      }
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (canClose) onClose();
      }}
      onPointerDown={(event) => begun.current = event.target}
      onClick={(event) => {
        // A selection that is drawn out of it is no press beside it.
        const isBeside = event.target === ref.current && begun.current === ref.current;
        if (canClose && isBeside) onClose();
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          {canClose && (
            <button
              type="button"
              class="button quiet only-icon"
              aria-label={t.common.close}
              onClick={onClose}
            >
              <Icon name="x" />
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface Question {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly isDanger: boolean;
  /** What has to be typed before. */
  readonly word: string | null;
  readonly answer: (yes: boolean) => void;
}
const question = signal<Question | null>(null);
const typed = signal("");

/** Asks before what can't be undone. */
export function confirm(
  title: string,
  text: string,
  yes: string,
  { isDanger = true, word = null }: { isDanger?: boolean; word?: string | null } = {},
): Promise<boolean> {
  typed.value = "";
  return new Promise((resolve) => {
    const answer = (said: boolean) => {
      question.value = null;
      resolve(said);
    };
    question.value = { title, text, yes, isDanger, word, answer };
  });
}

/** Where `confirm` asks. */
export function Confirmation() {
  const asked = question.value;
  if (asked === null) return null;
  const isTyped = asked.word === null || typed.value === asked.word;
  return (
    <Dialog title={asked.title} onClose={() => asked.answer(false)}>
      <p>{asked.text}</p>
      {asked.word !== null && (
        <label class="field">
          <span>{t.common.typeToConfirm(asked.word)}</span>
          <input
            value={typed.value}
            autocomplete="off"
            onInput={(event) => typed.value = event.currentTarget.value}
          />
        </label>
      )}
      <div class="form-actions">
        <Button data-focus label={t.common.cancel} onClick={() => asked.answer(false)} />
        <Button
          kind={asked.isDanger ? "danger" : "primary"}
          label={asked.yes}
          disabled={!isTyped}
          onClick={() => asked.answer(true)}
        />
      </div>
    </Dialog>
  );
}
