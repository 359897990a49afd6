/** The pages: where each stands in the navigation, and its code, which is loaded when it is opened. */
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icon_names.ts";
import type { PagePath } from "./page_paths.ts";

interface PageEntry {
  readonly title: PageTitle;
  readonly load: () => Promise<{ readonly default: ComponentType }>;
}

export type PageTitle =
  | ("overview" | "log" | "lists" | "rules" | "records" | "clients" | "groups" | "schedules")
  | ("settings" | "users" | "account" | "cluster" | "connect" | "leakTest" | "audit" | "signIn")
  | ("reset" | "setup" | "move" | "tokens" | "webhooks");

/** The build reads here which source each page has. */
export const PAGES: Readonly<Record<PagePath, PageEntry>> = {
  "/": { title: "overview", load: () => import("./pages/overview.tsx") },
  "/log": { title: "log", load: () => import("./pages/log.tsx") },
  "/lists": { title: "lists", load: () => import("./pages/lists.tsx") },
  "/lists/move": { title: "move", load: () => import("./pages/move.tsx") },
  "/rules": { title: "rules", load: () => import("./pages/rules.tsx") },
  "/records": { title: "records", load: () => import("./pages/records.tsx") },
  "/clients": { title: "clients", load: () => import("./pages/clients.tsx") },
  "/clients/:id": { title: "clients", load: () => import("./pages/client.tsx") },
  "/groups": { title: "groups", load: () => import("./pages/groups.tsx") },
  "/groups/:id": { title: "groups", load: () => import("./pages/group.tsx") },
  "/schedules": { title: "schedules", load: () => import("./pages/schedules.tsx") },
  "/schedules/:id": { title: "schedules", load: () => import("./pages/schedule.tsx") },
  "/settings": { title: "settings", load: () => import("./pages/settings.tsx") },
  "/users": { title: "users", load: () => import("./pages/users.tsx") },
  "/tokens": { title: "tokens", load: () => import("./pages/tokens.tsx") },
  "/webhooks": { title: "webhooks", load: () => import("./pages/webhooks.tsx") },
  "/account": { title: "account", load: () => import("./pages/account.tsx") },
  "/cluster": { title: "cluster", load: () => import("./pages/cluster.tsx") },
  "/connect": { title: "connect", load: () => import("./pages/connect.tsx") },
  "/leak-test": { title: "leakTest", load: () => import("./pages/leak.tsx") },
  "/audit": { title: "audit", load: () => import("./pages/audit.tsx") },
  "/sign-in": { title: "signIn", load: () => import("./pages/sign_in.tsx") },
  "/reset": { title: "reset", load: () => import("./pages/reset.tsx") },
  "/setup": { title: "setup", load: () => import("./pages/setup.tsx") },
};

interface NavEntry {
  readonly href: string;
  readonly title: PageTitle;
  readonly icon: IconName;
  /** The letter behind `g`. */
  readonly key?: string;
  /** Shown where there is a cluster alone. */
  readonly needsCluster?: true;
}

/** The navigation, in its sections. */
export const NAV: readonly (readonly NavEntry[])[] = [
  [
    { href: "/", title: "overview", icon: "layout-dashboard", key: "o" },
    { href: "/log", title: "log", icon: "scroll-text", key: "l" },
  ],
  [
    { href: "/lists", title: "lists", icon: "list-checks" },
    { href: "/rules", title: "rules", icon: "list-filter" },
    { href: "/records", title: "records", icon: "house" },
  ],
  [
    { href: "/clients", title: "clients", icon: "monitor-smartphone", key: "c" },
    { href: "/groups", title: "groups", icon: "users", key: "g" },
    { href: "/schedules", title: "schedules", icon: "calendar-clock" },
  ],
  [
    { href: "/settings", title: "settings", icon: "settings", key: "s" },
    { href: "/users", title: "users", icon: "user-round" },
    { href: "/tokens", title: "tokens", icon: "key-round" },
    { href: "/webhooks", title: "webhooks", icon: "zap" },
    { href: "/cluster", title: "cluster", icon: "server", needsCluster: true },
    { href: "/connect", title: "connect", icon: "smartphone" },
    { href: "/leak-test", title: "leakTest", icon: "radar" },
    { href: "/audit", title: "audit", icon: "rotate-ccw-clock" },
  ],
];

/** The bar at the bottom of a phone; the rest is behind "More". */
export const BOTTOM: readonly NavEntry[] = [NAV[0][0], NAV[0][1], NAV[2][0], NAV[2][1]];
