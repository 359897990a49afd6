import { ByteBudget } from "./byte_budget.ts";
import { OverLimit } from "./over_limit.ts";
import { ReadTurns } from "./read_turns.ts";

/** Bytes of messages, requests and bodies that are not whole yet. */
export const UNFINISHED_BYTES_MAX = 16 * 1024 * 1024;
/** Bytes of answers that clients have not taken. */
export const UNREAD_BYTES_MAX = 32 * 1024 * 1024;

/** What all connections of an isolate share, whatever they speak. */
export class SharedBounds {
  readonly overLimit = new OverLimit();
  readonly unfinished: ByteBudget;
  readonly unread: ByteBudget;

  constructor(
    readonly turns: ReadTurns = new ReadTurns(),
    unfinishedBytesMax = UNFINISHED_BYTES_MAX,
    unreadBytesMax = UNREAD_BYTES_MAX,
  ) {
    this.unfinished = new ByteBudget(unfinishedBytesMax);
    this.unread = new ByteBudget(unreadBytesMax);
  }
}
