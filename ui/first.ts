/**
 * The shell's own script, inside the page: shows the theme before anything is painted, and asks for
 * what the page will need, files and data, while its scripts are on their way.
 */
import { begin } from "./data/begun.ts";
import { apiPath, spanOf, statsParams } from "./data/paths.ts";
import { findPage, isAlone, type PagePath } from "./page_paths.ts";
import type { Language } from "./languages.ts";
import { keptTheme, preferredLanguage, showTheme } from "./preferences.ts";

/** The files that each language and page is made of, made by the build, as JSON. */
declare const FILES: string;

interface Files {
  readonly languages: Readonly<Record<Language, readonly string[]>>;
  readonly pages: Readonly<Record<PagePath, readonly string[]>>;
}

showTheme(keptTheme());
const page = findPage(location.pathname)?.page ?? null;
const { languages, pages }: Files = JSON.parse(FILES);
for (const path of [...languages[preferredLanguage()], ...(page === null ? [] : pages[page])]) {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = path;
  document.head.append(link);
}
if (page !== null && isAlone(page)) document.documentElement.dataset.alone = "";
begin(apiPath("auth/me"));
if (page !== null && !isAlone(page)) {
  // Not one behind the other: whoever is let in needs them all, and nobody else is told anything.
  begin(apiPath("status"));
  if (page === "/") {
    const hours = spanOf(new URLSearchParams(location.search).get("hours"));
    begin(apiPath("stats", statsParams({ hours, scope: "node" })));
  }
}
