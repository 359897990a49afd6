import { SvcError } from "../../errors.ts";
import { EventQueue, type Native, openNative } from "../../native/mod.ts";
import type { DnsSockets } from "../messages.ts";
import { Inbox } from "../inbox.ts";

/** What an isolate waits with, where the C library can be had. */
export interface NativeSide {
  readonly native: Native;
  /** Waits. */
  readonly queue: EventQueue;
  /** Looks at the same sockets while that waits, and so needs memory of its own. */
  readonly looked: EventQueue;
  readonly inbox: Inbox;
}

/** @throws {SvcError} `unavailable`, where the main isolate has the library and this one does not. */
export function openNativeSide({ epoll, eventMemory, inboxMemory }: DnsSockets): NativeSide {
  const native = openNative();
  if (native === null) throw new SvcError("unavailable", "the C library can't be opened here");
  const queue = new EventQueue(native, epoll, eventMemory);
  const looked = new EventQueue(native, epoll, new SharedArrayBuffer(EventQueue.MEMORY_BYTES));
  return { native, queue, looked, inbox: new Inbox(inboxMemory) };
}
