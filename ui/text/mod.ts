/** The words of the page in the reader's language, loaded when they are needed. */
import { signal } from "@preact/signals";
import type { Language } from "../languages.ts";
import { keepLanguage } from "../preferences.ts";
import type { Text } from "./en.ts";

const LOADERS: Readonly<Record<Language, () => Promise<Text>>> = {
  en: async () => (await import("./en.ts")).en,
  de: async () => (await import("./de.ts")).de,
};

/** What is said, set before anything is drawn. */
export let t: Text;
export const language = signal<Language>("en");

export async function setLanguage(next: Language, keep = true): Promise<void> {
  t = await LOADERS[next]();
  if (keep) keepLanguage(next);
  document.documentElement.lang = next;
  language.value = next;
}
