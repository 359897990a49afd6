import type { HostPort } from "../../addr/mod.ts";
import { log } from "../../log.ts";
import { DohListener, DoqListener, DotListener } from "../../transport/listen_encrypted.ts";
import type { SharedBounds, TlsIdentity } from "../../transport/mod.ts";
import type { ObliviousTarget } from "../../transport/oblivious.ts";
import { DohFront } from "./doh_front.ts";
import { DoqFront, type FrontOptions, OVER_DOT, StreamFront } from "./fronts.ts";
import type { DnsPorts, DnsReport, DnsTls } from "../messages.ts";
import { occupancyOf } from "./occupancy.ts";
import { type OpenedSockets, ownCopy } from "./sockets.ts";

/** Longest wait for a port that another process is about to leave. */
const TAKE_OVER_MS_MAX = 60_000;

/** The encrypted listeners of one isolate. */
export class EncryptedListeners {
  readonly #tls: DnsTls;
  readonly #front: FrontOptions;
  readonly #bounds: SharedBounds;
  readonly #dot: DotListener[] = [];
  readonly #doq: DoqListener[] = [];
  readonly #doh: DohListener[] = [];
  #oblivious: ObliviousTarget | null = null;
  /** The newest, which listeners that open later start with. */
  #identity: TlsIdentity | null;

  constructor(tls: DnsTls, front: FrontOptions, bounds: SharedBounds) {
    this.#tls = tls;
    this.#front = front;
    this.#bounds = bounds;
    this.#identity = tls.identity;
  }

  /**
   * Listens on sockets of the main isolate, or, without those, on sockets of its own; `isFirst` is
   * the isolate that opens what can't be shared.
   */
  async listen(
    opened: OpenedSockets | null,
    isFirst: boolean,
  ): Promise<Pick<DnsPorts, "dot" | "doh" | "doq">> {
    const dot = await this.#listenDot(opened);
    const doq = isFirst ? await this.#listenDoqInTurn() : this.#tls.doq.map(({ port }) => port);
    return { dot, doh: await this.#listenDoh(opened), doq };
  }

  async #listenDot(opened: OpenedSockets | null): Promise<number[]> {
    const { dot, dotLimits } = this.#tls;
    const ports: number[] = [];
    for (const [i, address] of dot.entries()) {
      const front = new StreamFront(OVER_DOT, this.#front);
      const listener = new DotListener(this.#identity, front, dotLimits, this.#bounds);
      this.#dot.push(listener);
      if (opened === null) await listener.listenAt(address);
      else await listener.listenOn(() => ownCopy(opened.native, opened.sockets.dot[i]));
      ports.push(listener.port);
    }
    return ports;
  }

  /** Where another process still has the ports, nobody waits for it but QUIC's own clients. */
  async #listenDoqInTurn(): Promise<number[]> {
    const { doq, waitsForDoq } = this.#tls;
    if (!waitsForDoq) return await this.#listenDoq();
    void this.#listenDoq(TAKE_OVER_MS_MAX); // Failing, it ends the isolate, as anywhere else.
    return doq.map(({ port }) => port);
  }

  async #listenDoq(waitMs?: number): Promise<number[]> {
    const { doq, doqLimits } = this.#tls;
    const ports = doq.map(({ port }) => port);
    // A socket of [::] serves IPv4 as well, unless the system says otherwise, so it comes first.
    const isAny6 = ({ ip }: HostPort) => ip.length === 16 && ip.every((byte) => byte === 0);
    const order = doq.map((address, i) => ({ address, i })).sort((a, b) =>
      Number(isAny6(b.address)) - Number(isAny6(a.address))
    );
    for (const { address, i } of order) {
      const front = new DoqFront(this.#front);
      const listener = new DoqListener(this.#identity, front, doqLimits, this.#bounds);
      const isServed = address.ip.length === 4 && address.port !== 0 &&
        doq.some((other) => isAny6(other) && other.port === address.port);
      try {
        await listener.listenAt(address, isServed ? 0 : waitMs);
      } catch (error) {
        await listener.close();
        if (!isServed) throw error;
        continue;
      }
      this.#doq.push(listener);
      ports[i] = listener.port;
    }
    return ports;
  }

  async #listenDoh(opened: OpenedSockets | null): Promise<number[]> {
    const { doh, dohLimits, odohSeeds } = this.#tls;
    const ports: number[] = [];
    if (doh.length === 0) return ports;
    const front = new DohFront(this.#front);
    if (odohSeeds.length > 0) {
      const oblivious = await import("../../transport/oblivious.ts");
      front.oblivious = this.#oblivious = await oblivious.ObliviousTarget.open(odohSeeds, front);
    }
    for (const [i, address] of doh.entries()) {
      const listener = new DohListener(this.#identity, front, dohLimits, this.#bounds);
      this.#doh.push(listener);
      if (opened === null) await listener.listenAt(address);
      else await listener.listenOn(() => ownCopy(opened.native, opened.sockets.doh[i]));
      ports.push(listener.port);
    }
    return ports;
  }

  /** Who has the connections of each protocol. */
  get occupancy(): Pick<DnsReport["connections"], "dot" | "doh" | "doq"> {
    return {
      dot: occupancyOf(this.#dot),
      doh: occupancyOf(this.#doh),
      doq: occupancyOf(this.#doq),
    };
  }

  /** Somebody is connected, or may be without a word to us: QUIC's socket is the runtime's. */
  get needsLoop(): boolean {
    return this.#doq.length > 0 || this.hasConnections;
  }

  /** Goes on with other keys of Oblivious DoH, the current one first. */
  async renewOdoh(seeds: readonly Uint8Array[]): Promise<void> {
    await this.#oblivious?.renew(seeds);
  }

  /** Shows another certificate from now on; one that can't be used is logged and left. */
  renew(identity: TlsIdentity): void {
    try {
      for (const listener of this.#all) listener.renew(identity);
      this.#identity = identity;
    } catch (error) {
      log.error("server.tls: the new certificate can't be used: the former one stays", { error });
    }
  }

  /** Leaves new connections to another process; QUIC has nobody to leave them to yet. */
  retire(): void {
    for (const listener of [...this.#dot, ...this.#doh]) listener.retire();
    for (const listener of this.#doq) listener.drain();
  }

  /** Somebody is connected over TLS. */
  get hasConnections(): boolean {
    return [...this.#dot, ...this.#doh].some(({ connections }) => connections > 0);
  }

  /** Takes nothing new; what waits is answered. */
  drain(): void {
    for (const listener of this.#all) listener.drain();
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((listener) => listener.close()));
  }

  get #all(): readonly (DotListener | DohListener | DoqListener)[] {
    return [...this.#dot, ...this.#doh, ...this.#doq];
  }
}
