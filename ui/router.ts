/** Which page is shown: the URL holds the whole state, under the API's parameter names. */
import { computed, signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { findPage, type PagePath } from "./page_paths.ts";

export interface Route {
  /** `null`: there is no such page. */
  readonly page: PagePath | null;
  readonly path: string;
  /** The `:id` of the path. */
  readonly id: string | null;
}

const url = signal(new URL(location.href));
/** Says whether to leave what is typed and not saved. */
type Ask = () => Promise<boolean>;
/** What asks before it is left; what is in a dialog comes behind what is on the page. */
let asks: readonly Ask[] = [];

/** Has `ask` asked before anything is left; returns what ends that. */
export function askBefore(ask: Ask): () => void {
  asks = [...asks, ask];
  return () => {
    asks = asks.filter((one) => one !== ask);
  };
}

/** Closes a dialog, unless what is typed in it is to stay. */
export function useClosing(onClose: () => void): () => Promise<void> {
  const before = useRef(asks.length);
  return async () => {
    const [ask] = asks.slice(before.current);
    if (ask === undefined || await ask()) onClose();
  };
}

export const route = computed((): Route => {
  const path = url.value.pathname.replace(/(.)\/$/, "$1");
  return { page: null, id: null, ...findPage(path), path };
});
export const query = computed(() => url.value.searchParams);

/** One parameter of the URL, as text. */
export function param(name: string): string {
  return query.value.get(name) ?? "";
}

/** Goes to a page of the dashboard. */
export async function navigate(href: string, replace = false): Promise<void> {
  const next = new URL(href, location.href);
  if (next.pathname !== url.value.pathname && !(await leaves())) return;
  if (next.href === location.href) return;
  history[replace ? "replaceState" : "pushState"](null, "", next);
  url.value = next;
  if (!replace && next.hash === "") scrollTo(0, 0);
}

async function leaves(): Promise<boolean> {
  const [ask] = asks;
  if (ask !== undefined && !await ask()) return false;
  asks = [];
  return true;
}

/** Changes parameters of the URL; what is empty or null goes. */
export function setParams(
  changes: Readonly<Record<string, string | null>>,
  replace = true,
): void {
  void navigate(hrefWith(changes), replace);
}

/** Where the page is with other parameters. */
export function hrefWith(changes: Readonly<Record<string, string | null>>): string {
  const params = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  return hrefOf(url.value.pathname, Object.fromEntries(params));
}

/** A page with parameters. */
export function hrefOf(
  path: string,
  params: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, value);
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A path of this origin that somebody may be sent to; anything else is the overview. */
export function localPath(text: string): string {
  const next = /^\/(?![/\\])/.test(text) ? URL.parse(text, location.origin) : null;
  return next?.origin === location.origin ? next.pathname + next.search : "/";
}

/** Has links of the dashboard change the page without loading it anew. */
export function listenToLinks(): void {
  addEventListener("popstate", async () => {
    const back = new URL(location.href);
    if (back.pathname !== url.value.pathname && !(await leaves())) {
      history.pushState(null, "", url.value);
      return;
    }
    url.value = back;
  });
  addEventListener("beforeunload", (event) => {
    if (asks.length > 0) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a");
    if (!link || link.target !== "" || link.hasAttribute("download")) return;
    const href = link.getAttribute("href") ?? "";
    if (!/^[/?]/.test(href) || href.startsWith("/api/")) return;
    event.preventDefault();
    void navigate(href);
  });
}

/** Takes a secret out of the address bar and the history. */
export function hideParams(): void {
  const next = new URL(location.href);
  next.search = "";
  history.replaceState(null, "", next);
}
