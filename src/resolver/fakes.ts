/** What the resolver's tests stand on: a filter, a cache, a clock and responses to read. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import * as oracle from "dns-packet";
import { parseIp } from "../addr/mod.ts";
import { Cache } from "../cache/mod.ts";
import {
  decodeMessage,
  edePurpose,
  type Message,
  MessageWriter,
  parseName,
  parseQtype,
  parseSvcb,
  QR_BIT,
  Qtype,
  qtypeName,
  RA_BIT,
  rcodeName,
  RD_BIT,
  type Section,
} from "../dns/mod.ts";
import type { Settings } from "../model/mod.ts";
import { Snapshot } from "../snapshot/mod.ts";
import { type FakePolicy, policyData } from "../snapshot/fakes.ts";
import type { Outcome } from "./outcome.ts";
import { CounterBlock, COUNTERS_BYTES, sumOutcome } from "../telemetry/mod.ts";
import { Pipeline, type PipelineOptions } from "./pipeline.ts";
import { Verdict } from "./verdict.ts";
import { Query, Read, readQuery, Transport } from "./query.ts";
import { Reply } from "./reply.ts";

export const SEED = 4711;
export const COOKIE_SECRET: Uint8Array = new Uint8Array(16).fill(7);
/** Seconds at which a test starts. */
export const START_SECONDS = 1_800_000_000;
const MIB = 1024 * 1024;
/** Behind a response: where copying may write, and a test sees whether more was written. */
const MARGIN_BYTES = 64;
const REPLY_OFFSET = 128;
/** A client of whom nobody knows where it is. */
const NO_ADDRESS = new Uint8Array(0);

export function wire(name: string): Uint8Array<ArrayBuffer> {
  const bytes = parseName(name);
  assert.ok(bytes !== null, name);
  return bytes;
}

/** A snapshot of lists by name, as text, that the default group has, and of more. */
export function snapshotOf(
  lists: Readonly<Record<string, string>>,
  settings: Partial<Settings> = {},
  more: FakePolicy = {},
): Snapshot {
  const data = policyData({ ...more, lists, settings: { ...more.settings, ...settings } }, SEED);
  return new Snapshot(data, START_SECONDS * 1_000);
}

export interface FakeRecord {
  readonly section?: Section;
  readonly name: string;
  readonly type: number;
  readonly ttl: number;
  readonly rdata: ArrayLike<number>;
}

export interface FakeResponse {
  readonly id?: number;
  readonly name: string;
  readonly type: number;
  readonly flags?: number;
  readonly records?: readonly FakeRecord[];
  /** An OPT record with these options. */
  readonly opt?: readonly { readonly code: number; readonly data: ArrayLike<number> }[];
  readonly extendedRcode?: number;
}

/** The bytes of a response, as an upstream would send it. */
export function response(fake: FakeResponse): Uint8Array<ArrayBuffer> {
  const target = new Uint8Array(70_000);
  const writer = new MessageWriter();
  const flags = fake.flags ?? QR_BIT | RD_BIT | RA_BIT;
  assert.ok(writer.start(target, 0, target.length, fake.id ?? 0, flags));
  assert.ok(writer.question(wire(fake.name), fake.type));
  for (const { section = 0, name, type, ttl, rdata } of fake.records ?? []) {
    assert.ok(writer.record(section, wire(name), type, 1, ttl, Uint8Array.from(rdata)));
  }
  if (fake.opt !== undefined || fake.extendedRcode !== undefined) {
    const { extendedRcode = 0 } = fake;
    assert.ok(writer.opt({ payload: 1232, extendedRcode, version: 0, dnssecOk: false }));
    for (const { code, data } of fake.opt ?? []) {
      assert.ok(writer.option(code, Uint8Array.from(data)));
    }
  }
  return target.slice(0, writer.lengthBytes);
}

export function a(name: string, ttl: number, last = 1): FakeRecord {
  return { name, type: 1, ttl, rdata: [192, 0, 2, last] };
}

