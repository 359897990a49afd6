/** A recursor with its surroundings: an Internet of fake name servers, and a clock. */
import assert from "node:assert/strict";
import { Prng } from "../../../tests/prng.ts";
import { encodeResponse, parseRecord, type TextRecord } from "../../../tests/replay/records.ts";
import { formatIp, parseIp } from "../../addr/mod.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import {
  AA_BIT,
  countLabels,
  decodeMessage,
  encodeQuery,
  equalNames,
  isAtOrBelow,
  type Message,
  Qtype,
  Rcode,
} from "../../dns/mod.ts";
import { deniesName } from "../../dnssec/mod.ts";
import { Asker, type Exchange, type PlainAddress, type Remote, type Sending } from "../ask/mod.ts";
import { COOKIE_SECRET, describe, PipelineBench, SEED, START_SECONDS, wire } from "../fakes.ts";
import {
  ClientWaits,
  Flights,
  FLIGHTS_MAX,
  type Judge,
  KeptMessages,
  type Responder,
  type Source,
  TICK_MS,
  type Waiter,
} from "../flights/mod.ts";
import { ClientAddress, Transport } from "../query.ts";
import type { Reply } from "../reply.ts";
import { RebindingProtection } from "../rebinding.ts";
import { Resolver } from "../resolver.ts";
import { Trace } from "../trace.ts";
import { TurnClock } from "../turn_clock.ts";
import { Forwarder } from "../forward/mod.ts";
import { SplitSource } from "../split_source.ts";
import type { CounterBlock } from "../../telemetry/mod.ts";
import { Verdict } from "../verdict.ts";
import { parseHints } from "./hints.ts";
import { Recursor, type RecursorOptions } from "./recursor.ts";

/** A query as a fake server gets it. */
export interface FakeQuery {
  readonly address: string;
  readonly tcp: boolean;
  readonly packet: Uint8Array;
  readonly message: Message;
  /** In lower case. */
  readonly name: string;
  readonly wireName: Uint8Array;
  readonly type: number;
}

/** What a fake server sends: packets, one behind the other; none: it is silent. */
export type FakeServer = (query: FakeQuery) => readonly Uint8Array[];

/** A zone as text: `name TYPE data` a line; a delegation is NS records below it. */
export class FakeZone {
  readonly records: TextRecord[];
  readonly name: Uint8Array;

  constructor(name: string, lines: readonly string[]) {
    this.name = wire(name);
    const soa = `${name} 300 SOA ns.${name === "." ? "" : name} h. 1 2 3 4 60`;
    this.records = [soa, ...lines].map(parseRecord);
  }

  /** The response of a server that follows the book. */
  answer({ wireName: name, type }: FakeQuery): Uint8Array {
    const at = (owner: Uint8Array, wanted: number) =>
      this.records.filter((r) => r.type === wanted && equalNames(r.owner, 0, owner, 0));
    const question = { name, type };
    const cuts = this.records.filter((r) =>
      r.type === Qtype.NS && isAtOrBelow(name, 0, r.owner, 0) &&
      countLabels(r.owner, 0) > countLabels(this.name, 0) &&
      !(type === Qtype.DS && equalNames(r.owner, 0, name, 0))
    );
    if (cuts.length > 0) {
      const additional = cuts.flatMap((
        { rdata },
      ) => [...at(rdata, Qtype.A), ...at(rdata, Qtype.AAAA)]);
      return encodeResponse(question, 0, { authority: cuts, additional });
    }
    const answer: TextRecord[] = [];
    let target = name;
    for (let i = 0; i < 8; i++) {
      const found = at(target, type);
      if (found.length > 0 || type === Qtype.CNAME) {
        answer.push(...found);
        break;
      }
      const [alias] = at(target, Qtype.CNAME);
      if (alias === undefined || !isAtOrBelow(target, 0, this.name, 0)) break;
      answer.push(alias);
      target = alias.rdata;
    }
    const isHere = isAtOrBelow(target, 0, this.name, 0);
    const exists = this.records.some((r) => isAtOrBelow(r.owner, 0, target, 0));
    const isAnswered = answer.some((r) => r.type === type);
    const authority = isAnswered || !isHere ? [] : at(this.name, Qtype.SOA);
    const rcode = isHere && !exists && !isAnswered ? Rcode.NXDomain : Rcode.NoError;
    const additional = type === Qtype.NS
      ? answer.flatMap(({ rdata }) => [...at(rdata, Qtype.A), ...at(rdata, Qtype.AAAA)])
      : [];
    const message = encodeResponse(question, rcode, { answer, authority, additional });
    setU16(message, 2, getU16(message, 2) | AA_BIT);
    return message;
  }
}

