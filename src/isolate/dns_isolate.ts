import { Cache } from "../cache/mod.ts";
import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { dupSocket, EventQueue, type Native, openNative, UdpBatch } from "../native/mod.ts";
import { type Exchange, Forwarder, Pipeline, Resolver, TICK_MS } from "../resolver/mod.ts";
import { REEVALUATE_MS, Snapshot, type SnapshotData } from "../snapshot/mod.ts";
import { Counter, CounterBlock } from "../telemetry/mod.ts";
import {
  type ExchangeEvents,
  NativeUdpExchange,
  PortableUdpExchange,
  PortableUdpListener,
  TcpExchange,
  TcpListener,
  UdpListener,
} from "../transport/mod.ts";
import { DatagramFront, TcpFront, UdpFront } from "./fronts.ts";
import type { DnsReport, DnsSockets, DnsStart } from "./messages.ts";

/** Tokens of the event queue: listeners count up from 0, upstream sockets carry this bit. */
const UPSTREAM_TOKEN = 1 << 30;
const WAKE_TOKEN = UPSTREAM_TOKEN - 1;
/** How often a draining isolate looks whether the last query is answered. */
const DRAIN_POLL_MS = 10;

/** Schedules are looked at no more often than this. */
const EVALUATE_MS_MIN = 1;

/** All of a dns isolate: its sockets, its cache, its queries in flight. */
export class DnsIsolate {
  readonly #start: DnsStart;
  readonly #counts: Float64Array;
  readonly #cache: Cache;
  readonly #pipeline: Pipeline;
  readonly #forwarder: Forwarder;
  readonly #resolver: Resolver;
  readonly #native: NativeSide | null;
  readonly #udp: UdpListener[] = [];
  readonly #portable: PortableUdpListener[] = [];
  readonly #tcp: TcpListener[] = [];
  readonly #tcpExchange: TcpExchange;
  #ticker: ReturnType<typeof setTimeout> | undefined;
  #evaluator: ReturnType<typeof setTimeout> | undefined;
  #draining = false;