/** A record from `name ttl TYPE data`: addresses, CNAME and the forms of SVCB. */
export function record(line: string): FakeRecord {
  const [name, ttl, typeName, ...rest] = line.split(" ");
  const type = parseQtype(typeName);
  assert.ok(type !== null, line);
  const data = rest.join(" ");
  const rdata = type === Qtype.A || type === Qtype.AAAA
    ? parseIp(data)
    : type === Qtype.CNAME
    ? parseName(data)
    : parseSvcb(data);
  assert.ok(rdata !== null, line);
  return { name, type, ttl: Number(ttl), rdata };
}

/** RDATA of an SOA of `example` with this MINIMUM. */
export function soaRdata(minimum: number): number[] {
  const timers = [1, 2, 3, 4, minimum].flatMap((n) => [n >>> 24, n >>> 16, n >>> 8, n]);
  return [...wire("ns.example"), ...wire("hostmaster.example"), ...timers.map((n) => n & 255)];
}

/** RDATA of an extended error. */
export function edeData(code: number, text = ""): number[] {
  return [code >> 8, code & 255, ...new TextEncoder().encode(text)];
}

/** Decodes a response by our own decoder and by another's, which have to agree. */
export function decodeBoth(bytes: Uint8Array): Message {
  const own = decodeMessage(bytes);
  assert.ok(own !== null, "our decoder reads it");
  assert.equal(own.trailingBytes, 0);
  const other = oracle.decode(Buffer.from(bytes));
  assert.equal(other.id, own.id);
  assert.equal(other.questions?.length, own.questions.length);
  assert.equal(other.answers?.length, own.answers.length);
  assert.equal(other.authorities?.length, own.authorities.length);
  assert.equal(other.additionals?.length, own.additionals.length + (own.opt === null ? 0 : 1));
  assert.equal(other.flag_tc, own.tc);
  assert.equal(other.flag_ra, own.ra);
  assert.equal(other.flag_ad, own.ad);
  for (const [i, record] of (other.answers ?? []).entries()) {
    if (record.type !== "A" && record.type !== "AAAA") continue;
    assert.equal(record.data, own.answers[i].data);
    assert.equal(record.ttl, own.answers[i].ttl);
  }
  return own;
}

/** A response in one line, as the tables of the tests have it. */
export function describe(bytes: Uint8Array): string {
  const m = decodeBoth(bytes);
  assert.ok(m.response);
  const flags = (["aa", "tc", "rd", "ra", "ad", "cd"] as const).filter((flag) => m[flag]);
  const parts = [`${rcodeName(m.rcode)} ${flags.join(" ")}`];
  for (const records of [m.answers, m.authorities, m.additionals]) {
    for (const { name, ttl, type, data } of records) {
      // Serial and the like of our SOA are constants; the last field is what counts.
      const shown = type === 6 ? `minimum ${data.split(" ").at(-1)}` : data;
      parts.push(`${name} ${ttl} ${qtypeName(type)} ${shown}`);
    }
  }
  if (m.opt !== null) {
    assert.deepEqual([m.opt.payload, m.opt.version], [1232, 0]);
    const errors = m.opt.errors.map(({ code, text }) => ` ${edePurpose(code)}: ${text}`);
    parts.push(`OPT${m.opt.dnssecOk ? " do" : ""}${errors.join()}`);
  }
  return parts.join("; ");
}

/** A pipeline with its surroundings. */
export class PipelineBench {
  readonly cache: Cache;
  readonly counters: CounterBlock = new CounterBlock(new ArrayBuffer(COUNTERS_BYTES));
  readonly pipeline: Pipeline;
  readonly query: Query = new Query();
  readonly reply: Reply = new Reply();
  /** Hashes of the entries that were to be fetched again. */
  readonly refreshed: number[] = [];
  /** The client ID that queries carry. */
  clientId: Uint8Array | null = null;

