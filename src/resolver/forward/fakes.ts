/** A forwarder with its surroundings: upstreams that say what a test has them say, and a clock. */
import assert from "node:assert/strict";
import { Prng } from "../../../tests/prng.ts";
import { parseIp } from "../../addr/mod.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { decodeMessage, encodeQuery, type Message } from "../../dns/mod.ts";
import type { Snapshot } from "../../snapshot/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import {
  COOKIE_SECRET,
  describe,
  type FakeResponse,
  PipelineBench,
  response,
  SEED,
  snapshotOf,
  START_SECONDS,
  wire,
} from "../fakes.ts";
import type { Outcome } from "../outcome.ts";
import { Verdict } from "../verdict.ts";
import { ClientAddress, DnssecState, Transport } from "../query.ts";
import { RebindingProtection } from "../rebinding.ts";
import type { Reply } from "../reply.ts";
import type { QueryLog } from "../query_log.ts";
import { Resolver, type ResolverOptions } from "../resolver.ts";
import { TurnClock } from "../turn_clock.ts";
import {
  ClientWaits,
  Flights,
  FLIGHTS_MAX,
  type Judge,
  type Responder,
  TICK_MS,
  type Waiter,
} from "../flights/mod.ts";
import {
  Asker,
  type Exchange,
  type Remote,
  type Sending,
  type ServerTransport,
} from "../ask/mod.ts";
import { Forwarder } from "./forwarder.ts";
import type { StrategyOptions } from "./strategy.ts";

/** A query that went out. */
export interface Sent {
  readonly upstream: number;
  readonly tcp: boolean;
  readonly packet: Uint8Array;
  readonly message: Message;
  readonly token: number;
  readonly atMs: number;
  /** Its answer is still wanted. */
  open: boolean;
}

/** Somebody who asked; has one answer in the end. */
export class Client implements Responder {
  readonly answers: string[] = [];
  /** What became of a query that waited. */
  outcome: Outcome | null = null;
  rule = -1;
  dnssec: DnssecState = DnssecState.None;
  constructor(private readonly bench: ForwarderBench, readonly name: string) {}

  /** The answer, or "" while there is none. */
  get answer(): string {
    assert.ok(this.answers.length <= 1, `one answer: ${this.answers.join(" and ")}`);
    return this.answers[0] ?? "";
  }

  room(): Reply {
    return this.bench.front.reply;
  }

  send({ query }: Waiter): void {
    const { bytes, offset, length } = this.room();
    this.answers.push(describe(bytes.slice(offset, offset + length)));
    this.outcome = query.outcome;
    this.rule = query.rule;
    this.dnssec = query.dnssec;
  }
}

export interface BenchOptions {
  /** By address: the domains it serves; none for every name. */
  readonly upstreams?: Readonly<Record<string, readonly string[]>>;
  /** By address; `udp` where none is said. */
  readonly transports?: Readonly<Record<string, ServerTransport>>;
  readonly timeoutMs?: number;
  readonly strategy?: StrategyOptions;
  /** Numbers that decide who is explored; 1, if left out: nobody. */
  readonly random?: () => number;
  readonly serveStale?: number;
  readonly openMax?: number;
  readonly seed?: number;
  readonly snapshot?: Snapshot;
  readonly rebinding?: RebindingProtection | null;
  readonly log?: QueryLog;
  readonly onSlow?: NonNullable<ResolverOptions["onSlow"]>;
  /** Makes what looks at answers; nobody does, if left out. */
  readonly judge?: (bench: ForwarderBench) => Judge;
}

type QueryOptions = NonNullable<Parameters<typeof encodeQuery>[2]>;

/** An upstream's place with the fake exchange. */
interface FakeRemote extends Remote {
  readonly upstream: number;
}

