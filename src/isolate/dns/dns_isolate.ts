import { Cache } from "../../cache/mod.ts";
import { SvcError } from "../../errors.ts";
import { type EventQueue, EVENTS_MAX } from "../../native/mod.ts";
import {
  type Asker,
  type AskHow,
  type Flights,
  type Forwarder,
  type Found,
  keyHasher,
  Lookups,
  type OwnAnswer,
  OwnQuestions,
  Pipeline,
  QueryLog,
  RateLimiter,
  Resolver,
  TICK_MS,
  TurnClock,
} from "../../resolver/mod.ts";
import { REEVALUATE_MS, Snapshot, type SnapshotData } from "../../snapshot/mod.ts";
import { Counter, CounterBlock } from "../../telemetry/mod.ts";
import {
  type ExchangeEvents,
  PortableUdpListener,
  SharedBounds,
  TcpListener,
  type TlsIdentity,
  UdpListener,
} from "../../transport/mod.ts";
import type { WayToThread } from "../check/messages.ts";
import { type Alarm, Alarms } from "./alarms.ts";
import type { Bootstrap } from "./bootstrap.ts";
import { bootstrapOf } from "./bootstrap_of.ts";
import { ClientSockets } from "./client_sockets.ts";
import type { EncryptedListeners } from "./encrypted.ts";
import { DatagramFront, type FrontOptions, OVER_TCP, StreamFront, UdpFront } from "./fronts.ts";
import { LeakLookups } from "./leak_lookups.ts";
import { type Loaded, loadFor } from "./loaded.ts";
import { type NativeSide, openNativeSide } from "./native_side.ts";
import { SYSTEM_TIME } from "../kept_isolate.ts";
import { listenPortable } from "./portable_listeners.ts";
import type { RecursionSide } from "./recursion_side.ts";
import { reportOf } from "./report.ts";
import { pipelineOf } from "./pipeline_of.ts";
import { openResolving } from "./resolving.ts";
import { ownCopy } from "./sockets.ts";
import { SlowQueries, type SlowQuery } from "./slow_queries.ts";
import { type ExchangeQueue, UpstreamExchange } from "./upstream_exchange.ts";
import type { ValidationSide } from "./validation_side.ts";
import { CHECKED_TOKEN, CONNECT_TOKEN, UPSTREAM_TOKEN, WAKE_TOKEN } from "./tokens.ts";
import type { DnsPorts, DnsReport, DnsSockets, DnsStart, LeakLookup } from "../messages.ts";

/** How long the runtime gets its turns for a connection to be taken. */
const CONNECT_MS = 1_000;
/** The same behind each message: for timers, and for what a handler leaves to be done. */
const MESSAGE_MS = 5;
/**
 * Longest wait. Each message of the main isolate ends one, and one comes every five seconds, so the
 * runtime's timers here are that late at most.
 */
const WAIT_MS_MAX = 5_000;
/** How often a draining isolate looks whether the last query is answered. */
const DRAIN_POLL_MS = 10;
/** How long connections may take to come to rest, where somebody else takes the next ones. */
const REST_MS_MAX = 1_000;
/** Schedules are looked at no more often than this. */
const EVALUATE_MS_MIN = 1;

