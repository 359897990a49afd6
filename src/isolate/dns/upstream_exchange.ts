import { invariant } from "../../errors.ts";
import { log } from "../../log.ts";
import type { Exchange, PlainAddress, Remote, Sending } from "../../resolver/mod.ts";
import type { EncryptedExchange } from "../../transport/exchange_encrypted.ts";
import type { QuicDialer } from "../../transport/exchange_quic.ts";
import {
  type EncryptedRemote,
  type EncryptedUpstream,
  type ExchangeEvents,
  NativeUdpExchange,
  PlainRemote,
  PortableUdpExchange,
  TcpExchange,
} from "../../transport/mod.ts";
import type { EventQueue, Native } from "../../native/mod.ts";

/** The event queue that sockets to upstreams stand in, and the bit that their tokens carry. */
export interface ExchangeQueue {
  readonly native: Native;
  readonly queue: EventQueue;
  readonly tokenBase: number;
  readonly memory: SharedArrayBuffer;
}

/** A server as this exchange knows it. */
type ServerRemote = PlainRemote | EncryptedRemote;

/** Sends each query the way its server is to be asked. */
export class UpstreamExchange implements Exchange {
  /** Sockets of the event queue; `null` without the C library. */
  readonly native: NativeUdpExchange | null;
  readonly #udp: NativeUdpExchange | PortableUdpExchange;
  readonly #tcp: TcpExchange;
  /** `null` where every server is asked in the clear. */
  readonly #encrypted: EncryptedExchange | null;

  /**
   * `queue` is `null` where the C library can't be had, `Encrypted` and `Quic` where no upstream needs
   * them: they are loaded only then.
   */
  constructor(
    events: ExchangeEvents,
    queue: ExchangeQueue | null,
    Encrypted: typeof EncryptedExchange | null,
    Quic: typeof QuicDialer | null,
  ) {
    this.#tcp = new TcpExchange(events);
    this.#encrypted = Encrypted === null ? null : new Encrypted(events, Quic);
    if (queue === null) {
      this.native = null;
      this.#udp = new PortableUdpExchange(events);
      log.warn("no C library here: UDP goes the portable way, in one isolate");
    } else {
      const { native, queue: eventQueue, tokenBase, memory } = queue;
      this.native = new NativeUdpExchange(native, eventQueue, tokenBase, events, memory);
      this.#udp = this.native;
    }
  }

  remote(address: PlainAddress | EncryptedUpstream): ServerRemote {
    return address.transport === "udp"
      ? new PlainRemote(address.endpoint)
      : this.#needEncrypted().remote(address);
  }

  send(remote: ServerRemote, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    return remote.transport === "udp"
      ? this.#udp.send(remote, packet, lengthBytes, token)
      : this.#needEncrypted().send(remote, packet, lengthBytes, token);
  }

  sendTcp(remote: PlainRemote, packet: Uint8Array, lengthBytes: number, token: number): Sending {
    return this.#tcp.send(remote, packet, lengthBytes, token);
  }

  /** There are connections, or there are to be: they are the runtime's. */
  get needsLoop(): boolean {
    return this.#tcp.isInUse || (this.#encrypted?.isInUse ?? false);
  }

  cancel(token: number): void {
    this.#udp.cancel(token);
    this.#tcp.cancel(token);
    this.#encrypted?.cancel(token);
  }

  /** Says where a server is whose name was looked up. Open connections stay. */
  setAddresses(remote: Remote, ips: readonly Uint8Array[]): void {
    if (isEncrypted(remote)) remote.ips = ips;
  }

  /** A server's name can't be looked up: who waits for a connection need not go on. */
  failWaiting(remote: Remote, reason: string): void {
    if (isEncrypted(remote)) remote.failWaiting(reason);
  }

  close(): void {
    this.#tcp.close();
    this.#encrypted?.close();
  }

  #needEncrypted(): EncryptedExchange {
    invariant(this.#encrypted !== null, "what encrypted upstreams need is loaded");
    return this.#encrypted;
  }
}

/** A remote is whatever `UpstreamExchange.remote` made of an address. */
function isEncrypted(remote: Remote): remote is EncryptedRemote {
  return remote.transport !== "udp";
}