export class ForwarderBench implements Exchange {
  readonly front: PipelineBench;
  readonly asker: Asker;
  readonly forwarder: Forwarder;
  readonly flights: Flights;
  readonly resolver: Resolver;
  readonly sent: Sent[] = [];
  /** Upstreams that the system refuses to send to. */
  readonly down: Set<number> = new Set();
  readonly downTcp: Set<number> = new Set();
  /** The process has no socket left. */
  lacksSockets = false;
  nowMs = 0;
  ticking = false;
  readonly clock: TurnClock;
  readonly #open = new Map<number, Sent>();
  #looked = 0;
  #remotes = 0;

  constructor(options: BenchOptions = {}) {
    const { upstreams = { a: [], b: [], c: [] }, timeoutMs = 2_000, serveStale = 0 } = options;
    this.front = new PipelineBench(options.snapshot ?? snapshotOf({}), serveStale);
    const prng = new Prng(options.seed ?? 1);
    const nowMs = () => this.nowMs;
    const { counters } = this.front;
    this.asker = new Asker({
      exchange: this,
      counters,
      openMax: options.openMax ?? 2 * FLIGHTS_MAX,
      nowMs,
      random: (target) => target.set(prng.bytes(target.length)),
    });
    this.forwarder = new Forwarder({
      upstreams: Object.entries(upstreams).map(([address, domains]) => ({
        address,
        transport: options.transports?.[address] ?? "udp",
        timeoutMs,
        domains: domains.map(wire),
      })),
      exchange: this,
      asker: this.asker,
      counters,
      ttl: { min: 0, max: 86_400, negativeMax: 3_600 },
      strategy: options.strategy ?? { kind: "order", atOnce: 1 },
      random: options.random ?? (() => 1),
      nowMs,
    });
    this.flights = new Flights({
      source: this.forwarder,
      judge: options.judge?.(this) ?? null,
      cache: this.front.cache,
      counters,
      rebinding: options.rebinding === undefined ? new RebindingProtection() : options.rebinding,
      serveStale,
      clients: new ClientWaits([], SEED),
      senderBytes: 128, // As many as any transport needs.
      nowMs,
      nowSeconds: () => this.front.pipeline.nowSeconds,
      ticking: (on) => {
        assert.notEqual(on, this.ticking, "told of changes only");
        this.ticking = on;
      },
    });
    this.clock = new TurnClock({
      wallMs: () => START_SECONDS * 1_000 + this.nowMs,
      monotonicMs: () => this.nowMs,
    });
    this.resolver = new Resolver({
      pipeline: this.front.pipeline,
      flights: this.flights,
      seed: SEED,
      cookieSecret: COOKIE_SECRET,
      clock: this.clock,
      log: options.log ?? null,
      counters: this.front.counters,
      onSlow: options.onSlow ?? null,
    });
  }

