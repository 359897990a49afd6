/** The words of the page in the reader's language, loaded when they are needed. */
import { signal } from "@preact/signals";
import type { Text } from "./en.ts";

export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const KEY = "svc.language";

const LOADERS: Readonly<Record<Language, () => Promise<Text>>> = {
  en: async () => (await import("./en.ts")).en,
  de: async () => (await import("./de.ts")).de,
};

/** What is said, set before anything is drawn. */
export let t: Text;
export const language = signal<Language>("en");

function isLanguage(text: string | null | undefined): text is Language {
  return text !== null && text !== undefined && Object.hasOwn(LANGUAGES, text);
}

/** The language that was chosen, else the first of the browser's that there is. */
export function preferredLanguage(): Language {
  const chosen = localStorage.getItem(KEY);
  if (isLanguage(chosen)) return chosen;
  return navigator.languages.map((one) => one.slice(0, 2)).find(isLanguage) ?? "en";
}

export async function setLanguage(next: Language, keep = true): Promise<void> {
  t = await LOADERS[next]();
  if (keep) localStorage.setItem(KEY, next);
  document.documentElement.lang = next;
  language.value = next;
}
