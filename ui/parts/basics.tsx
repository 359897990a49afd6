/** The small parts that every page is made of. */
import type { ComponentChildren, ComponentProps } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { t } from "../text/mod.ts";
import { visible } from "./format.ts";
import { Icon } from "./icon.tsx";
import type { IconName } from "./icon_names.ts";

type Kind = "primary" | "plain" | "danger" | "quiet";

interface ButtonProps extends Omit<ComponentProps<"button">, "icon" | "label"> {
  readonly "data-focus"?: boolean;
  readonly "data-action"?: string;
  readonly kind?: Kind;
  readonly icon?: IconName;
  /** Shown beside the icon, or, with `iconOnly`, said alone. */
  readonly label: string;
  readonly iconOnly?: boolean;
  readonly small?: boolean;
  readonly isBusy?: boolean;
}

export function Button(
  { kind = "plain", icon, label, iconOnly = false, small = false, isBusy = false, ...rest }:
    ButtonProps,
) {
  return (
    <button
      type="button"
      {...rest}
      class={`button ${kind} ${small ? "small" : ""} ${iconOnly ? "only-icon" : ""} ${
        rest.class ?? ""
      }`}
      aria-busy={isBusy || undefined}
      disabled={rest.disabled || isBusy}
      {...(iconOnly && { "aria-label": label, title: label })}
    >
      {icon !== undefined && <Icon name={icon} />}
      {!iconOnly && <span>{label}</span>}
    </button>
  );
}

/** A name that anybody chose: it keeps its direction and its line to itself. */
export function Name({ text, mono = false }: { text: string; mono?: boolean }) {
  return <bdi class={mono ? "name mono" : "name"}>{visible(text)}</bdi>;
}

export function Tag(
  { children, kind = "plain", icon }: {
    children: ComponentChildren;
    kind?: "plain" | "ok" | "warning" | "danger" | "accent";
    icon?: IconName;
  },
) {
  return (
    <span class={`tag ${kind}`}>
      {icon !== undefined && <Icon name={icon} size={12} />}
      {children}
    </span>
  );
}

export function Card(
  { title, actions, children, class: extra = "", id }: {
    title?: ComponentChildren;
    actions?: ComponentChildren;
    children: ComponentChildren;
    class?: string;
    id?: string;
  },
) {
  return (
    <section class={`card ${extra}`} id={id}>
      {(title !== undefined || actions !== undefined) && (
        <header class="card-head">
          {title !== undefined && <h2>{title}</h2>}
          {actions !== undefined && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** The top of a page: its one heading, which takes the focus after a change of page. */
export function PageHead(
  { title, children, lead }: {
    title: ComponentChildren;
    children?: ComponentChildren;
    lead?: ComponentChildren;
  },
) {
  return (
    <div class="page-head">
      <div class="page-title">
        <h1 tabIndex={-1}>{title}</h1>
        {lead !== undefined && <p class="muted">{lead}</p>}
      </div>
      {children !== undefined && <div class="actions">{children}</div>}
    </div>
  );
}

/** One sentence what this is for, and one thing to do. */
export function Empty(
  { text, icon = "info", children }: {
    text: string;
    icon?: IconName;
    children?: ComponentChildren;
  },
) {
  return (
    <div class="empty">
      <Icon name={icon} size={24} />
      <p>{text}</p>
      {children}
    </div>
  );
}

export function Skeleton({ rows = 4 }: { rows?: number }) {
  return (
    <div class="skeletons" aria-busy="true" aria-label={t.common.loading} role="status">
      {Array.from({ length: rows }, (_, i) => <div key={i} class="skeleton" />)}
    </div>
  );
}

/** Copies a text and says so, where it could. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const isDone = useSignal(false);
  const copy = async (event: Event) => {
    if (!await copyText(text, event.currentTarget as HTMLElement)) return;
    isDone.value = true;
    setTimeout(() => isDone.value = false, 2_000);
  };
  return (
    <button type="button" class="button quiet small" onClick={copy}>
      <Icon name={isDone.value ? "check" : "copy"} />
      <span aria-live="polite">{isDone.value ? t.common.copied : label ?? t.common.copy}</span>
    </button>
  );
}

/**
 * Without TLS a browser keeps the clipboard to itself; there a selection is copied: one beside the
 * button, since a dialog that is open leaves nothing outside of it to be selected.
 */
async function copyText(text: string, button: HTMLElement): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return await navigator.clipboard.writeText(text).then(() => true, () => false);
  }
  const area = document.createElement("textarea");
  area.value = text;
  button.after(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  button.focus();
  return isCopied;
}

/** A text to take along, with what copies it. */
export function CopyLine({ label, text }: { label: string; text: string }) {
  return (
    <div class="copy-line">
      <span class="muted">{label}</span>
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}

/** Calls `onAway` for a press outside of the element, and for Esc in it. */
export function useAway(isOpen: boolean, onAway: () => void) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onPress = (event: Event) => {
      if (!ref.current?.contains(event.target as Node)) onAway();
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      onAway();
      ref.current?.querySelector<HTMLElement>("[aria-expanded]")?.focus();
    };
    document.addEventListener("pointerdown", onPress);
    ref.current?.addEventListener("keydown", onKey);
    const element = ref.current;
    return () => {
      document.removeEventListener("pointerdown", onPress);
      element?.removeEventListener("keydown", onKey);
    };
  }, [isOpen]);
  return ref;
}

/** A button with more behind it; who closes that is back at the button. */
export function Popover(
  {
    label,
    icon,
    kind = "plain",
    small = false,
    iconOnly = false,
    disabled = false,
    children,
    align = "end",
  }: {
    label: string;
    icon?: IconName;
    kind?: Kind;
    small?: boolean;
    iconOnly?: boolean;
    disabled?: boolean;
    align?: "start" | "end";
    children: (close: () => void) => ComponentChildren;
  },
) {
  const isOpen = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const ref = useAway(isOpen.value, () => isOpen.value = false);
  const close = () => {
    isOpen.value = false;
    button.current?.focus();
  };
  return (
    <div class="popover-anchor" ref={ref}>
      <button
        type="button"
        ref={button}
        class={`button ${kind} ${small ? "small" : ""} ${iconOnly ? "only-icon" : ""}`}
        aria-expanded={isOpen.value}
        aria-haspopup="true"
        disabled={disabled}
        onClick={() => isOpen.value = !isOpen.value}
        {...(iconOnly && { "aria-label": label, title: label })}
      >
        {icon !== undefined && <Icon name={icon} />}
        {!iconOnly && <span>{label}</span>}
        {!iconOnly && <Icon name="chevron-down" size={14} />}
      </button>
      {isOpen.value && <div class={`popover ${align}`}>{children(close)}</div>}
    </div>
  );
}
