import { invariant } from "../errors.ts";
import { log } from "../log.ts";
import type { Exchange, Sending } from "../resolver/mod.ts";
import type { EncryptedExchange } from "../transport/exchange_encrypted.ts";
import {
  type ExchangeEvents,
  NativeUdpExchange,
  PortableUdpExchange,
  TcpExchange,
} from "../transport/mod.ts";
import type { EventQueue, Native } from "../native/mod.ts";
import type { DnsUpstream } from "./messages.ts";

/** The event queue that sockets to upstreams stand in, and the bit that their tokens carry. */
export interface ExchangeQueue {
  readonly native: Native;
  readonly queue: EventQueue;
  readonly tokenBase: number;
  readonly memory: SharedArrayBuffer;
}

/** Sends each query the way its upstream is to be asked. */
export class UpstreamExchange implements Exchange {
  /** Sockets of the event queue; `null` without the C library. */
  readonly native: NativeUdpExchange | null;
  /** `null` where every upstream is asked in the clear. */
  readonly encrypted: EncryptedExchange | null;
  readonly #udp: NativeUdpExchange | PortableUdpExchange;
  /** By upstream: what its queries go through. */
  readonly #ways: readonly Pick<Exchange, "send">[];
  readonly #tcp: TcpExchange;

  /**
   * `queue` is `null` where the C library can't be had, `Encrypted` where no upstream needs it: it is
   * loaded only then.
   */
  constructor(
    upstreams: readonly DnsUpstream[],
    events: ExchangeEvents,
    queue: ExchangeQueue | null,
    Encrypted: typeof EncryptedExchange | null,
  ) {
    const endpoints = upstreams.map((u) => u.transport === "udp" ? u.endpoint : null);
    this.#tcp = new TcpExchange(endpoints, events);
    const others = upstreams.map((u) => u.transport === "udp" ? null : u);
    const encrypted = Encrypted === null ? null : new Encrypted(others, events);
    this.encrypted = encrypted;
    if (queue === null) {
      this.native = null;
      this.#udp = new PortableUdpExchange(endpoints, events);
      log.warn("no C library here: UDP goes the portable way, in one isolate");
    } else {
      const { native, queue: eventQueue, tokenBase, memory } = queue;
      this.native = new NativeUdpExchange(native, eventQueue, tokenBase, endpoints, events, memory);
      this.#udp = this.native;
    }
    this.#ways = upstreams.map(({ transport }) => {
      if (transport === "udp") return this.#udp;
      invariant(encrypted !== null, "what encrypted upstreams need is loaded");
      return encrypted;
    });
  }

  send(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    return this.#ways[upstream].send(upstream, packet, lengthBytes, token);
  }

  sendTcp(upstream: number, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    return this.#tcp.send(upstream, packet, lengthBytes, token);
  }

  /** There are connections, or there are to be: they are the runtime's. */
  get needsLoop(): boolean {
    return this.#tcp.isInUse || (this.encrypted?.isInUse ?? false);
  }

  cancel(token: number): void {
    this.#udp.cancel(token);
    this.#tcp.cancel(token);
    this.encrypted?.cancel(token);
  }

  close(): void {
    this.#tcp.close();
    this.encrypted?.close();
  }
}