/** A server of zones, which refuses all other names. */
export function serverOf(...zones: readonly FakeZone[]): FakeServer {
  return (query) => {
    const serving = zones.filter(({ name }) => isAtOrBelow(query.wireName, 0, name, 0))
      .sort((a, b) => b.name.length - a.name.length);
    // A zone's own DS is its parent's to say.
    const [zone] = query.type === Qtype.DS && serving.length > 1 &&
        equalNames(serving[0].name, 0, query.wireName, 0)
      ? serving.slice(1)
      : serving;
    return [zone === undefined ? failing(query, Rcode.Refused) : zone.answer(query)];
  };
}

/** A response with these records. */
export function says(
  { wireName: name, type }: FakeQuery,
  sections: {
    readonly answer?: readonly string[];
    readonly authority?: readonly string[];
    readonly additional?: readonly string[];
  },
  flags = 0,
): Uint8Array {
  const records = (lines: readonly string[] = []) => lines.map(parseRecord);
  const message = encodeResponse({ name, type }, 0, {
    answer: records(sections.answer),
    authority: records(sections.authority),
    additional: records(sections.additional),
  });
  setU16(message, 2, getU16(message, 2) | flags);
  return message;
}

/** A response without records. */
export function failing({ wireName: name, type }: FakeQuery, rcode: number): Uint8Array {
  return encodeResponse({ name, type }, rcode, {});
}

/** Somebody who asked; has one answer in the end. */
export class Client implements Responder {
  readonly answers: string[] = [];
  readonly packets: Uint8Array[] = [];
  tookMs = 0;
  readonly #startedAtMs: number;
  constructor(private readonly bench: RecursorBench, readonly name: string) {
    this.#startedAtMs = bench.nowMs;
  }

  get answer(): string {
    assert.ok(this.answers.length <= 1, `one answer: ${this.answers.join(" and ")}`);
    return this.answers[0] ?? "";
  }

  room(): Reply {
    return this.bench.front.reply;
  }

  send(_waiter: Waiter): void {
    const { bytes, offset, length } = this.room();
    this.take(bytes.slice(offset, offset + length));
  }

  take(packet: Uint8Array): void {
    this.packets.push(packet);
    this.answers.push(describe(packet));
    this.tookMs = this.bench.nowMs - this.#startedAtMs;
  }
}

export interface BenchOptions extends Partial<RecursorOptions> {
  readonly servers?: Readonly<Record<string, FakeServer>>;
  /** Answers at every other address; silence if left out. */
  readonly anyServer?: FakeServer;
  readonly hintsText?: string;
  readonly prngSeed?: number;
  readonly serveStale?: number;
  readonly rebinding?: RebindingProtection | null;
  readonly startSeconds?: number;
  /** Upstreams, by address, and the domains that each serves. */
  readonly upstreams?: Readonly<Record<string, readonly string[]>>;
  readonly judge?: (bench: RecursorBench) => Judge | null;
}

interface FakeRemote extends Remote {
  readonly address: string;
}

interface Pending {
  readonly token: number;
  readonly packet: Uint8Array;
  readonly atMs: number;
}

/** `from` is the client's address. */
type AskOptions = QueryOptions & { readonly from?: string; readonly trace?: Trace | null };
type QueryOptions = NonNullable<Parameters<typeof encodeQuery>[2]>;

