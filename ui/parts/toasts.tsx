import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { t } from "../text/mod.ts";
import { errorText } from "./error_text.ts";
import { visible } from "./format.ts";
import { Icon } from "./icon.tsx";

/** How long a toast stays that nobody looks at. */
const SHOWN_MS = 10_000;
const TOASTS_MAX = 3;

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo: (() => Promise<unknown>) | null;
  readonly kind: "plain" | "danger";
  readonly links: readonly { readonly href: string; readonly label: string }[];
  readonly keep: { readonly label: string; readonly run: () => Promise<unknown> } | null;
}

const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Says what was done, with a way back. */
export function toast(
  text: string,
  undo: (() => Promise<unknown>) | null = null,
  kind: Toast["kind"] = "plain",
  links: Toast["links"] = [],
  keep: Toast["keep"] = null,
): void {
  const id = ++last;
  toasts.value = [...toasts.value, { id, text, undo, kind, links, keep }].slice(-TOASTS_MAX);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

function OneToast({ one }: { one: Toast }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const run = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => dismiss(one.id), SHOWN_MS);
  };
  const hold = () => clearTimeout(timer.current);
  useEffect(() => {
    run();
    return hold;
  }, []);
  const act = async (work: () => Promise<unknown>) => {
    dismiss(one.id);
    try {
      await work();
    } catch (error) {
      toast(errorText(error), null, "danger");
    }
  };
  return (
    <div
      class={`toast ${one.kind}`}
      onMouseEnter={hold}
      onMouseLeave={run}
      onFocusCapture={hold}
      onBlurCapture={run}
    >
      <Icon name={one.kind === "danger" ? "circle-alert" : "check"} />
      <span class="toast-text">{visible(one.text)}</span>
      {one.links.map(({ href, label }) => <a key={href} href={href}>{label}</a>)}
      {one.undo !== null && (
        <button
          type="button"
          class="toast-action"
          onClick={() => act(one.undo!)}
        >
          {t.common.undo}
        </button>
      )}
      {one.keep !== null && (
        <button
          type="button"
          class="toast-action"
          onClick={() => act(one.keep!.run)}
        >
          {one.keep.label}
        </button>
      )}
      <button
        type="button"
        class="toast-close"
        aria-label={t.common.dismiss}
        onClick={() => dismiss(one.id)}
      >
        <Icon name="x" />
      </button>
    </div>
  );
}

/** There from the start, so that what is put into it is heard; F8 leads to it. */
export function Toasts() {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "F8") ref.current?.querySelector<HTMLElement>("button, a")?.focus();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite" ref={ref}>
      {toasts.value.map((one) => <OneToast key={one.id} one={one} />)}
    </div>
  );
}
