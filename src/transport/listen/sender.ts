import type { Socket } from "node:net";
import type { Account } from "./byte_budget.ts";
import type { ConnectionTable, Place } from "./connection_table.ts";

/** Who is at the other end of a connection. */
export interface Sender {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly address: string;
  /** What it counts for; see `clientOf`. */
  readonly network: string;
  /** The connection is in use, and so the last to go where room is needed. */
  touch(nowMs: number): void;
}

/** Uses of a connection that are closer together count as one. */
const TOUCH_MS = 100;

/** The sender of a connection that has a place in a table. */
export class PlacedSender implements Sender {
  #touchedMs = 0;

  constructor(
    readonly address: string,
    readonly network: string,
    private readonly table: ConnectionTable,
    private readonly place: Place,
  ) {}

  touch(nowMs: number): void {
    if (nowMs - this.#touchedMs < TOUCH_MS) return;
    this.#touchedMs = nowMs;
    this.table.touch(this.place);
  }
}

/** What a client has not taken of the answers on its connection. */
export class UnreadAccount implements Account {
  constructor(private readonly socket: Socket, readonly network: string) {}

  get heldBytes(): number {
    return this.socket.writableLength;
  }

  cut(): void {
    this.socket.destroy();
  }
}