export class RecursorBench implements Exchange {
  readonly front: PipelineBench;
  readonly asker: Asker;
  readonly recursor: Recursor;
  readonly flights: Flights;
  readonly resolver: Resolver;
  readonly servers: Map<string, FakeServer>;
  readonly #anyServer: FakeServer;
  /** Every query that was sent, in order. */
  readonly sent: FakeQuery[] = [];
  /** Milliseconds to an answer, by address. */
  readonly latencyMs: Map<string, number> = new Map();
  readonly unreachable: Set<string> = new Set();
  nowMs = 0;
  ticking = false;
  startSeconds: number;
  readonly #clock: TurnClock;
  readonly #upstreams: ReadonlySet<string>;
  #isForwarded: (name: Uint8Array, length: number) => boolean = () => false;
  readonly #open = new Set<number>();
  #pending: Pending[] = [];

  constructor(options: BenchOptions = {}) {
    const { serveStale = 0 } = options;
    this.front = new PipelineBench(undefined, serveStale);
    const prng = new Prng(options.prngSeed ?? 1);
    const nowMs = () => this.nowMs;
    const nowSeconds = () => this.front.pipeline.nowSeconds;
    const { counters, cache } = this.front;
    this.startSeconds = options.startSeconds ?? START_SECONDS;
    this.front.pipeline.nowSeconds = this.startSeconds;
    this.servers = new Map(Object.entries(options.servers ?? {}));
    this.#upstreams = new Set(Object.keys(options.upstreams ?? {}));
    this.#anyServer = options.anyServer ?? (() => []);
    this.asker = new Asker({
      exchange: this,
      counters,
      openMax: 2 * FLIGHTS_MAX,
      nowMs,
      random: (target) => target.set(prng.bytes(target.length)),
    });
    this.recursor = new Recursor({
      exchange: this,
      asker: this.asker,
      cache,
      counters,
      ttl: { min: 0, max: 86_400, negativeMax: 3_600 },
      seed: SEED,
      nowMs,
      nowSeconds,
      random: () => prng.int(1e9) / 1e9,
      refresh: (query) => this.flights.refresh(query),
      isForwarded: (name, length) => this.#isForwarded(name, length),
      deniesName,
      hints: parseHints(options.hintsText ?? "a.root-servers.net A 198.41.0.4"),
      qnameMinimisation: true,
      dnssecOk: false,
      delegationsBytes: 2 * 1024 * 1024,
      ...options,
    });
    this.flights = new Flights({
      source: this.#sourceOf(options, counters),
      judge: options.judge?.(this) ?? null,
      cache,
      counters,
      rebinding: options.rebinding ?? null,
      serveStale,
      clients: new ClientWaits([], SEED),
      senderBytes: 128,
      nowMs,
      nowSeconds,
      ticking: (on) => void (this.ticking = on),
    });
    this.#clock = new TurnClock({
      wallMs: () => this.startSeconds * 1_000 + this.nowMs,
      monotonicMs: nowMs,
    });
    this.resolver = new Resolver({
      pipeline: this.front.pipeline,
      flights: this.flights,
      seed: SEED,
      cookieSecret: COOKIE_SECRET,
      clock: this.#clock,
      log: null,
      counters,
      onSlow: null,
    });
  }

  #sourceOf({ upstreams }: BenchOptions, counters: CounterBlock): Source {
    if (upstreams === undefined) return this.recursor;
    const messages = new KeptMessages(this.front.cache, () => this.front.pipeline.nowSeconds);
    const forwarder = new Forwarder({
      upstreams: Object.entries(upstreams).map(([address, domains]) => ({
        transport: "udp",
        address,
        endpoint: { ip: parseIp(address)!, port: 53 },
        timeoutMs: 2_000,
        domains: domains.map(wire),
      })),
      exchange: this,
      asker: this.asker,
      counters,
      ttl: { min: 0, max: 86_400, negativeMax: 3_600 },
      strategy: { kind: "order", atOnce: 1 },
      random: () => 1,
      nowMs: () => this.nowMs,
      elsewhere: { messages, seed: SEED },
    });
    this.#isForwarded = (name, length) => forwarder.serves(name, length);
    return new SplitSource(forwarder, this.recursor);
  }

  remote({ endpoint, transport }: PlainAddress): FakeRemote {
    return { transport, address: formatIp(endpoint.ip) };
  }

  send(remote: FakeRemote, packet: Uint8Array, length: number, token: number): Sending {
    return this.#send(remote.address, false, packet.slice(0, length), token);
  }

  sendTcp(remote: FakeRemote, packet: Uint8Array, length: number, token: number): Sending {
    return this.#send(remote.address, true, packet.slice(0, length), token);
  }

  cancel(token: number): void {
    this.#open.delete(token);
    this.#pending = this.#pending.filter((pending) => pending.token !== token);
  }

  #send(address: string, tcp: boolean, packet: Uint8Array, token: number): Sending {
    if (this.unreachable.has(address)) return "unreachable";
    const message = decodeMessage(packet);
    assert.ok(message !== null);
    // TsuKing: what comes back to a resolver by a loop is not resolved once more.
    if (!this.#upstreams.has(address)) {
      assert.ok(!message.rd, "name servers are not asked to recurse");
    }
    const { name, type } = message.questions[0];
    const wireName = wire(name);
    const query = { address, tcp, packet, message, name: name.toLowerCase(), wireName, type };
    this.sent.push(query);
    this.#open.add(token);
    const atMs = this.nowMs + (this.latencyMs.get(address) ?? 10);
    for (const answer of (this.servers.get(address) ?? this.#anyServer)(query)) {
      // What a server has no ID for is the answer to the query.
      if (getU16(answer, 0) === 0) setU16(answer, 0, getU16(packet, 0));
      this.#pending.push({ token, packet: answer, atMs });
    }
    return "sent";
  }

  /** Queries sent to an address, or to all. */
  count(address?: string): number {
    return address === undefined
      ? this.sent.length
      : this.sent.filter((sent) => sent.address === address).length;
  }

  /** What was sent, as `address name type`. */
  get log(): string[] {
    return this.sent.map(({ address, name, message, tcp }) =>
      `${address} ${name} ${
        Object.entries(Qtype).find(([, n]) => n === message.questions[0].type)![0]
      }${tcp ? " TCP" : ""}`
    );
  }

  /** Asks a question, which may be answered when this returns, and at the end of `run` is. */
  ask(
    name: string,
    type: number = Qtype.A,
    { from, trace = null, ...options }: AskOptions = {},
  ): Client {
    const client = new Client(this, name);
    const address = new ClientAddress();
    const ip = from === undefined ? null : parseIp(from);
    if (ip !== null) address.aim(ip, 0, ip.length);
    const packet = encodeQuery(name, type, { id: 0xbeef, ...options });
    const { reply } = this.front;
    this.#setTime();
    const verdict = this.resolver.decide(
      Transport.Tcp,
      address,
      packet,
      0,
      packet.length,
      reply,
    );
    const waiter = verdict === Verdict.Resolve ? this.resolver.wait(client, reply) : null;
    if (waiter === null) {
      client.take(reply.bytes.slice(reply.offset, reply.offset + reply.length));
    } else {
      waiter.trace = trace;
      this.resolver.resolve(waiter);
    }
    return client;
  }

  /** Takes a packet of any kind; nobody wants to know what comes of it. */
  takeRaw(packet: Uint8Array): void {
    const { reply } = this.front;
    this.#setTime();
    const to = new ClientAddress();
    const verdict = this.resolver.decide(Transport.Tcp, to, packet, 0, packet.length, reply);
    if (verdict !== Verdict.Resolve) return;
    const waiter = this.resolver.wait(new Client(this, "raw"), reply);
    if (waiter !== null) this.resolver.resolve(waiter);
  }

  /** Asks a question and lets time pass until it is answered. */
  resolve(name: string, type: number = Qtype.A, options: QueryOptions = {}): Client {
    const client = this.ask(name, type, options);
    this.run(() => client.answers.length > 0);
    return client;
  }

  /** As `resolve`, with what was done. */
  trace(name: string, type: number = Qtype.A): Trace {
    const packet = encodeQuery(name, type);
    const trace = new Trace(() => this.nowMs);
    const { reply } = this.front;
    const client = new Client(this, name);
    assert.equal(this.resolver.decideOwn(packet, reply), Verdict.Resolve);
    const waiter = this.resolver.wait(client, reply)!;
    waiter.trace = trace;
    this.resolver.resolve(waiter);
    this.run(() => client.answers.length > 0);
    return trace;
  }

  /** Lets time pass until nothing is on its way, or `isDone`; at most so long. */
  run(isDone: () => boolean = () => false, msMax = 10_000): void {
    const endMs = this.nowMs + msMax;
    this.#deliver();
    while (!isDone() && (this.ticking || this.#pending.length > 0) && this.nowMs < endMs) {
      const nextTick = (Math.floor(this.nowMs / TICK_MS) + 1) * TICK_MS;
      const next = Math.min(nextTick, ...this.#pending.map(({ atMs }) => atMs));
      this.nowMs = Math.max(this.nowMs, next);
      this.#setTime();
      this.#deliver();
      if (this.nowMs === nextTick && this.ticking) this.flights.tick();
    }
  }

  /** Lets so much time pass. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms;
    this.run(() => this.nowMs >= endMs, ms);
    this.nowMs = endMs;
    this.#setTime();
  }

  /** Nothing is on its way, and nobody waits. */
  checkIdle(): void {
    const { inFlight, waiting } = this.flights;
    const { inUse } = this.asker;
    assert.deepEqual({ inFlight, waiting, inUse }, { inFlight: 0, waiting: 0, inUse: 0 });
  }

  #setTime(): void {
    this.front.pipeline.nowSeconds = this.startSeconds + Math.floor(this.nowMs / 1_000);
    this.#clock.begin();
  }

  #deliver(): void {
    for (;;) {
      const due = this.#pending.findIndex(({ atMs }) => atMs <= this.nowMs);
      if (due < 0) return;
      const [{ token, packet }] = this.#pending.splice(due, 1);
      if (this.#open.has(token)) this.asker.onPacket(token, packet, packet.length);
    }
  }
}