  constructor(start: DnsStart) {
    this.#start = start;
    const counters = new CounterBlock(start.counters);
    this.#counts = counters.values;
    const cache = this.#cache = new Cache({
      sizeBytes: start.cacheBytes,
      serveStale: start.serveStale,
    });
    this.#pipeline = new Pipeline({
      seed: start.seed,
      cache,
      snapshot: new Snapshot(start.snapshot, Date.now()),
      counters,
      prefetch: start.prefetch,
      refresh: (query, hash) => this.#forwarder.refresh(query, hash),
    });
    this.#native = start.sockets === null ? null : openNativeSide(start.sockets);
    const events: ExchangeEvents = {
      onPacket: (token, packet, length) => {
        this.#setTime();
        this.#forwarder.onPacket(token, packet, length);
      },
      onFailure: (token, failure) => this.#forwarder.onFailure(token, failure),
    };
    const endpoints = start.upstreams.map(({ endpoint }) => endpoint);
    this.#tcpExchange = new TcpExchange(endpoints, events);
    let udpExchange: NativeUdpExchange | PortableUdpExchange;
    if (this.#native === null) {
      udpExchange = new PortableUdpExchange(endpoints, events);
      log.warn("no C library here: UDP goes the portable way, in one isolate");
    } else {
      const { native, queue } = this.#native;
      udpExchange = new NativeUdpExchange(
        native,
        queue,
        UPSTREAM_TOKEN,
        endpoints,
        events,
        start.sockets?.exchangeMemory,
      );
      this.#native.exchange = udpExchange;
    }
    const exchange: Exchange = {
      sendUdp: (upstream, packet, length, token) =>
        udpExchange.send(upstream, packet, length, token),
      sendTcp: (upstream, packet, length, token) =>
        this.#tcpExchange.send(upstream, packet, length, token),
      cancel: (token) => {
        udpExchange.cancel(token);
        this.#tcpExchange.cancel(token);
      },
    };
    this.#forwarder = new Forwarder({
      upstreams: start.upstreams,
      exchange,
      cache,
      counters,
      ttl: start.ttl,
      serveStale: start.serveStale,
      peerBytes: UdpBatch.PEER_BYTES,
      nowMs: () => performance.now(),
      nowSeconds: () => this.#pipeline.nowSeconds,
      ticking: (on) => this.#setTicking(on),
      random: (target) => void crypto.getRandomValues(target),
    });
    this.#resolver = new Resolver(this.#pipeline, this.#forwarder, start.seed);
    this.#evaluate();
  }

  /** Opens the listeners; returns their ports, in the order of `listen`. */
  async listen(): Promise<number[]> {
    const { sockets, listen } = this.#start;
    if (this.#native !== null && sockets !== null) {
      await this.#listenNative(this.#native, sockets);
      return listen.map(({ port }) => port);
    }
    const ports: number[] = [];
    for (const address of listen) {
      const udp = new PortableUdpListener(address, (packet, client, reply) => {
        this.#setTime();
        this.#counts[Counter.QueriesUdp]++;
        new DatagramFront(this.#resolver, client, reply).onPacket(packet);
      });
      this.#portable.push(udp);
      await this.#newTcp().listenAt({ ip: address.ip, port: udp.port });
      ports.push(udp.port);
    }
    return ports;
  }

  /** Serves until it drains. */
  async run(): Promise<void> {
    if (this.#native === null) {
      await Promise.all(this.#portable.map((listener) => listener.run()));
      return;
    }
    const { queue } = this.#native;
    while (!this.#draining) this.#turn(this.#native, await queue.wait());
  }

  swap(data: SnapshotData): void {
    this.#pipeline.snapshot = new Snapshot(data, Date.now());
    this.#evaluate();
  }

  /** Switches what schedules and a pause switch, and is back when they do so again. */
  #evaluate(): void {
    clearTimeout(this.#evaluator);
    const nowMs = Date.now();
    const delayMs = this.#pipeline.snapshot.evaluate(nowMs) - nowMs;
    if (delayMs === Infinity || this.#draining) return;
    // A timer may be early by a little: then the same instant is due once more.
    const waitMs = Math.max(EVALUATE_MS_MIN, Math.min(delayMs, REEVALUATE_MS));
    this.#evaluator = setTimeout(() => this.#evaluate(), waitMs);
  }

  /** Forgets every cached answer. */
  flush(): void {
    this.#cache.flush();
  }

  report(): DnsReport {
    return {
      cacheEntries: this.#cache.entries,
      cacheBytes: this.#cache.usedBytes,
      upstreams: this.#forwarder.upstreams.map(({ healthy, latencyMs, failures }) => ({
        healthy,
        latencyMs,
        failures,
      })),
    };
  }

  /** Takes nothing new and answers what waits; what still waits after `graceMs` gets SERVFAIL. */
  async drain(graceMs: number): Promise<void> {
    const endsAtMs = performance.now() + graceMs;
    this.#draining = true;
    clearTimeout(this.#evaluator);
    this.#setTime();
    // What the kernel has queued by now was asked before the end.
    for (const listener of this.#udp) listener.receive();
    for (const listener of this.#tcp) listener.drain();
    while (this.#forwarder.waiting > 0 && performance.now() < endsAtMs) {
      if (this.#native !== null) this.#turn(this.#native, this.#native.queue.poll());
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    }
    this.#forwarder.close();
    this.#flush();
    for (const listener of this.#portable) listener.close();
    for (const listener of this.#tcp) listener.close();
    this.#tcpExchange.close();
  }

  /** Handles what the event queue found ready. */
  #turn({ queue, exchange }: NativeSide, count: number): void {
    this.#setTime();
    for (let i = 0; i < count; i++) {
      const token = queue.token(i);
      if ((token & UPSTREAM_TOKEN) !== 0) exchange?.ready(token);
      else if (token !== WAKE_TOKEN && !this.#draining) this.#udp[token].receive();
    }
    this.#flush();
  }

  /** Sends the answers of queries that waited. */
  #flush(): void {
    for (const { batch } of this.#udp) if (batch.queued > 0) batch.flush();
  }

  async #listenNative({ native, queue }: NativeSide, sockets: DnsSockets): Promise<void> {
    for (const [token, fd] of sockets.udp.entries()) {
      this.#udp.push(new UdpListener(native, fd, new UdpFront(this.#resolver, this.#counts)));
      if (!queue.add(fd, token)) throw new SvcError("unavailable", `udp: descriptor ${fd} is gone`);
    }
    queue.add(sockets.wake, WAKE_TOKEN);
    for (const fd of sockets.tcp) {
      // The listener closes what it is given; the main isolate's own number stays.
      await this.#newTcp().listenOn(() => {
        const copy = dupSocket(native, fd);
        if (copy < 0) throw new SvcError("unavailable", "tcp: no more descriptors");
        return copy;
      });
    }
  }

  #newTcp(): TcpListener {
    const front = new TcpFront(this.#resolver, this.#counts, () => this.#setTime());
    const tcp = new TcpListener(front, this.#start.tcp);
    this.#tcp.push(tcp);
    return tcp;
  }

  /** Once a batch or message, not once a query. */
  #setTime(): void {
    this.#pipeline.nowSeconds = Math.floor(Date.now() / 1_000);
  }

  #setTicking(on: boolean): void {
    clearInterval(this.#ticker);
    if (!on) return;
    this.#ticker = setInterval(() => {
      this.#setTime();
      this.#forwarder.tick();
      this.#flush();
    }, TICK_MS);
  }
}

interface NativeSide {
  readonly native: Native;
  readonly queue: EventQueue;
  exchange: NativeUdpExchange | null;
}

function openNativeSide({ epoll, eventMemory }: DnsSockets): NativeSide {
  const native = openNative();
  if (native === null) throw new SvcError("unavailable", "the C library can't be opened here");
  return { native, queue: new EventQueue(native, epoll, eventMemory), exchange: null };
}
