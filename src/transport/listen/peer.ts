import type { Socket } from "node:net";
import type { Account } from "./byte_budget.ts";

/** Who is at the other end of a connection. */
export interface Peer {
  /** The client's address as text; IPv4-mapped ones as IPv4. */
  readonly address: string;
  /** What it counts for; see `clientOf`. */
  readonly network: string;
  /** The connection is in use, and so the last to go where room is needed. */
  touch(): void;
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