/** An Internet: the root, `com` and `net` on a server each, and zones that are added. */
export function internet(
  zones: Readonly<Record<string, readonly string[]>>,
  more: Readonly<Record<string, FakeServer>> = {},
): Record<string, FakeServer> {
  const byAddress: Record<string, FakeServer> = {};
  for (const [place, lines] of Object.entries(zones)) {
    const [name, ...addresses] = place.split(" ");
    for (const address of addresses) byAddress[address] = serverOf(new FakeZone(name, lines));
  }
  return { ...byAddress, ...more };
}

/** Where the root and `com` are asked in `benchOf()`. */
export const [ROOT, COM] = ["198.41.0.4", "192.0.2.1"] as const;

/** A bench with `example.com` below `com`, delegated to servers at addresses: all of them, or some. */
export function benchOf(
  servers: Readonly<Record<string, FakeServer>>,
  addresses: readonly string[] = Object.keys(servers),
  options: BenchOptions = {},
): RecursorBench {
  const zones = {
    [`. ${ROOT}`]: [
      ". NS a.root-servers.net",
      `a.root-servers.net A ${ROOT}`,
      "com NS ns.com",
      `ns.com A ${COM}`,
    ],
    [`com ${COM}`]: addresses.flatMap((ip, i) => [
      `example.com NS ns${i}.example.com`,
      `ns${i}.example.com ${ip.includes(":") ? "AAAA" : "A"} ${ip}`,
    ]),
  };
  return new RecursorBench({ servers: internet(zones, servers), ...options });
}
