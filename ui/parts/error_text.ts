import { ApiError, AwayError } from "../data/api.ts";
import { t } from "../text/mod.ts";
import { visible } from "./format.ts";

/** What went wrong, led by what that means, with the API's own words behind. */
export function errorText(error: unknown): string {
  if (error instanceof AwayError) return t.errors.away;
  if (error instanceof DOMException && error.name === "TimeoutError") return t.errors.away;
  if (!(error instanceof ApiError)) return String(error);
  const lead = (t.errors.codes as Readonly<Record<string, string>>)[error.code];
  const message = visible(error.message);
  return lead === undefined ? message || t.errors.other(error.status) : `${lead} ${message}`.trim();
}

const PAGES: Readonly<Record<string, string>> = {
  li: "/lists",
  ru: "/rules",
  re: "/records",
  gr: "/groups",
  cl: "/clients",
  sc: "/schedules",
  us: "/users",
  to: "/tokens",
  wh: "/webhooks",
};

/** Where somebody finds the resource of an ID. */
export function pageOf(id: string): string | null {
  const page = PAGES[id.slice(0, 2)];
  if (page === undefined) return null;
  return ["/groups", "/clients", "/schedules"].includes(page) ? `${page}/${id}` : page;
}

/** What an error names, as places to go to: `is used by gr_… (Kids)`. */
export function linksIn(error: unknown): { href: string; label: string }[] {
  if (!(error instanceof ApiError) || error.status !== 409) return [];
  return Array.from(error.message.matchAll(/\b([a-z]{2}_[0-9a-f]{16})(?: \(([^)]*)\))?/g))
    .flatMap(([, id, name]) => {
      const href = pageOf(id);
      return href === null ? [] : [{ href, label: name ?? id }];
    }).slice(0, 3);
}
