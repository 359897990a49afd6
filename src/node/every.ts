import { untilBeat } from "../clock/mod.ts";

/** Calls `work` at each multiple of a period, together with others; returns what ends that. */
export function every(periodMs: number, work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = () => {
    timer = setTimeout(() => {
      wait(); // First: `work` may end it.
      work();
    }, untilBeat(periodMs, performance.now()));
  };
  wait();
  return () => clearTimeout(timer);
}
