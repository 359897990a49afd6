import { signal } from "@preact/signals";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = typeof THEMES[number];

const KEY = "svc.theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  const text = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === text) ?? "auto";
}

export const theme = signal<Theme>(stored());
/** What is seen; charts are drawn in its colours. */
export const isDark = signal(false);

function show(): void {
  isDark.value = theme.value === "dark" || (theme.value === "auto" && DARK.matches);
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
}

export function setTheme(next: Theme): void {
  theme.value = next;
  localStorage.setItem(KEY, next);
  show();
}

/** Single keys can get in the way of who dictates; they can be switched off. */
const KEYS = "svc.keys";
export const hasKeys = signal(localStorage.getItem(KEYS) !== "off");
export function setKeys(on: boolean): void {
  hasKeys.value = on;
  localStorage.setItem(KEYS, on ? "on" : "off");
}

DARK.addEventListener("change", show);
show();
