/** One of many, found by typing: a combobox with its list (WAI-ARIA practices). */
import { useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { t } from "../text/mod.ts";
import { visible } from "./format.ts";

const OPTIONS_MAX = 40;

export interface PickOption {
  readonly value: string;
  readonly label: string;
  readonly more?: string;
}

export function Picker(
  { value, options, onPick, placeholder, free = false, ids = {}, label }: {
    value: string;
    options: readonly PickOption[];
    onPick: (value: string) => void;
    placeholder?: string;
    /** Whatever is typed is taken, of the list or not. */
    free?: boolean;
    ids?: { readonly id?: string };
    label?: string;
  },
) {
  const id = useId();
  const typed = useSignal<string | null>(null);
  const at = useSignal(0);
  const chosen = options.find((option) => option.value === value);
  const text = typed.value ?? (chosen === undefined ? value : visible(chosen.label));
  const find = () => {
    const said = (typed.value ?? "").trim().toLowerCase();
    return options.filter(({ label, more = "" }) =>
      said === "" || label.toLowerCase().includes(said) || more.toLowerCase().includes(said)
    ).slice(0, OPTIONS_MAX);
  };
  const found = find();
  const isOpen = typed.value !== null && found.length > 0;
  const pick = (next: string) => {
    typed.value = null;
    onPick(next);
  };
  const onKey = (event: KeyboardEvent) => {
    const found = find(); // Of what is typed by now, drawn or not.
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (typed.value === null) typed.value = "";
      else at.value = (at.value + step + found.length) % Math.max(found.length, 1);
    } else if (event.key === "Enter" && isOpen) {
      event.preventDefault();
      pick(found[at.value]?.value ?? value);
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      event.stopPropagation();
      typed.value = null;
    }
  };
  return (
    <div class="picker">
      <input
        {...ids}
        type="text"
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen ? `${id}${at.value}` : undefined}
        aria-label={label}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          at.value = 0;
          if (free) onPick(event.currentTarget.value);
          else if (event.currentTarget.value === "") onPick("");
        }}
        onFocus={(event) => event.currentTarget.select()}
        onClick={() => typed.value ??= ""}
        onBlur={() => typed.value = null}
        onKeyDown={onKey}
      />
      <ul
        class="options picker-list"
        role="listbox"
        id={`${id}list`}
        aria-label={label ?? t.common.search}
        hidden={!isOpen}
      >
        {isOpen && found.map((option, i) => (
          <li
            key={option.value}
            id={`${id}${i}`}
            role="option"
            aria-selected={i === at.value}
            onPointerDown={(event) => {
              event.preventDefault();
              pick(option.value);
            }}
          >
            <bdi>{visible(option.label)}</bdi>
            {option.more !== undefined && <span class="muted">{option.more}</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}
