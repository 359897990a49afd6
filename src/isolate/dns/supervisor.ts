import type { HostPort } from "../../addr/mod.ts";
import { SvcError } from "../../errors.ts";
import { areLogLinesHanded, log } from "../../log.ts";
import {
  closeSocket,
  dropPages,
  EventQueue,
  type Host,
  type Native,
  openEpoll,
  openHost,
  openNative,
  openWake,
  returnFreeAllocations,
  threadCpuMs,
  wake,
} from "../../native/mod.ts";
import {
  type AskHow,
  COOKIE_SECRET_BYTES,
  type Found,
  type OwnAnswer,
  RateLimiter,
} from "../../resolver/mod.ts";
import { memoryOf, type SnapshotData } from "../../snapshot/mod.ts";
import { CounterBlock, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { NativeUdpExchange, type TlsIdentity } from "../../transport/mod.ts";
import { Inbox } from "../inbox.ts";
import { type KeepLimits, KeptIsolate } from "../kept_isolate.ts";
import { LeftThreads } from "../left_threads.ts";
import { Pending } from "./pending.ts";
import { type DnsListener, type DnsOptions, takeAnswers } from "./options.ts";
import type { DnsSeats, Seat } from "./seats.ts";
import type {
  DnsPorts,
  DnsReport,
  DnsSockets,
  DnsStart,
  DnsTrust,
  FromDns,
  LeakLookup,
  ToDns,
} from "../messages.ts";
import type { SlowQuery } from "./slow_queries.ts";
import { startIsolate } from "../scopes.ts";

/** Ten seconds for a start, and of silence; one that crashes is back at once, the first time. */
const LIMITS: KeepLimits = {
  startMsMax: 10_000,
  lookMs: 5_000, // Each wakes a processor that may have nothing else to do.
  silenceMsMax: 10_000,
  restartMsMin: 50,
  restartMsMax: 5_000,
  stableMs: 30_000,
};
const LINES = {
  crashed: "a dns isolate crashed",
  startedAgain: "a dns isolate was started again",
  notStarted: "a dns isolate can't be started",
} as const;
/** Longest wait for a snapshot to hold everywhere. */
const SWAP_MS_MAX = 5_000;
/** The parked thread of an ended isolate has left its memory alone after this. */
export const PARKED_MS = 1_000;

/** One isolate and whoever replaces it. */
class Member {
  sockets: DnsSockets | null = null;
  /** Of the first one. */
  readonly ready: PromiseWithResolvers<DnsPorts> = Promise.withResolvers();
  readonly drained: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly counters = new SharedArrayBuffer(COUNTERS_BYTES);
  /** The snapshot it answers by; -1 while it does not. */
  generation = -1;
  /** The one it was started with. */
  firstGeneration = -1;
  readonly lookups: Pending<Found> = new Pending();
  readonly questions: Pending<OwnAnswer> = new Pending();
  /** What it last said of itself. */
  report: DnsReport | null = null;
  flushed: PromiseWithResolvers<void> | null = null;
  saved: PromiseWithResolvers<SharedArrayBuffer | null> | null = null;
  readonly isolate: KeptIsolate<ToDns, FromDns>;

  constructor(
    readonly index: number,
    readonly seat: Seat | null,
    keep: (member: Member) => KeptIsolate<ToDns, FromDns>,
  ) {
    this.isolate = keep(this);
    this.ready.promise.catch(() => {}); // Who starts the first one waits for it, and nobody else.
  }

  /** Sends a message, and ends the wait of a thread that would not hear of it. */
  send(worker: Worker, message: ToDns, native: Native | null): void {
    if (this.sockets !== null) Inbox.announce(this.sockets.inboxMemory);
    const port = message.type === "checker" ? message.way.port : null;
    worker.postMessage(message, port === null ? [] : [port]);
    if (native !== null && this.sockets !== null) wake(native, this.sockets.wake);
  }
}

/**
 * Keeps the dns isolates alive: starts one for each set of sockets, replaces one that crashes or falls
 * silent, and tells all of them of a new snapshot.
 */
export class DnsSupervisor {
  #options: DnsOptions;
  readonly #native: Native | null;
  readonly #host: Host | null = openHost();
  readonly #members: Member[];
  readonly #startWorker: () => Worker;
  #snapshot: SnapshotData;
  #swapWaiters: (() => void)[] = [];
  #stopping = false;
  readonly #crashes = { count: 0 };
  /** Threads of isolates that were replaced. */
  readonly left: LeftThreads;
  /** Takes a sample of the queries that waited, if `DnsOptions.traces` asks for one. */
  onSlow: ((queries: readonly SlowQuery[]) => void) | null = null;
  /** Gets each query for a name that a leak test may have. */
  onLeakLookup: (lookup: LeakLookup) => void = () => {};
  /** How much each client has asked, whichever isolate it asked. */
  readonly #buckets = new SharedArrayBuffer(RateLimiter.MEMORY_BYTES);
  readonly cookieSecret: Uint8Array;

  /**
   * One isolate sits at each of the `seats`, whose sockets are the caller's; `null`, where the C
   * library can't be had: one isolate listens by itself. Each is what `startWorker` starts.
   */
  constructor(
    options: DnsOptions,
    seats: DnsSeats | null,
    snapshot: SnapshotData,
    startWorker: () => Worker = () => startIsolate("dns"),
  ) {
    this.#startWorker = startWorker;
    this.cookieSecret = options.former?.cookieSecret ??
      crypto.getRandomValues(new Uint8Array(COOKIE_SECRET_BYTES));
    const native = this.#native = openNative();
    this.#snapshot = snapshot;
    this.left = new LeftThreads((thread) => native === null ? null : threadCpuMs(native, thread));
    const keep = (member: Member) => this.#keep(member);
    if (seats === null) {
      this.#options = options;
      this.#members = [new Member(0, null, keep)];
      return;
    }
    const { listen, dot, doh } = seats;
    const { tls } = options;
    this.#options = { ...options, listen, tls: tls === null ? null : { ...tls, dot, doh } };
    this.#members = seats.seats.map((seat, index) => new Member(index, seat, keep));
  }

  /** Addresses listened on, with the ports the system gave for 0. */
  get listening(): readonly HostPort[] {
    return this.#options.listen;
  }

  /** Every address with its protocol. */
  get listeners(): readonly DnsListener[] {
    const { listen, tls } = this.#options;
    const plain = listen.flatMap((address) =>
      (["udp", "tcp"] as const).map((protocol) => ({ protocol, address }))
    );
    const encrypted = (["dot", "doh", "doq"] as const).flatMap((protocol) =>
      (tls?.[protocol] ?? []).map((address) => ({ protocol, address }))
    );
    return [...plain, ...encrypted];
  }

  /** Has every isolate show another certificate, whoever is started later too. */
  renewCertificate(identity: TlsIdentity): void {
    const { tls } = this.#options;
    if (tls === null) return;
    this.#options = { ...this.#options, tls: { ...tls, identity } };
    for (const member of this.#members) member.isolate.tell({ type: "certificate", identity });
  }

  /** Has every isolate validate by other anchors. */
  renewTrust(trust: DnsTrust): void {
    if (this.#options.trust === null) return;
    this.#options = { ...this.#options, trust };
    for (const member of this.#members) member.isolate.tell({ type: "trust", trust });
  }

  /** Has every isolate go on with other keys of Oblivious DoH, the current one first. */
  renewOdoh(odohSeeds: readonly Uint8Array[]): void {
    const { tls } = this.#options;
    if (tls === null) return;
    this.#options = { ...this.#options, tls: { ...tls, odohSeeds } };
    for (const member of this.#members) member.isolate.tell({ type: "odoh", seeds: odohSeeds });
  }

  /** Isolates that crashed since the start. */
  get crashes(): number {
    return this.#crashes.count;
  }

  /** Counters of every isolate; they go on through a restart. */
  get counters(): CounterBlock[] {
    return this.#members.map(({ counters }) => new CounterBlock(counters));
  }

  /** Starts every isolate; resolves when all answer. */
  async start(): Promise<void> {
    for (const { isolate } of this.#members) isolate.start();
    const ports = await Promise.all(this.#members.map((member) => member.ready.promise));
    this.#notePorts(ports[0]);
  }

  /**
   * Has every isolate answer by `snapshot`; resolves when the last one does. One that is to be
   * started again begins with it, and is not waited for.
   */
  async publish(snapshot: SnapshotData): Promise<void> {
    const kept = memoryOf(snapshot);
    const former = memoryOf(this.#snapshot).filter((memory) => !kept.includes(memory));
    this.#snapshot = snapshot;
    for (const member of this.#members) member.isolate.tell({ type: "snapshot", snapshot });
    const swapped = Promise.withResolvers<void>();
    const check = () => {
      const isLate = ({ isolate, generation }: Member) =>
        isolate.isThere && generation < snapshot.generation;
      if (this.#members.some(isLate)) return;
      // Nobody reads the former one any more; as garbage it could lie about for minutes.
      if (this.#host !== null) { for (const memory of former) dropPages(this.#host, memory); }
      swapped.resolve();
    };
    this.#swapWaiters.push(check);
    check(); // There may be nobody to wait for.
    const timer = setTimeout(() => {
      // Its isolate is being replaced, and starts with the newest snapshot.
      log.warn("a dns isolate is slow to take a snapshot", { generation: snapshot.generation });
      swapped.resolve();
    }, SWAP_MS_MAX);
    await swapped.promise;
    clearTimeout(timer);
    this.#swapWaiters = this.#swapWaiters.filter((waiter) => waiter !== check);
  }

  /**
   * Looks a name up for the service itself, through the cache and the upstreams of the isolates: not
   * filtered, not counted and not logged as a client's query. No address means that there is none.
   * `qtype` is A or AAAA.
   *
   * @throws {SvcError} `unavailable`: no upstream answered, too many look-ups wait, or `signal`
   * came first.
   */
  async lookup(hostname: string, qtype: number, signal: AbortSignal): Promise<Found> {
    const { lookups, isolate } = this.#answering(hostname);
    const what = `${hostname} can't be looked up`;
    const found = await lookups.start(what, signal, (id) => {
      isolate.tell({ type: "lookup", id, hostname, qtype });
    });
    if (found.failure === null) return found;
    throw new SvcError("unavailable", `${what}: ${found.failure}`);
  }

  /**
   * Asks a query for the service itself, the same way.
   *
   * @throws {SvcError} `unavailable`: no isolate answers, too many questions wait, or `signal` came
   * first.
   */
  async ask(packet: Uint8Array, how: AskHow, signal: AbortSignal): Promise<OwnAnswer> {
    const { questions, isolate } = this.#answering("a question");
    return await questions.start("a question can't be asked", signal, (id) => {
      isolate.tell({ type: "ask", id, packet, how });
    });
  }

  #answering(what: string): Member {
    const member = this.#members.find(({ generation }) => generation >= 0);
    if (member !== undefined) return member;
    throw new SvcError("unavailable", `${what}: no dns isolate runs to look it up`);
  }

  /** Isolates that answer at this moment, and those there are to be. */
  get running(): { readonly now: number; readonly wanted: number } {
    const members = this.#members;
    return { now: members.filter((one) => one.generation >= 0).length, wanted: members.length };
  }

  /** What each isolate last said of itself. */
  get reports(): readonly DnsReport[] {
    return this.#members.map(({ report }) => report).filter((report) => report !== null);
  }

  /** Has every isolate forget its cached answers; resolves when all have. */
  async flushCaches(): Promise<void> {
    const running = this.#members.filter(({ isolate }) => isolate.isThere);
    await Promise.all(running.map((member) => {
      member.flushed ??= Promise.withResolvers();
      member.isolate.tell({ type: "flush" });
      return member.flushed.promise;
    }));
  }

  /** The cached answers of each isolate in turn, for `FormerDns`; they go on answering. */
  async *save(): AsyncGenerator<SharedArrayBuffer> {
    for (const member of this.#members) {
      if (member.generation < 0) continue;
      member.saved = Promise.withResolvers();
      member.isolate.tell({ type: "save" });
      const saved = await member.saved.promise;
      if (saved !== null) yield saved;
      // As garbage it could lie about for minutes.
      if (saved !== null && this.#host !== null) dropPages(this.#host, saved);
    }
  }

  /**
   * Has every query in flight answered, for `graceMs` at most, and ends the isolates. A successor
   * reads their sockets by then.
   */
  async stop(graceMs: number, hasSuccessor = false): Promise<void> {
    this.#stopping = true;
    for (const { isolate } of this.#members) isolate.retire();
    const running = this.#members.filter(({ isolate }) => isolate.isThere);
    for (const member of running) {
      member.isolate.tell({ type: "drain", graceMs, successor: hasSuccessor });
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, graceMs + PARKED_MS / 2);
    });
    await Promise.race([Promise.all(running.map(({ drained }) => drained.promise)), late]);
    clearTimeout(timer);
    for (const { isolate } of this.#members) isolate.end();
    this.left.stop();
  }

  /** Replaces 0 by what the system gave, so that an isolate that is replaced gets the same. */
  #notePorts(ports: DnsPorts): void {
    const real = (addresses: readonly HostPort[], found: readonly number[]) =>
      addresses.map(({ ip, port }, i) => ({ ip, port: found[i] ?? port }));
    const { listen, tls } = this.#options;
    this.#options = {
      ...this.#options,
      listen: real(listen, ports.listen),
      tls: tls === null ? null : {
        ...tls,
        dot: real(tls.dot, ports.dot),
        doh: real(tls.doh, ports.doh),
        doq: real(tls.doq, ports.doq),
      },
    };
  }

  #keep(member: Member): KeptIsolate<ToDns, FromDns> {
    return new KeptIsolate<ToDns, FromDns>({
      limits: LIMITS,
      lines: LINES,
      fields: { isolate: member.index },
      crashes: this.#crashes,
      startWorker: this.#startWorker,
      begin: () => this.#begin(member),
      hear: (message) => this.#hear(member, message),
      ended: (reason) => this.#ended(member, reason),
      send: (worker, message) => member.send(worker, message, this.#native),
      left: (thread) => this.left.watch(`dns isolate ${member.index}`, thread),
    });
  }

  #begin(member: Member): void {
    member.sockets = this.#socketsOf(member);
    member.firstGeneration = this.#snapshot.generation;
    const { logQueues, former, checks, ...options } = this.#options;
    const start: DnsStart = {
      ...options,
      index: member.index,
      sockets: member.sockets,
      counters: member.counters,
      logQueue: logQueues?.[member.index] ?? null,
      buckets: this.#buckets,
      cookieSecret: this.cookieSecret,
      savedAnswers: takeAnswers(former, member.index),
      handsLogOn: areLogLinesHanded(),
      snapshot: this.#snapshot,
    };
    member.isolate.tell({ type: "start", start });
    checks?.connect(member.index, member.sockets !== null, (way) => {
      member.isolate.tell({ type: "checker", way });
    });
  }

  #socketsOf({ seat }: Member): DnsSockets | null {
    const native = this.#native;
    if (native === null || seat === null) return null;
    const wake = openWake(native);
    let epoll: number;
    try {
      epoll = openEpoll(native);
    } catch (error) {
      closeSocket(native, wake);
      throw error;
    }
    return {
      ...seat,
      wake,
      epoll,
      eventMemory: new SharedArrayBuffer(EventQueue.MEMORY_BYTES),
      inboxMemory: new SharedArrayBuffer(Inbox.MEMORY_BYTES),
      exchangeMemory: new SharedArrayBuffer(NativeUdpExchange.MEMORY_BYTES),
    };
  }

  #hear(member: Member, message: FromDns): void {
    switch (message.type) {
      case "ready":
        member.generation = Math.max(member.generation, member.firstGeneration);
        // What was published while it started is told again.
        member.isolate.tell({ type: "snapshot", snapshot: this.#snapshot });
        if (this.#options.tls?.identity) {
          member.isolate.tell({ type: "certificate", identity: this.#options.tls.identity });
        }
        if (this.#options.tls !== null && this.#options.tls.odohSeeds.length > 0) {
          member.isolate.tell({ type: "odoh", seeds: this.#options.tls.odohSeeds });
        }
        if (this.#options.trust !== null) {
          member.isolate.tell({ type: "trust", trust: this.#options.trust });
        }
        member.ready.resolve(message.ports);
        return;
      case "swapped":
        member.generation = message.generation;
        for (const check of this.#swapWaiters) check();
        return;
      case "leak":
        this.onLeakLookup(message.lookup);
        return;
      case "drained":
        member.drained.resolve();
        return;
      case "saved":
        member.saved?.resolve(message.answers);
        return;
      case "flushed":
        member.flushed?.resolve();
        member.flushed = null;
        return;
      case "gaveBack":
        if (this.#host !== null) returnFreeAllocations(this.#host);
        return;
      case "lookedUp":
        member.lookups.end(message.id, message.found);
        return;
      case "asked":
        member.questions.end(message.id, message.answer);
        return;
      case "pong":
        member.report = message.report;
        if (message.slow.length > 0) this.onSlow?.(message.slow);
        return;
    }
  }

  /** Lets go of what an isolate held, and of the wait that it may have parked; its seat stays. */
  #ended(member: Member, reason: string): void {
    const { sockets } = member;
    member.sockets = null;
    member.ready.reject(new SvcError("unavailable", `dns isolate: ${reason}`));
    if (this.#stopping) member.drained.resolve();
    member.flushed?.resolve(); // Its cache went with it.
    member.flushed = null;
    member.saved?.resolve(null);
    member.lookups.fail("the dns isolate ended");
    member.questions.fail("the dns isolate ended");
    member.generation = -1;
    for (const check of this.#swapWaiters) check();
    const native = this.#native;
    if (sockets === null || native === null) return;
    wake(native, sockets.wake);
    // Closed once the parked thread is out of them; `sockets` holds its memory until then as well.
    setTimeout(() => {
      closeSocket(native, sockets.wake);
      closeSocket(native, sockets.epoll);
      for (const fd of NativeUdpExchange.openSockets(sockets.exchangeMemory)) {
        closeSocket(native, fd);
      }
    }, PARKED_MS);
  }
}
