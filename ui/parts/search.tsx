/** One box for everything: why a name is blocked, where it is in the log, devices, groups, pages. */
import { signal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { keptOf } from "../data/collections.ts";
import { hasCluster } from "../data/node.ts";
import { NAV } from "../pages.ts";
import { hrefOf, navigate } from "../router.ts";
import { t } from "../text/mod.ts";
import { Dialog } from "./dialog.tsx";
import { visible } from "./format.ts";
import { Icon } from "./icon.tsx";
import type { IconName } from "./icon_names.ts";

const OPTIONS_MAX = 9;

const isOpen = signal(false);
const text = signal("");
const at = signal(0);

export function openSearch(): void {
  text.value = "";
  at.value = 0;
  isOpen.value = true;
}

interface Option {
  readonly href: string;
  readonly icon: IconName;
  readonly label: string;
  readonly kind: string;
}

/** What somebody may mean by these words, the likeliest first. */
function optionsFor(words: string): Option[] {
  const said = words.trim().toLowerCase();
  const has = (label: string) => label.toLowerCase().includes(said);
  const pages = NAV.flat().filter(({ needsCluster }) => !needsCluster || hasCluster.value)
    .map(({ href, icon, title }) => ({ href, icon, label: t.pages[title], kind: t.search.page }));
  if (said === "") return pages.slice(0, OPTIONS_MAX);
  const clients = (keptOf("clients").items.value ?? [])
    .filter(({ spec }) => [spec.name, ...spec.addresses, ...spec.ids].some(has))
    .map(({ id, spec }): Option => ({
      href: `/clients/${id}`,
      icon: "monitor-smartphone",
      label: visible(spec.name),
      kind: t.search.device,
    }));
  const groups = (keptOf("groups").items.value ?? []).filter(({ spec }) => has(spec.name))
    .map(({ id, spec }): Option => ({
      href: `/groups/${id}`,
      icon: "users",
      label: visible(spec.name),
      kind: t.search.group,
    }));
  const name = /^(?:https?:\/\/)?([^\s/:?#]+)/.exec(said)?.[1] ?? said;
  const about: Option[] = [
    {
      href: hrefOf("/rules", { test: name }),
      icon: "circle-question-mark",
      label: t.search.explain(visible(name)),
      kind: "",
    },
    {
      href: hrefOf("/log", { name }),
      icon: "scroll-text",
      label: t.search.inLog(visible(name)),
      kind: "",
    },
  ];
  const others = [...clients, ...groups, ...pages.filter(({ label }) => has(label))];
  const isName = name.includes(".");
  return (isName ? [...about, ...others] : [...others, ...about]).slice(0, OPTIONS_MAX);
}

export function Search() {
  const id = useId();
  useEffect(() => {
    if (!isOpen.value) return;
    void keptOf("clients").load();
    void keptOf("groups").load();
  }, [isOpen.value]);
  if (!isOpen.value) return null;
  const options = optionsFor(text.value);
  const close = () => isOpen.value = false;
  const go = ({ href }: Option) => {
    close();
    void navigate(href);
  };
  const onKey = (event: KeyboardEvent) => {
    const options = optionsFor(text.value); // Of what is typed by now, drawn or not.
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      at.value = (at.value + step + options.length) % Math.max(options.length, 1);
    } else if (event.key === "Enter" && options[at.value] !== undefined) {
      event.preventDefault();
      go(options[at.value]);
    }
  };
  return (
    <Dialog title={t.search.title} onClose={close}>
      <input
        type="text"
        class="search-input"
        role="combobox"
        aria-label={t.search.title}
        aria-expanded="true"
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={options.length === 0 ? undefined : `${id}${at.value}`}
        placeholder={t.search.hint}
        autocomplete="off"
        spellcheck={false}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={onKey}
      />
      <ul class="options" role="listbox" id={`${id}list`} aria-label={t.search.title}>
        {options.map((option, i) => (
          <li
            key={option.href}
            id={`${id}${i}`}
            role="option"
            aria-selected={i === at.value}
            onClick={() => go(option)}
          >
            <Icon name={option.icon} />
            <bdi>{option.label}</bdi>
            <span class="muted">{option.kind}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
