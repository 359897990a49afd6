/** The languages of the dashboard, as they call themselves; data alone, for the build reads it as well. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;
