/** What the tests of the query log stand on: queries to log, and a naive log to hold it against. */
import assert from "node:assert/strict";
import type { DatabaseSync } from "node:sqlite";
import { parseIp } from "../addr/mod.ts";
import { MessageWriter, parseName, parseQtype, QR_BIT } from "../dns/mod.ts";
import {
  figuresMemory,
  LogFigure,
  NO_ROOM,
  OUTCOME_NAMES,
  PROTOCOL_NAMES,
  queueFigures,
  queueMemory,
  QueueWriter,
  RecordAt,
  RecordFlag,
} from "../logqueue/mod.ts";
import type { Prng } from "../../tests/prng.ts";
import {
  clientText,
  kindText,
  type LogFilter,
  type OutcomeName,
  type ProtocolName,
  showEntry,
  type ShownEntry,
  type StoredEntry,
} from "./entry.ts";
import { openDatabase } from "./database.ts";
import type { LiveBatch } from "./live_feed.ts";
import type { QueryLogOptions } from "./options.ts";
import { QueryLogStore } from "./query_log.ts";
import type { LogPage } from "./search.ts";

/** 2026-01-02T03:04:05.678Z */
export const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export interface FakeQuery {
  readonly name?: string;
  readonly type?: string;
  readonly outcome?: OutcomeName;
  readonly protocol?: ProtocolName;
  readonly timeMs?: number;
  readonly durationUs?: number;
  readonly address?: string;
  readonly clientId?: string;
  readonly group?: string;
  readonly clientName?: string;
  /** `list TAB rule`. */
  readonly rule?: string;
  /** IPv4 addresses of the answer. */
  readonly answers?: readonly string[];
  readonly rcode?: number;
  readonly upstream?: number;
  readonly cached?: boolean;
  readonly dnssec?: number;
  readonly dnssecReason?: string;
}

/** A response with A records for its own name. */
export function responseTo(
  { name = "www.example", type = "A", rcode = 0, answers = [] }: FakeQuery,
) {
  const qtype = parseQtype(type);
  const wire = parseName(name);
  assert.ok(qtype !== null && wire !== null);
  const target = new Uint8Array(65_535);
  const writer = new MessageWriter();
  assert.ok(writer.start(target, 0, target.length, 0xbeef, QR_BIT | rcode));
  assert.ok(writer.question(wire, qtype));
  for (const answer of answers) {
    const ip = parseIp(answer);
    assert.ok(ip !== null && writer.record(0, wire, ip.length === 4 ? 1 : 28, 1, 60, ip));
  }
  return target.slice(0, writer.lengthBytes);
}

/** Puts the record of a query into a queue; `false` where there is no room. */
export function note(queue: QueueWriter, query: FakeQuery): boolean {
  const { outcome = "forwarded", protocol = "udp", timeMs = NOW_MS, durationUs = 7 } = query;
  const encoder = new TextEncoder();
  const parts = [
    responseTo(query).slice(0, 512),
    encoder.encode(`${query.group ?? "gr_0000000000000000"}\t${query.clientName ?? ""}`),
    encoder.encode(query.rule ?? ""),
    encoder.encode(query.clientId ?? ""),
    encoder.encode(query.dnssecReason ?? ""),
  ];
  const words = parts.map(({ length }) => (length + 3) >> 2);
  const total = (RecordAt.End + words.reduce((sum, n) => sum + n, 0)) * 4;
  const at = queue.admits() ? queue.begin(total) : NO_ROOM;
  const number = OUTCOME_NAMES.indexOf(outcome);
  if (at === NO_ROOM) {
    queue.drop(number);
    return false;
  }
  const address = query.address === "" ? new Uint8Array(0) : parseIp(query.address ?? "192.0.2.7");
  assert.ok(address !== null);
  const record = new Uint8Array(total);
  const head = new Uint32Array(record.buffer, 0, RecordAt.End);
  head[RecordAt.TimeLow] = timeMs % 2 ** 32;
  head[RecordAt.TimeHigh] = timeMs / 2 ** 32;
  head[RecordAt.Duration] = durationUs;
  const flags = (query.cached === true ? RecordFlag.Cached : 0) |
    ((query.dnssec ?? 0) << RecordFlag.DnssecShift);
  head[RecordAt.What] = number | (PROTOCOL_NAMES.indexOf(protocol) << 8) | (flags << 16) |
    (address.length << 24);
  head[RecordAt.Upstream] = (query.upstream ?? -1) + 1;
  head[RecordAt.Lengths] = parts[0].length | (parts[1].length << 16);
  head[RecordAt.MoreLengths] = parts[2].length | (parts[3].length << 16);
  head[RecordAt.Reason] = parts[4].length;
  record.set(address, RecordAt.Address * 4);
  let to = RecordAt.End * 4;
  for (const [i, part] of parts.entries()) {
    record.set(part, to);
    to += words[i] * 4;
  }
  queue.words.set(new Uint32Array(record.buffer), at);
  queue.commit(total);
  return true;
}

