import { signal } from "@preact/signals";
import { DARK, keep, keepTheme, kept, keptTheme, showTheme, type Theme } from "./preferences.ts";

export const theme = signal<Theme>(keptTheme());
/** What is seen; charts are drawn in its colours. */
export const isDark = signal(showTheme(theme.value));

export function setTheme(next: Theme): void {
  theme.value = next;
  keepTheme(next);
  isDark.value = showTheme(next);
}

/** Single keys can get in the way of who dictates; they can be switched off. */
const KEYS = "svc.keys";
export const hasKeys = signal(kept(KEYS) !== "off");
export function setKeys(on: boolean): void {
  hasKeys.value = on;
  keep(KEYS, on ? "on" : "off");
}

DARK.addEventListener("change", () => isDark.value = showTheme(theme.value));
