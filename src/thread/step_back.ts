import { setPriority } from "node:os";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";

/** To Linux, the thread that calls; elsewhere the whole process. */
const THIS_THREAD = 0;

/** How far an isolate stands back, as a nice value. */
export const Nice = {
  /** A build is waited for: on a busy machine it still gets its part. */
  Build: 5,
  /** What may lag: beside one that is always busy it gets a tenth of the processor. */
  Log: 10,
  /** What is done when nobody else has anything to do. */
  Last: 19,
} as const;
export type Nice = typeof Nice[keyof typeof Nice];

/** Has this isolate's thread go behind others: answering goes before all other work. */
export function stepBack(nice: Nice): void {
  if (Deno.build.os !== "linux") return;
  try {
    setPriority(THIS_THREAD, nice);
  } catch (error) {
    log.warn("an isolate runs at the priority of those that answer", { error: messageOf(error) });
  }
}