/** Entries of a small network, the same for the same seed, 1 to 40,000 milliseconds apart. */
export function fakeEntries(prng: Prng, count: number, fromMs: number): StoredEntry[] {
  let timeMs = fromMs;
  const names = Array.from(
    { length: 60 },
    (_, i) =>
      `${prng.pick(["www", "api", "cdn", "x"])}${i}.${prng.pick(["ads", "a-b", "web"])}.example`,
  );
  return Array.from({ length: count }, () => {
    timeMs += prng.chance(0.3) ? 0 : 1 + prng.int(40_000);
    const outcome = prng.int(OUTCOME_NAMES.length);
    return {
      timeMs,
      durationUs: prng.int(5_000_000),
      outcome,
      name: prng.pick(names),
      client: clientText(
        prng.pick(["192.0.2.1", "192.0.2.10", "192.0.2.100", "2001:db8::1", ""]),
        prng.pick(["", "phone", "tablet"]),
        prng.pick(["gr_1", "gr_2"]),
        prng.pick(["", "Kitchen", "phone"]),
      ),
      kind: kindText(
        prng.pick(["A", "AAAA", "HTTPS"]),
        "NOERROR",
        prng.pick([0, 3]),
        prng.chance(0.5),
        0,
        prng.pick(["", "[2001:db8::5]:53", "tls://dns.example"]),
        "",
      ),
      rule: prng.pick(["", "rules\t||ads.example^", "li_1\t||web.example^"]),
      answers: prng.pick(["", "192.0.2.5", "cdn.example\n192.0.2.6"]),
    };
  });
}

/** What a log that looks at every entry would find, newest first. */
export function naiveSearch(entries: readonly StoredEntry[], filter: LogFilter): ShownEntry[] {
  return entries.toReversed().map(showEntry).filter((entry) => {
    const timeMs = Date.parse(entry.time);
    const client = filter.client?.toLowerCase();
    const isClient = client === undefined || entry.client === client ||
      entry.client_id === client ||
      (entry.client_name ?? entry.client ?? "").toLowerCase() === client;
    const isSame = (["type", "protocol", "group", "list", "upstream"] as const).every((field) =>
      filter[field] === undefined || entry[field] === filter[field]
    );
    return (filter.outcomes ?? OUTCOME_NAMES).includes(entry.outcome) && isClient && isSame &&
      entry.name.includes((filter.name ?? "").toLowerCase().replace(/(.)\.$/, "$1")) &&
      timeMs > (filter.sinceMs ?? -1) && timeMs < (filter.untilMs ?? Infinity);
  });
}

/** The answer of work that is done in pieces. */
export function whole<T>(pieces: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
  }
}

/** A log, its queues, and a clock that goes as the test says. */
export class FakeLog {
  readonly directory = Deno.makeTempDirSync();
  readonly queues: SharedArrayBuffer[];
  readonly writers: QueueWriter[];
  readonly figures = figuresMemory();
  readonly problems: (string | null)[] = [];
  readonly live: LiveBatch[] = [];
  asked = 0;
  nowMs = NOW_MS;
  /** How far the system's clock is from the right one. */
  setMs = 0;
  db: DatabaseSync | null = null;
  store: QueryLogStore;

  constructor(readonly options: Partial<QueryLogOptions> = {}, queues = 1, queueBytes?: number) {
    this.queues = Array.from({ length: queues }, () => queueMemory(queueBytes));
    this.writers = this.queues.map((memory) => new QueueWriter(memory));
    this.store = this.open();
  }

  open(): QueryLogStore {
    const options = {
      directory: `${this.directory}/querylog`,
      maxEntries: 100_000,
      retentionMs: 86_400_000,
      anonymize: false,
      releasedMs: 0,
      upstreams: ["192.0.2.53:53"],
      exports: [],
      timeZone: "UTC",
      ...this.options,
      queues: this.queues,
      figures: this.figures,
    };
    return new QueryLogStore(options, {
      wallMs: () => this.nowMs + this.setMs,
      monotonicMs: () => this.nowMs,
      onProblem: (problem) => this.problems.push(problem),
      onLive: (batch) => this.live.push(batch),
      open: (directory, nowMs) => this.db = openDatabase(directory, nowMs),
    });
  }

  ask(query: FakeQuery = {}, queue = 0): void {
    this.asked++;
    note(this.writers[queue], { timeMs: this.nowMs + this.setMs, ...query });
  }

  /** Lets time pass, with the turns asked for. */
  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    while (this.nowMs < endMs) this.nowMs += Math.min(this.store.turn().ms, endMs - this.nowMs);
  }

  search(filter: LogFilter, limit: number, before: number | null = null): LogPage {
    return whole(this.store.search(filter, limit, before));
  }

  names(limit = 1_000): string {
    return this.search({}, limit).entries.map(({ name }) => name.split(".")[0]).join(
      " ",
    );
  }

  get dropped(): number {
    const unreadable = new Float64Array(this.figures)[LogFigure.Unreadable];
    return this.queues.map((queue) => queueFigures(queue).dropped.reduce((a, b) => a + b))
      .reduce((a, b) => a + b, unreadable);
  }

  get entries(): number {
    return new Float64Array(this.figures)[LogFigure.Entries];
  }

  files(): string[] {
    return [...Deno.readDirSync(`${this.directory}/querylog`)].map(({ name }) => name).sort();
  }

  [Symbol.dispose](): void {
    this.store.close();
    Deno.removeSync(this.directory, { recursive: true });
  }
}

/** Keeps the log's lines of a test to itself. */
export function quietly<T>(work: () => T): { result: T; lines: string } {
  const write = Deno.stderr.writeSync;
  let lines = "";
  Deno.stderr.writeSync = (bytes) => {
    lines += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  try {
    return { result: work(), lines };
  } finally {
    Deno.stderr.writeSync = write;
  }
}