/** All of a dns isolate: its sockets, its cache, its queries in flight. */
export class DnsIsolate {
  readonly #start: DnsStart;
  readonly #counts: Float64Array;
  readonly #cache: Cache;
  readonly #pipeline: Pipeline;
  readonly #asker: Asker;
  readonly #forwarder: Forwarder;
  readonly #flights: Flights;
  /** `null`: upstreams are asked for every name. */
  readonly #recursion: RecursionSide | null;
  /** `null`: nothing is validated. */
  readonly validation: ValidationSide | null;
  readonly #clock = new TurnClock({
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
  });
  readonly #resolver: Resolver;
  readonly #questions: OwnQuestions;
  readonly #lookups: Lookups;
  readonly #slow: SlowQueries | null;
  readonly #limits: RateLimiter | null;
  readonly #native: NativeSide | null;
  readonly #udp = new ClientSockets(() => this.#setTime());
  readonly #portable: PortableUdpListener[] = [];
  readonly #tcp: TcpListener[] = [];
  readonly #front: FrontOptions;
  /** What the connections of every listener share. */
  readonly #bounds = new SharedBounds();
  readonly #encrypted: EncryptedListeners | null;
  readonly #exchange: UpstreamExchange;
  readonly #bootstrap: Bootstrap;
  readonly #alarms: Alarms;
  readonly #ticker: Alarm;
  readonly #evaluator: Alarm;
  /** The runtime gets its turns until then at least. */
  #loopsUntilMs = 0;
  /** Messages that are being handled. */
  #handling = 0;
  #draining = false;
  /** Answers that are queued go out at the end of this turn. */
  #isFlushing = false;
  readonly #leaks: LeakLookups;

  /**
   * Loads what `start` asks for and no more: each isolate holds its code for itself. `tell` hands a
   * look-up of a leak test to the main isolate.
   */
  static async open(start: DnsStart, tell: (lookup: LeakLookup) => void): Promise<DnsIsolate> {
    return new DnsIsolate(start, tell, await loadFor(start));
  }

  private constructor(start: DnsStart, tell: (lookup: LeakLookup) => void, loaded: Loaded) {
    this.#start = start;
    this.#leaks = new LeakLookups(tell);
    this.#limits = start.rateLimit === null
      ? null
      : new RateLimiter(start.rateLimit, start.buckets, start.seed);
    const counters = new CounterBlock(start.counters);
    this.#counts = counters.values;
    const { cacheBytes: sizeBytes, serveStale } = start;
    const cache = this.#cache = new Cache({ sizeBytes, serveStale });
    const saved = start.savedAnswers;
    if (saved !== null) cache.load(saved, keyHasher(start.seed), Math.floor(Date.now() / 1_000));
    this.#pipeline = pipelineOf(start, {
      ...{ cache, counters, limits: this.#limits },
      onLeakLookup: (query, name) => this.#leaks.note(query, name, this.#pipeline),
      refresh: (query) => this.#flights.refresh(query),
    });
    const native = this.#native = start.sockets === null ? null : openNativeSide(start.sockets);
    if (native !== null) this.#bounds.reads.between = () => this.#look(native);
    this.#alarms = new Alarms({
      nowMs: () => performance.now(),
      after: native === null ? SYSTEM_TIME.after : null,
    });
    this.#ticker = this.#alarms.add(() => this.#tick());
    this.#evaluator = this.#alarms.add(() => this.#evaluate());
    const events: ExchangeEvents = {
      onPacket: (token, packet, length) => {
        this.#setTime();
        this.#asker.onPacket(token, packet, length);
        this.#flushSoon();
      },
      onFailure: (token, failure, isOwn) => {
        this.#setTime();
        this.#asker.onFailure(token, failure, isOwn);
        this.#flushSoon();
      },
    };
    const queue = this.#exchangeQueue();
    const exchange = this.#exchange = new UpstreamExchange(
      events,
      queue,
      loaded.Exchange,
      loaded.Quic,
    );
    const { asker, forwarder, recursion, validation, flights } = openResolving(start, loaded, {
      ...{ exchange, cache, counters },
      nowMs: () => performance.now(),
      nowSeconds: () => this.#pipeline.nowSeconds,
      beginTurn: () => {
        this.#setTime();
        this.#flushSoon();
      },
      ticking: (on) => this.#setTicking(on),
    });
    this.#asker = asker;
    this.#forwarder = forwarder;
    this.#route(start.snapshot);
    this.#recursion = recursion;
    this.validation = validation;
    this.#flights = flights;
    const { logQueue, traces } = start;
    const slow = traces === null ? null : new SlowQueries(traces, Math.random, this.#counts);
    this.#slow = slow;
    this.#resolver = new Resolver({
      pipeline: this.#pipeline,
      flights: this.#flights,
      seed: start.seed,
      cookieSecret: start.cookieSecret,
      clock: this.#clock,
      log: logQueue === null ? null : new QueryLog(logQueue),
      counters,
      onSlow: slow === null ? null : (...what) => slow.note(...what),
    });
    this.#questions = new OwnQuestions(this.#resolver, forwarder.routes, () => performance.now());
    this.#lookups = new Lookups(this.#questions);
    this.#bootstrap = bootstrapOf(start.upstreams, this.#forwarder, exchange, {
      after: (ms, work) => this.#alarms.after(ms, work),
      lookup: (...asked) => this.lookup(...asked),
    });
    this.#front = {
      resolver: this.#resolver,
      counts: this.#counts,
      beginTurn: () => this.#setTime(),
      admits: (transport, client) => this.#resolver.admitsConnection(transport, client),
      serverName: start.tls?.serverName ?? null,
    };
    const [{ tls }, { Listeners }] = [start, loaded];
    const isEncrypted = tls !== null && Listeners !== null;
    this.#encrypted = isEncrypted ? new Listeners(tls, this.#front, this.#bounds) : null;
    this.#evaluate();
  }

  /** Opens the listeners; returns their ports. */
  async listen(): Promise<DnsPorts> {
    const { sockets, listen } = this.#start;
    const opened = this.#native === null || sockets === null
      ? null
      : { native: this.#native.native, sockets };
    if (this.#native !== null && sockets !== null) await this.#listenNative(this.#native, sockets);
    const ports = opened === null ? await this.#listenPortable() : listen.map(({ port }) => port);
    const encrypted = await this.#encrypted?.listen(opened, this.#start.index === 0) ??
      { dot: [], doh: [], doq: [] };
    return { listen: ports, ...encrypted };
  }

  async #listenPortable(): Promise<number[]> {
    const ports: number[] = [];
    for (const address of this.#start.listen) {
      const newUdp = () =>
        new PortableUdpListener(address, (packet, client, reply) => {
          this.#setTime();
          this.#counts[Counter.QueriesUdp]++;
          new DatagramFront(this.#resolver, client, reply).onPacket(packet);
        });
      const { udp, tcp } = await listenPortable(address, newUdp, () => this.#newTcp());
      this.#portable.push(udp);
      this.#tcp.push(tcp);
      ports.push(udp.port);
    }
    return ports;
  }

  /** Serves until it drains. */
  async run(): Promise<void> {
    this.#bootstrap.start();
    if (this.#native === null) {
      await Promise.all(this.#portable.map((listener) => listener.run()));
      return;
    }
    const { queue, inbox } = this.#native;
    while (!this.#draining) {
      const nowMs = performance.now();
      const isLooping = nowMs < this.#loopsUntilMs;
      const untilMs = isLooping ? this.#loopsUntilMs : nowMs + WAIT_MS_MAX;
      queue.atOnce = this.validation?.eventsMax ?? EVENTS_MAX;
      const endsMs = this.validation?.hasMore ? nowMs : this.#alarms.nextAtMs;
      const waitMs = Math.ceil(Math.max(0, Math.min(untilMs, endsMs) - nowMs));
      const count = isLooping || this.#needsLoop ? await queue.wait(waitMs) : queue.block(waitMs);
      this.#turn(queue, count);
      this.#alarms.run(performance.now());
      if (this.validation?.isBusy) {
        if (!await this.validation.settle()) this.#loopFor(MESSAGE_MS);
        if (this.#isFlushing) this.#flushNow();
      }
      if (!inbox.isExpecting) continue;
      await inbox.arrivals();
      this.#loopFor(MESSAGE_MS);
    }
  }

  #loopFor(ms: number): void {
    this.#loopsUntilMs = Math.max(this.#loopsUntilMs, performance.now() + ms);
  }

  /**
   * Says whether the runtime's event loop has to turn while the isolate waits: for connections, which
   * are the runtime's. Without any, the thread itself waits for packets, which costs a third and
   * answers sooner than a wait on another thread.
   */
  get #needsLoop(): boolean {
    return this.#handling > 0 || this.#exchange.needsLoop || this.#hasConnections ||
      (this.validation?.needsLoop ?? false) ||
      (this.#encrypted?.needsLoop ?? false);
  }

  get #hasConnections(): boolean {
    return this.#tcp.some(({ connections }) => connections > 0) ||
      (this.#encrypted?.hasConnections ?? false);
  }

  /** The main isolate's message has come, and is handled once `handled` is settled. */
  heard(handled: Promise<void> = Promise.resolve()): void {
    this.#handling++;
    handled.finally(() => this.#handling--);
    this.#native?.inbox.heard();
  }

  swap(data: SnapshotData): void {
    this.#pipeline.snapshot = new Snapshot(data, Date.now());
    this.#route(data);
    this.#evaluate();
  }

  #route({ overlay: { upstreams, groups } }: SnapshotData): void {
    const { length } = groups.parts.groupFlags;
    this.#pipeline.routes = this.#forwarder.routes.of(upstreams, length);
  }

  /** Switches what schedules and a pause switch, and is back when they do so again. */
  #evaluate(): void {
    const nowMs = Date.now();
    const delayMs = this.#pipeline.snapshot.evaluate(nowMs) - nowMs;
    if (delayMs === Infinity || this.#draining) return this.#evaluator.set(Infinity);
    // Both clocks differ by a little: then the same instant is due once more.
    const waitMs = Math.max(EVALUATE_MS_MIN, Math.min(delayMs, REEVALUATE_MS));
    this.#evaluator.set(performance.now() + waitMs);
  }

  leadToThread(way: WayToThread): void {
    this.validation?.lead(way, (fd) => this.#native?.queue.watch(fd, CHECKED_TOKEN) ?? false);
  }

  /** Goes on with other keys of Oblivious DoH. */
  async renewOdoh(seeds: readonly Uint8Array[]): Promise<void> {
    await this.#encrypted?.renewOdoh(seeds);
  }

  /** Shows clients of encrypted transports another certificate from now on. */
  renew(identity: TlsIdentity): void {
    this.#encrypted?.renew(identity);
  }

  flush(): void {
    this.#cache.flush();
    this.#recursion?.recursor.flush();
    this.validation?.judge.forget();
  }

  /** Finds the addresses of a name for the service itself; `done` is called now or later. */
  lookup(hostname: string, qtype: number, done: (found: Found) => void): void {
    this.#setTime();
    this.#lookups.lookup(hostname, qtype, done);
  }

  /** Asks a query for the service itself; `done` is called now or later. */
  ask(packet: Uint8Array, how: AskHow, done: (answer: OwnAnswer) => void): void {
    this.#setTime();
    this.#questions.ask(packet, how, done);
  }

  report(): DnsReport {
    return reportOf({
      cache: this.#cache,
      tcp: this.#tcp,
      encrypted: this.#encrypted,
      bounds: this.#bounds,
      forwarder: this.#forwarder,
      recursor: this.#recursion?.recursor ?? null,
      validation: this.validation,
    });
  }

  /** Sampled queries that waited, since the last call. */
  takeSlow(): SlowQuery[] {
    return this.#slow?.take() ?? [];
  }

  /** The cached answers, for `DnsStart.savedAnswers`. */
  save = (): SharedArrayBuffer => this.#cache.save();

  /**
   * Takes nothing new and answers what waits; what still waits after `graceMs` gets SERVFAIL. A
   * successor reads the same sockets: until then connections end as they come to rest.
   */
  async drain(graceMs: number, hasSuccessor: boolean): Promise<void> {
    const endsAtMs = performance.now() + graceMs;
    this.#draining = true;
    this.#evaluator.set(Infinity);
    this.#setTime();
    // What the kernel has queued by now was asked before the end.
    this.#udp.close();
    if (hasSuccessor) {
      for (const listener of this.#tcp) listener.retire();
      this.#encrypted?.retire();
      const restsAtMs = Math.min(endsAtMs, performance.now() + REST_MS_MAX);
      await this.#waitWhile(() => this.#hasConnections, restsAtMs);
    }
    for (const listener of this.#tcp) listener.drain();
    this.#encrypted?.drain();
    await this.#waitWhile(() => this.#flights.waiting > 0, endsAtMs);
    this.#flights.close();
    this.#alarms.clear();
    this.#udp.flush();
    for (const listener of this.#portable) listener.close();
    if (hasSuccessor) {
      // Clients close their side: what they have sent behind the end is read over until then.
      const endsSoonMs = Math.min(endsAtMs, performance.now() + REST_MS_MAX);
      await this.#waitWhile(() => this.#hasConnections, endsSoonMs);
    }
    await Promise.all(this.#tcp.map((listener) => listener.close()));
    await this.#encrypted?.close();
    this.validation?.ways.close();
    this.#bootstrap.close();
    this.#exchange.close();
  }

  async #waitWhile(condition: () => boolean, endsAtMs: number): Promise<void> {
    while (condition() && performance.now() < endsAtMs) {
      if (this.#native !== null) this.#look(this.#native);
      this.#alarms.run(performance.now());
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    }
  }

  /** Handles what can be read at this moment. */
  #look({ looked }: NativeSide): void {
    this.#turn(looked, looked.poll());
  }

  /** Handles what an event queue found ready: clients' packets before all else, and in between. */
  #turn(queue: EventQueue, count: number): void {
    this.#setTime();
    this.#isFlushing = true; // At its end.
    const isShared = this.validation?.isActive ?? false;
    if (isShared) this.#udp.takeSome();
    for (let i = 0; i < count; i++) {
      const token = queue.token(i);
      if ((token & UPSTREAM_TOKEN) !== 0) {
        this.#exchange.native?.ready(token);
        if (isShared) this.#udp.between();
      } else if (token === CONNECT_TOKEN) this.#loopFor(CONNECT_MS);
      else if (token < CHECKED_TOKEN && !isShared) this.#udp.take(token);
    }
    // Who waits at the end is waited for: nothing new comes in between.
    this.validation?.goOn(this.#udp.between, this.#draining);
    this.#flushNow();
  }

  /** As `flush` at the end of this turn, unless the turn does so itself: streams have no batch. */
  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(this.#flushNow);
  }

  readonly #flushNow = (): void => {
    this.#isFlushing = false;
    this.#udp.flush();
  };

  async #listenNative({ native, queue }: NativeSide, sockets: DnsSockets): Promise<void> {
    for (const [token, fd] of sockets.udp.entries()) {
      this.#udp.add(new UdpListener(native, fd, new UdpFront(this.#resolver, this.#counts)));
      if (!queue.add(fd, token)) throw new SvcError("unavailable", `udp: descriptor ${fd} is gone`);
    }
    queue.watch(sockets.wake, WAKE_TOKEN);
    for (const fd of [...sockets.tcp, ...sockets.dot, ...sockets.doh]) {
      queue.watch(fd, CONNECT_TOKEN);
    }
    for (const fd of sockets.tcp) {
      const tcp = this.#newTcp();
      this.#tcp.push(tcp);
      await tcp.listenOn(() => ownCopy(native, fd));
    }
  }

  #newTcp(): TcpListener {
    const front = new StreamFront(OVER_TCP, this.#front);
    return new TcpListener(front, this.#start.tcp, this.#bounds);
  }

  #exchangeQueue(): ExchangeQueue | null {
    const { sockets } = this.#start;
    if (this.#native === null || sockets === null) return null;
    return { ...this.#native, tokenBase: UPSTREAM_TOKEN, memory: sockets.exchangeMemory };
  }

  /** Once a batch or message, not once a query. */
  #setTime(): void {
    this.#clock.begin();
    const { epochMs } = this.#clock;
    this.#pipeline.nowSeconds = Math.floor(epochMs / 1_000);
    this.#limits?.setTime(epochMs);
  }

  #setTicking(on: boolean): void {
    this.#ticker.set(on ? performance.now() + TICK_MS : Infinity);
  }

  #tick(): void {
    this.#ticker.set(performance.now() + TICK_MS);
    this.#setTime();
    this.#flights.tick();
    this.#udp.flush();
  }
}
