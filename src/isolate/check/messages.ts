import type { ToKept } from "../kept_isolate.ts";

/** A way to a dns isolate, as a thread that checks signatures has it. */
export interface WayToDns {
  /** Of a `CheckRing`. */
  readonly ring: SharedArrayBuffer;
  /** Descriptor that ends the isolate's wait; `null`: `port` does. */
  readonly wake: number | null;
  readonly port: MessagePort | null;
}

/** A way to a thread that checks signatures, as a dns isolate has it. */
export interface WayToThread {
  readonly thread: number;
  readonly ring: SharedArrayBuffer;
  /** Of the thread's `Bell`. */
  readonly bell: SharedArrayBuffer;
  readonly wake: number | null;
  readonly port: MessagePort | null;
}

export type ToCheck =
  /** A way to the dns isolate of this number, in place of that to the one before it. */
  | { readonly type: "connect"; readonly isolate: number; readonly way: WayToDns }
  | {
    readonly type: "start";
    readonly handsLogOn: boolean;
    readonly bell: SharedArrayBuffer;
    /** Where messages to the thread are counted; see `Inbox`. */
    readonly inbox: SharedArrayBuffer;
  }
  | ToKept;

export type FromCheck = { readonly type: "ready" } | { readonly type: "pong" };
