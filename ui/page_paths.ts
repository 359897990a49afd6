/** Where the dashboard has pages; data alone, for the build reads it as well. */
export const PAGE_PATHS = [
  "/",
  "/log",
  "/lists",
  "/lists/move",
  "/rules",
  "/records",
  "/clients",
  "/clients/:id",
  "/groups",
  "/groups/:id",
  "/schedules",
  "/schedules/:id",
  "/settings",
  "/users",
  "/tokens",
  "/webhooks",
  "/account",
  "/cluster",
  "/connect",
  "/leak-test",
  "/audit",
  "/sign-in",
  "/reset",
  "/setup",
] as const;
export type PagePath = typeof PAGE_PATHS[number];

/** Pages without navigation around them. */
const ALONE: readonly PagePath[] = ["/sign-in", "/reset", "/setup"];

export function isAlone(page: PagePath): boolean {
  return ALONE.includes(page);
}

const PATTERNS = PAGE_PATHS.map((page) =>
  [page, new RegExp(`^${page.replace(/:\w+/, "([^/]+)")}/?$`)] as const
);

/** The page of a path with the `:id` in it; `null`: there is none. */
export function findPage(
  path: string,
): { readonly page: PagePath; readonly id: string | null } | null {
  for (const [page, pattern] of PATTERNS) {
    const match = pattern.exec(path);
    if (match !== null) return { page, id: match[1] ?? null };
  }
  return null;
}