  remote({ transport }: Remote): FakeRemote {
    return { transport, upstream: this.#remotes++ };
  }

  send({ upstream }: FakeRemote, packet: Uint8Array, length: number, token: number): Sending {
    if (this.lacksSockets) return "noSocket";
    if (this.down.has(upstream)) return "unreachable";
    return this.#send(upstream, false, packet, length, token);
  }

  sendTcp({ upstream }: FakeRemote, packet: Uint8Array, length: number, token: number): Sending {
    if (this.downTcp.has(upstream)) return "unreachable";
    return this.#send(upstream, true, packet, length, token);
  }

  cancel(token: number): void {
    const sent = this.#open.get(token);
    if (sent !== undefined) sent.open = false;
    this.#open.delete(token);
  }

  #send(
    upstream: number,
    tcp: boolean,
    packet: Uint8Array,
    length: number,
    token: number,
  ): Sending {
    assert.ok(!this.#open.has(token), "a token is used for one thing at a time");
    const copy = packet.slice(0, length);
    const message = decodeMessage(copy);
    assert.ok(message !== null && message.trailingBytes === 0);
    const sent = { upstream, tcp, packet: copy, message, token, atMs: this.nowMs, open: true };
    this.sent.push(sent);
    this.#open.set(token, sent);
    return "sent";
  }

  /** Queries whose answers are still wanted. */
  get open(): readonly Sent[] {
    return [...this.#open.values()];
  }

  count(counter: Counter): number {
    return this.front.counters.values[counter];
  }

  /** Queries of an outcome. */
  outcomes(outcome: Outcome): number {
    return this.front.outcomes(outcome);
  }

  /** Asks a question; one that is answered at once is answered when this returns. */
  ask(
    name: string,
    options: QueryOptions & { type?: number; from?: string; clientId?: string } = {},
  ): Client {
    const client = new Client(this, name);
    const { type = 1, from, clientId, ...rest } = options;
    const address = new ClientAddress();
    const ip = from === undefined ? null : parseIp(from);
    if (ip !== null) address.aim(ip, 0, ip.length);
    if (clientId !== undefined) address.id = new TextEncoder().encode(clientId);
    const packet = encodeQuery(name, type, { id: 0xbeef, ...rest });
    const { reply } = this.front;
    const verdict = this.resolver.decide(
      Transport.Udp,
      address,
      packet,
      0,
      packet.length,
      reply,
    );
    const waiter = verdict === Verdict.Resolve ? this.resolver.wait(client, reply) : null;
    if (waiter === null) {
      client.answers.push(describe(reply.bytes.slice(reply.offset, reply.offset + reply.length)));
    } else {
      packet.fill(0xff); // The transport's buffer has the next packet in it by then.
      this.resolver.resolve(waiter);
    }
    return client;
  }

  /** What went out since the last look: upstreams, by `!` over TCP, by `-` without EDNS. */
  looked(): string {
    const news = this.sent.slice(this.#looked);
    this.#looked = this.sent.length;
    const letter = (s: Sent) => "abcdefgh"[s.upstream] + (s.tcp ? "!" : "");
    return news.map((s) => letter(s) + (s.message.opt === null ? "-" : "")).join(" ");
  }

  /** The query sent last. */
  get last(): Sent {
    const sent = this.sent.at(-1);
    assert.ok(sent !== undefined);
    return sent;
  }

  /** Has an upstream answer a query as it was sent, its ID and case included. */
  answer(sent: Sent, fake: Partial<FakeResponse> = {}): void {
    const packet = this.packetFor(sent, fake);
    this.deliver(sent, packet);
  }

  packetFor(sent: Sent, fake: Partial<FakeResponse> = {}): Uint8Array {
    const { name, type } = sent.message.questions[0];
    // A server points to the question for its owner name, so that this has the case as sent.
    const records = fake.records?.map((record) => {
      return record.name.toLowerCase() === name.toLowerCase() ? { ...record, name } : record;
    });
    const packet = response({ name, type, ...fake, ...(records !== undefined && { records }) });
    setU16(packet, 0, fake.id ?? getU16(sent.packet, 0));
    return packet;
  }

  /** Hands a packet in, unless nobody listens where it goes. */
  deliver(sent: Sent, packet: Uint8Array): void {
    if (sent.open) this.asker.onPacket(sent.token, packet, packet.length);
  }

  /** Lets time pass, with the ticks asked for. */
  advance(ms: number): void {
    for (let left = ms; left > 0; left -= TICK_MS) {
      this.nowMs += Math.min(left, TICK_MS);
      this.front.pipeline.nowSeconds = START_SECONDS + Math.floor(this.nowMs / 1_000);
      this.clock.begin();
      if (this.ticking) this.flights.tick();
    }
  }

  /** Nothing is on its way, and nobody waits. */
  checkIdle(): void {
    const { inFlight, waiting } = this.flights;
    const { inUse } = this.asker;
    assert.deepEqual({ inFlight, waiting, inUse }, { inFlight: 0, waiting: 0, inUse: 0 });
    assert.equal(this.open.length, 0);
  }
}

/** Keeps the log's lines of a test to itself. */
export function quietly<T>(run: () => T): { result: T; lines: string[] } {
  const write = Deno.stderr.writeSync;
  const lines: string[] = [];
  Deno.stderr.writeSync = (bytes) => {
    lines.push(new TextDecoder().decode(bytes));
    return bytes.length;
  };
  try {
    return { result: run(), lines };
  } finally {
    Deno.stderr.writeSync = write;
  }
}
