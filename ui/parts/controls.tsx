/** What is switched, chosen and typed in. */
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { t } from "../text/mod.ts";
import { sayError } from "./errors.tsx";

/** Saves at once, and goes back where that fails. */
export function Switch(
  { isOn, label, onChange, disabled = false, hideLabel = false, why }: {
    isOn: boolean;
    label: string;
    onChange: (on: boolean) => Promise<unknown> | void;
    disabled?: boolean;
    hideLabel?: boolean;
    why?: string | undefined;
  },
) {
  const pending = useSignal<boolean | null>(null);
  const shown = pending.value ?? isOn;
  const flip = async () => {
    pending.value = !shown;
    try {
      await onChange(!shown);
    } catch (error) {
      sayError(error);
    } finally {
      pending.value = null;
    }
  };
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={shown}
      aria-label={hideLabel ? label : undefined}
      title={why ?? (hideLabel ? label : undefined)}
      disabled={disabled}
      onClick={flip}
    >
      <span class="track" aria-hidden="true">
        <span class="thumb" />
      </span>
      {!hideLabel && <span class="switch-label">{label}</span>}
    </button>
  );
}

export interface Choice<V extends string> {
  readonly value: V;
  readonly label: ComponentChildren;
  readonly disabled?: boolean;
}

/** One of a few, all in sight. */
export function Segmented<V extends string>(
  { label, value, choices, onChange, wrap = false }: {
    label: string;
    value: V;
    choices: readonly Choice<V>[];
    onChange: (value: V) => void;
    wrap?: boolean;
  },
) {
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const open = choices.filter(({ disabled }) => disabled !== true);
    const at = open.findIndex((choice) => choice.value === value);
    const next = open[(at + step + open.length) % open.length];
    onChange(next.value);
    const group = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => group.querySelector<HTMLElement>("[aria-checked=true]")?.focus());
  };
  return (
    <div
      role="radiogroup"
      aria-label={label}
      class={`segmented ${wrap ? "wrap" : ""}`}
      onKeyDown={move}
    >
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          role="radio"
          aria-checked={choice.value === value}
          tabIndex={choice.value === value ? 0 : -1}
          disabled={choice.disabled}
          onClick={() => onChange(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}

/** Parts of a page; each has its place in the URL. */
export function Tabs<V extends string>(
  { label, value, tabs }: {
    label: string;
    value: V;
    tabs: readonly { value: V; label: string; href: string; count?: number | null }[];
  },
) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.value} href={tab.href} aria-current={tab.value === value ? "page" : undefined}>
          {tab.label}
          {tab.count !== undefined && tab.count !== null && <span class="count">{tab.count}</span>}
        </a>
      ))}
    </nav>
  );
}

/** A control with its name, what it is about, and what is wrong with it. */
export function Field(
  { label, hint, error, children, optional = false }: {
    label: string;
    hint?: ComponentChildren;
    error?: string | undefined;
    optional?: boolean;
    children: (
      ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: true },
    ) => ComponentChildren;
  },
) {
  const id = useId();
  const about = [hint !== undefined && `${id}h`, error !== undefined && `${id}e`]
    .filter((one) => one !== false).join(" ");
  return (
    <div class={error === undefined ? "field" : "field bad"}>
      <label for={id}>
        {label}
        {optional && <span class="muted">{` (${t.common.optional})`}</span>}
      </label>
      {children({
        id,
        ...(about !== "" && { "aria-describedby": about }),
        ...(error !== undefined && { "aria-invalid": true as const }),
      })}
      {hint !== undefined && <p class="hint" id={`${id}h`}>{hint}</p>}
      {error !== undefined && <p class="problem" id={`${id}e`}>{error}</p>}
    </div>
  );
}

/** A field of one line of text. */
export function TextField(
  { label, hint, error, optional = false, onText, ...input }: {
    label: string;
    hint?: ComponentChildren;
    error?: string | undefined;
    optional?: boolean;
    value: string;
    onText: (text: string) => void;
    class?: string;
    placeholder?: string;
    inputMode?: "numeric";
    autocomplete?: "off" | "username" | "one-time-code";
    autocapitalize?: "none";
  },
) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional}>
      {(ids) => (
        <input
          {...ids}
          {...input}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

const CHOICES_AT_ONCE = 30;

export function Select<V extends string>(
  { value, choices, onChange, ...rest }: {
    value: V;
    choices: readonly { value: V; label: string }[];
    /** What it returns is waited for: where it came to nothing, `value` is shown again. */
    onChange: (value: V) => unknown;
    id?: string;
    disabled?: boolean;
    class?: string;
    "aria-label"?: string;
  },
) {
  // Where there are many, in many rows: they are there for as long as somebody chooses.
  const isOpen = useSignal(false);
  const open = () => isOpen.value = true;
  const now = useRef(value);
  now.current = value;
  const choose = async (element: HTMLSelectElement) => {
    const work = onChange(element.value as V);
    if (!(work instanceof Promise)) return;
    await work;
    element.value = now.current;
  };
  const shown = isOpen.value || choices.length <= CHOICES_AT_ONCE
    ? choices
    : choices.filter((choice) => choice.value === value);
  return (
    <select
      {...rest}
      value={value}
      onPointerDown={open}
      onFocus={open}
      onBlur={() => isOpen.value = false}
      onChange={(event) => void choose(event.currentTarget)}
    >
      {shown.map((choice) => (
        <option key={choice.value} value={choice.value} selected={choice.value === value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

/** Finds among what is shown. */
export function SearchBox(
  { value, label, onInput }: { value: string; label: string; onInput: (text: string) => void },
) {
  return (
    <input
      type="search"
      class="search-box"
      value={value}
      placeholder={label}
      aria-label={label}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

export function Check(
  { isOn, label, onChange, disabled = false }: {
    isOn: boolean;
    label: ComponentChildren;
    onChange: (on: boolean) => void;
    disabled?: boolean;
  },
) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isOn}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
