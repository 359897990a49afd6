import { type EventQueue, type Native, Opened, Received, UdpEphemeral } from "../../native/mod.ts";
import type { PlainRemote } from "./remote.ts";

/** Room for a response; none over UDP is larger. */
const RECEIVE_BYTES = 65_535;
const TOKEN_BITS = 16;
const GENERATION_MASK = 0x1fff;
/** Said of a server whose machine has nobody listen on the port. */
export const REFUSED = "is unreachable";

/** What sending came to: `full` and `noSocket` are no fault of the server's. */
export type Sending = "sent" | "unreachable" | "full" | "noSocket";

/** Says whether something failed because the process, or the system, has no descriptor left. */
export function lacksSocket(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : "";
  return code === "EMFILE" || code === "ENFILE";
}

/** What an exchange tells whoever asked. */
export interface ExchangeEvents {
  onPacket(token: number, packet: Uint8Array, length: number): void;
  /**
   * `failure` stands behind the name of the server: "refused the connection". `isOwn`: it is this
   * process that has no socket left.
   */
  onFailure(token: number, failure: string, isOwn?: boolean): void;
}

/**
 * Queries over UDP, each from a socket of its own on a random port. The sockets stand in the isolate's
 * event queue; `ready` is called with the event's token less the base.
 */
export class NativeUdpExchange {
  readonly #sockets: UdpEphemeral;
  readonly #queue: EventQueue;
  readonly #tokenBase: number;
  readonly #events: ExchangeEvents;
  /** By token: its socket plus one or 0, and how often the token was used. */
  readonly #places: Int32Array;
  readonly #generations: number[] = [];
  readonly #packet = new Uint8Array(RECEIVE_BYTES);

  /** Bytes of the memory that the constructor is given. */
  static readonly MEMORY_BYTES = Int32Array.BYTES_PER_ELEMENT << TOKEN_BITS;

  /** The sockets that an exchange on this memory left open, for whoever outlives its isolate. */
  static openSockets(memory: SharedArrayBuffer): number[] {
    return Array.from(new Int32Array(memory).filter((place) => place > 0), (place) => place - 1);
  }

  constructor(
    native: Native,
    queue: EventQueue,
    tokenBase: number,
    events: ExchangeEvents,
    memory: SharedArrayBuffer = new SharedArrayBuffer(NativeUdpExchange.MEMORY_BYTES),
  ) {
    this.#places = new Int32Array(memory);
    this.#sockets = new UdpEphemeral(native);
    this.#queue = queue;
    this.#tokenBase = tokenBase;
    this.#events = events;
  }

  send(remote: PlainRemote, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    const fd = this.#sockets.open(remote.sockaddr);
    if (fd < 0) return fd === Opened.NoSocket ? "noSocket" : "unreachable";
    const generation = ((this.#generations[token] ?? 0) + 1) & GENERATION_MASK;
    const event = this.#tokenBase | (generation << TOKEN_BITS) | token;
    const sent = this.#queue.add(fd, event) &&
      this.#sockets.send(fd, packet as Uint8Array<ArrayBuffer>, lengthBytes);
    if (!sent) {
      this.#sockets.close(fd);
      return "unreachable";
    }
    this.#places[token] = fd + 1;
    this.#generations[token] = generation;
    return "sent";
  }

  /** A socket can be read; one that was closed since the event was taken is left alone. */
  ready(event: number): void {
    const token = event & ((1 << TOKEN_BITS) - 1);
    const generation = (event >>> TOKEN_BITS) & GENERATION_MASK;
    const fd = this.#places[token] - 1;
    if (fd < 0 || this.#generations[token] !== generation) return;
    const length = this.#sockets.receive(fd, this.#packet);
    if (length >= 0) this.#events.onPacket(token, this.#packet, length);
    else if (length === Received.Refused) this.#events.onFailure(token, REFUSED);
  }

  cancel(token: number): void {
    const fd = this.#places[token] - 1;
    if (fd < 0) return;
    this.#places[token] = 0;
    this.#sockets.close(fd); // Also takes it out of the event queue.
  }
}
