import { useLayoutEffect } from "preact/hooks";
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { awaySince } from "./api.ts";
import { nodeClock } from "./clock.ts";

/** Between two tries of who does not answer: doubles up to the longest. */
const RETRY_MS = { min: 1_000, max: 30_000 };
/** A load that takes no longer shows no skeleton. */
const QUICK_MS = 150;

/** What was fetched last, and how fetching goes. */
export interface Loaded<T> {
  readonly data: ReadonlySignal<T | null>;
  /** Why the last try failed. */
  readonly error: ReadonlySignal<unknown>;
  /** Nothing is there and it takes a while. */
  readonly isSlow: ReadonlySignal<boolean>;
  /** When `data` came. */
  readonly at: ReadonlySignal<Date | null>;
  readonly reload: () => Promise<void>;
}

/**
 * Fetches, and again whenever `keys` change or the page is looked at once more; with `everyMs` also
 * every so often, in a visible tab alone. What was there stays until something newer is.
 */
export function useLoaded<T>(
  fetchIt: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
  everyMs: number | null = null,
): Loaded<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<unknown>(null);
  const isSlow = useSignal(false);
  const at = useSignal<Date | null>(null);
  const run = useSignal<() => Promise<void>>(() => Promise.resolve());
  // Before the page is painted: the request is under way while it is.
  useLayoutEffect(() => {
    const aborter = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let retryMs = RETRY_MS.min;
    const slow = setTimeout(() => isSlow.value = data.value === null, QUICK_MS);
    const load = async () => {
      clearTimeout(timer);
      let nextMs = everyMs;
      try {
        const got = await fetchIt(aborter.signal);
        if (aborter.signal.aborted) return;
        data.value = got;
        at.value = nodeClock.now();
        error.value = null;
        retryMs = RETRY_MS.min;
      } catch (failure) {
        if (aborter.signal.aborted) return;
        error.value = failure;
        if (everyMs !== null || awaySince.value !== null) {
          nextMs = retryMs;
          retryMs = Math.min(2 * retryMs, RETRY_MS.max);
        }
      }
      clearTimeout(slow);
      isSlow.value = false;
      if (nextMs !== null) timer = setTimeout(onTime, nextMs);
    };
    const onTime = () => {
      if (document.visibilityState === "visible") void load();
    };
    run.value = load;
    const onLook = () => {
      if (document.visibilityState === "visible") void load();
    };
    document.addEventListener("visibilitychange", onLook);
    void load();
    return () => {
      aborter.abort();
      clearTimeout(timer);
      clearTimeout(slow);
      document.removeEventListener("visibilitychange", onLook);
    };
  }, keys);
  return { data, error, isSlow, at, reload: () => run.value() };
}