  constructor(
    snapshot: Snapshot = snapshotOf({}),
    serveStale = 0,
    failClosed = false,
    more: Partial<PipelineOptions> = {},
  ) {
    this.cache = new Cache({ sizeBytes: MIB, serveStale });
    this.pipeline = new Pipeline({
      seed: SEED,
      cache: this.cache,
      snapshot,
      counters: this.counters,
      prefetch: true,
      failClosed,
      limits: null,
      requireClientId: false,
      onLeakLookup: () => {},
      refresh: ({ keyHash }) => void this.refreshed.push(keyHash),
      ...more,
    });
    this.pipeline.nowSeconds = START_SECONDS;
    const memory = new ArrayBuffer(70_000);
    this.reply.bytes = new Uint8Array(memory);
    this.reply.words = new Uint32Array(memory);
    this.reply.offset = REPLY_OFFSET;
  }

  /** Queries of an outcome. */
  outcomes(outcome: Outcome): number {
    return sumOutcome([this.counters], outcome);
  }

  /** What the pipeline makes of a packet; nothing is looked at afterwards. */
  decide(
    packet: Uint8Array,
    transport: Transport = Transport.Udp,
    client: Uint8Array = NO_ADDRESS,
  ): Verdict {
    const { query, pipeline, reply } = this;
    query.transport = transport;
    query.address.aim(client, 0, client.length);
    query.address.id = this.clientId;
    const read = readQuery(packet, 0, packet.length, SEED, query, pipeline.name);
    return read === Read.Ok
      ? pipeline.answerNow(query, reply)
      : pipeline.answerUnread(read, query, reply);
  }

  /** The response to a packet, which must come at once. */
  ask(
    packet: Uint8Array,
    transport: Transport = Transport.Udp,
    client: Uint8Array = NO_ADDRESS,
  ): Uint8Array {
    this.reply.bytes.fill(0xee);
    assert.equal(this.decide(packet, transport, client), Verdict.Send);
    return this.taken();
  }

  /** The response that was written last. */
  taken(): Uint8Array {
    const { bytes, offset, length } = this.reply;
    assert.ok(bytes.subarray(0, offset).every((byte) => byte === 0xee), "nothing before it");
    const behind = bytes.subarray(offset + length + 4, offset + length + MARGIN_BYTES);
    // Cut responses may have left what did not fit; others leave the bytes behind them alone.
    if (!this.reply.truncated) assert.ok(behind.every((byte) => byte === 0xee), "nothing behind");
    assert.ok(length <= this.query.limitBytes, `${length} of ${this.query.limitBytes} bytes`);
    return bytes.slice(offset, offset + length);
  }

  /** Keeps a response in the cache for the question of `packet`; returns the entry. */
  keep(
    packet: Uint8Array,
    message: Uint8Array,
    options: { ttl: number; errors?: Uint8Array; ttlOffsets?: readonly number[] },
  ): number {
    assert.equal(this.decide(packet), Verdict.Resolve);
    const { qtype, keyBits, keyHash: hash, qnameLength } = this.query;
    const { ttl, errors = new Uint8Array(0), ttlOffsets = [] } = options;
    const { nowSeconds } = this.pipeline;
    return this.cache.store(
      { hash, qtype, keyBits, qnameLength, ttl, errors, nowSeconds },
      message,
      0,
      message.length,
      Uint16Array.from(ttlOffsets),
      ttlOffsets.length,
    );
  }
}

/** Where the TTLs of a message stand, its records read by the decoder's rules. */
export function ttlOffsetsOf(message: Uint8Array): number[] {
  const decoded = decodeMessage(message);
  assert.ok(decoded !== null);
  const offsets: number[] = [];
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const skip = (at: number): number => {
    while (message[at] !== 0 && message[at] < 0xc0) at += 1 + message[at];
    return at + (message[at] === 0 ? 1 : 2);
  };
  let at = 12;
  for (let i = view.getUint16(4); i > 0; i--) at = skip(at) + 4;
  for (let i = view.getUint16(6) + view.getUint16(8); i > 0; i--) {
    at = skip(at);
    offsets.push(at + 4);
    at += 10 + view.getUint16(at + 8);
  }
  return offsets;
}
