/** What somebody chose for this browser; no signals, for it is asked before anything is loaded. */
import { type Language, LANGUAGES } from "./languages.ts";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = typeof THEMES[number];

const THEME_KEY = "svc.theme";
const LANGUAGE_KEY = "svc.language";
export const DARK = matchMedia("(prefers-color-scheme: dark)");

/** What the browser keeps for this page; nothing, where it keeps nothing for anybody. */
export function kept(key: string, storage = () => localStorage): string | null {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
}

export function keep(key: string, text: string, storage = () => localStorage): void {
  try {
    storage().setItem(key, text);
  } catch {
    // It holds until the page is left.
  }
}

export function keptTheme(): Theme {
  const text = kept(THEME_KEY);
  return THEMES.find((theme) => theme === text) ?? "auto";
}

export function keepTheme(theme: Theme): void {
  keep(THEME_KEY, theme);
}

/** Shows the page in the theme's colours; says whether they are the dark ones. */
export function showTheme(theme: Theme): boolean {
  const isDark = theme === "dark" || (theme === "auto" && DARK.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  return isDark;
}

function isLanguage(text: string | null | undefined): text is Language {
  return text !== null && text !== undefined && Object.hasOwn(LANGUAGES, text);
}

/** The language that was chosen, else the first of the browser's that there is. */
export function preferredLanguage(): Language {
  const chosen = kept(LANGUAGE_KEY);
  if (isLanguage(chosen)) return chosen;
  return navigator.languages.map((one) => one.slice(0, 2)).find(isLanguage) ?? "en";
}

export function keepLanguage(language: Language): void {
  keep(LANGUAGE_KEY, language);
}
