/** This node: its status, which every page shows, and its pause. */
import { computed, signal } from "@preact/signals";
import { t } from "../text/mod.ts";
import { toast } from "../parts/toasts.tsx";
import { ApiError, call, send } from "./api.ts";
import { nodeClock } from "./clock.ts";
import { isAdmin } from "./session.ts";
import type { NodeStatus, ProblemItem, Settings } from "./types.ts";

const STATUS_MS = 5_000;
const RETRY_MS_MAX = 30_000;
/** Longest wait for the status: it is at hand, and who takes longer is not there. */
const STATUS_MS_MAX = 10_000;

export const status = signal<NodeStatus | null>(null);
/** The program was replaced by another version since the page was loaded. */
export const isUpgraded = signal(false);
/** Ticks each second while something counts down. */
export const nowMs = signal(nodeClock.nowMs);

export const pausedUntil = computed(() => {
  const until = status.value?.paused_until ?? null;
  return until !== null && Date.parse(until) > nowMs.value ? new Date(until) : null;
});
export const hasCluster = computed(() => (status.value?.cluster.cluster ?? "") !== "");
/** Why no change can be made through this node. */
export const isReadOnly = computed(() => status.value?.cluster.writable === false);
/** Whoever looks may change things, and this node can. */
export const mayChange = computed(() => isAdmin.value && !isReadOnly.value);

export const problems = computed((): readonly ProblemItem[] => status.value?.problem_items ?? []);
/** Where plain DNS is asked, without its port. */
export const plainAddresses = computed((): readonly string[] => {
  const own = (status.value?.addresses ?? []).filter(({ protocol }) => protocol === "udp")
    .map(({ address }) => address.replace(/:\d+$/, "").replace(/[[\]]/g, ""));
  return own.length > 0 ? [...new Set(own)] : [location.hostname];
});

let version: string | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let retryMs = 1_000;

export async function readStatus(): Promise<void> {
  clearTimeout(timer);
  let nextMs = STATUS_MS;
  try {
    const got = await call<NodeStatus>("GET", "status", { timeoutMs: STATUS_MS_MAX });
    version ??= got.version;
    isUpgraded.value = got.version !== version;
    nowMs.value = nodeClock.nowMs;
    status.value = got;
    retryMs = 1_000;
  } catch {
    nextMs = retryMs; // The banner says so.
    retryMs = Math.min(2 * retryMs, RETRY_MS_MAX);
  }
  timer = setTimeout(onTime, nextMs);
}

function onTime(): void {
  if (document.visibilityState === "visible") void readStatus();
}

/** Follows the status while somebody looks. */
export function followStatus(): () => void {
  const onLook = () => {
    if (document.visibilityState === "visible") void readStatus();
  };
  document.addEventListener("visibilitychange", onLook);
  const second = setInterval(() => {
    nowMs.value = nodeClock.nowMs;
  }, 1_000);
  void readStatus();
  return () => {
    clearTimeout(timer);
    clearInterval(second);
    document.removeEventListener("visibilitychange", onLook);
  };
}

export async function pauseFor(seconds: number): Promise<void> {
  await call("PUT", "pause", { body: { seconds: Math.round(seconds) } });
  await readStatus();
  toast(t.pause.paused, resume);
}

export async function resume(): Promise<void> {
  await call("DELETE", "pause");
  await readStatus();
}

/** The settings with the revision they were read at. */
export interface KeptSettings {
  readonly settings: Settings;
  readonly revision: number;
}

export async function readSettings(): Promise<KeptSettings> {
  const response = await send("GET", "settings");
  return { settings: await response.json(), revision: revisionOf(response) };
}

function revisionOf(response: Response): number {
  return Number((response.headers.get("etag") ?? "").replace(/\D/g, ""));
}

/** Puts the whole of the settings; what GET gave is what is changed, or access would open. */
export async function putSettings(settings: Settings, revision: number): Promise<void> {
  await call("PUT", "settings", { body: settings, ifMatch: revision });
  void readStatus();
}

/** Changes a part of the settings, of the newest there are. */
export async function changeSettings(
  alter: (settings: Settings) => Settings,
  said: string | null,
): Promise<void> {
  for (;;) {
    const { settings, revision } = await readSettings();
    try {
      await putSettings(alter(settings), revision);
    } catch (error) {
      if (error instanceof ApiError && error.status === 412) continue;
      throw error;
    }
    if (said !== null) toast(said, () => changeSettings(() => settings, t.common.undone));
    return;
  }
}
