/** Upstreams over zones that tests sign, and threads that check when they are told to. */
import assert from "node:assert/strict";
import { formatName, Qtype, qtypeName, Rcode } from "../../dns/mod.ts";
import {
  type RrSet,
  type SignatureCheck,
  TrustAnchors,
  verifySignature,
} from "../../dnssec/mod.ts";
import { FakeKey, rrsetsOf, type SignOptions } from "../../dnssec/fakes.ts";
import { type FakeRecord, SEED, START_SECONDS, wire } from "../fakes.ts";
import { type BenchOptions, type Client, ForwarderBench, type Sent } from "../forward/fakes.ts";
import type { RecursorBench } from "../recursive/fakes.ts";
import { CheckQueue, type CheckThreads } from "./check_queue.ts";
import { Validation } from "./validation.ts";

/** Signatures of these tests hold when they start. */
export const TIMES: SignOptions = {
  inception: START_SECONDS - 3_600,
  expiration: START_SECONDS + 864_000,
};

/** Threads that hold what they are sent until they are told to go on. */
export class FakeThreads implements CheckThreads {
  readonly sent: { readonly id: number; readonly check: SignatureCheck }[] = [];
  checked = 0;
  /** Nothing is checked. */
  isHeld = false;

  constructor(readonly max = 2) {}

  get hasRoom(): boolean {
    return this.sent.length < this.max;
  }

  send(id: number, check: SignatureCheck): void {
    assert.ok(this.hasRoom, "no more than there is room for");
    this.sent.push({ id, check });
  }

  /** Checks the oldest. */
  step(queue: CheckQueue): void {
    const { id, check } = this.sent.shift()!;
    this.checked++;
    queue.onResult(id, verifySignature(check));
  }
}

/** A validation whose signatures are checked at once. */
export function checkingAtOnce(bench: RecursorBench, anchors: TrustAnchors): Validation {
  const { counters, cache, pipeline } = bench.front;
  const checks: CheckQueue = new CheckQueue({
    threads: {
      hasRoom: true,
      send: (id, check) => queueMicrotask(() => checks.onResult(id, verifySignature(check))),
    },
    counters,
    nowMs: () => bench.nowMs,
  });
  return new Validation({
    seed: SEED,
    anchors,
    checks,
    cache,
    counters,
    nowMs: () => bench.nowMs,
    nowSeconds: () => pipeline.nowSeconds,
    inTurn: (work) => work(),
  });
}

/** What an upstream says. */
export interface Said {
  readonly rcode?: number;
  readonly answer?: readonly RrSet[];
  readonly authority?: readonly RrSet[];
}

export class ValidationBench {
  readonly bench: ForwarderBench;
  readonly threads: FakeThreads = new FakeThreads();
  readonly key: FakeKey = new FakeKey("test");
  /** By `name TYPE`, of all upstreams, and of one by `a name TYPE`. */
  readonly said: Map<string, Said> = new Map();
  checks!: CheckQueue;
  validation!: Validation;
  /** Questions as they went out: upstream, name, type, and `cd`. */
  readonly asked: string[] = [];
  #seen = 0;

  constructor(options: BenchOptions = {}) {
    this.bench = new ForwarderBench({
      upstreams: { a: [], b: [] },
      ...options,
      judge: (bench) => this.#judge(bench),
    });
    this.said.set("test DNSKEY", { answer: [this.key.dnskeys([], TIMES)] });
    this.said.set("test DS", {});
  }

  #judge(bench: ForwarderBench): Validation {
    const { front: { cache, counters } } = bench;
    const nowMs = () => this.bench.nowMs;
    this.checks = new CheckQueue({ threads: this.threads, counters, nowMs });
    return this.validation = new Validation({
      seed: SEED,
      anchors: new TrustAnchors([this.key.anchor()], [wire("off.test")]),
      checks: this.checks,
      cache,
      counters,
      nowMs,
      nowSeconds: () => bench.front.pipeline.nowSeconds,
      inTurn: (work) => work(),
    });
  }

  /** An RRset of one zone, signed by it. */
  signed(...lines: string[]): RrSet {
    return this.key.rrset(lines, TIMES);
  }

  /** The same without a signature, or spoilt behind it. */
  static plain(...lines: string[]): RrSet {
    return rrsetsOf(lines)[0];
  }

  /** Has upstreams and threads do what there is to do until nothing is left. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < 3;) {
      let isBusy = this.#answerAll();
      while (this.threads.sent.length > 0 && !this.threads.isHeld) {
        this.threads.step(this.checks);
        isBusy = true;
      }
      for (let i = 0; i < 50; i++) await Promise.resolve(); // Whoever waits for it goes on.
      idle = isBusy ? 0 : idle + 1;
    }
  }

  /** Has one check made, and upstreams answer what follows from it. */
  async step(): Promise<void> {
    if (this.threads.sent.length > 0) this.threads.step(this.checks);
    await this.settle();
  }

  async ask(name: string, options: Parameters<ForwarderBench["ask"]>[1] = {}): Promise<Client> {
    const client = this.bench.ask(name, options);
    await this.settle();
    return client;
  }

  /** The questions that went out since the last look. */
  news(): string[] {
    return this.asked.splice(0);
  }

  #answerAll(): boolean {
    const news = this.bench.sent.slice(this.#seen);
    this.#seen = this.bench.sent.length;
    for (const sent of news) this.#answer(sent);
    return news.length > 0;
  }

  #answer(sent: Sent): void {
    const { message, upstream } = sent;
    const [{ name, type }] = message.questions;
    if (name === ".") return; // Of those who look whether it is there again.
    const question = `${name.toLowerCase()} ${qtypeName(type)}`;
    const letter = "abcdefgh"[upstream];
    this.asked.push(`${letter} ${question}${message.cd ? " cd" : ""}`);
    if (!message.cd) assert.ok(message.opt?.dnssecOk, "what is to be proven is asked for with DO");
    const said = this.said.get(`${letter} ${question}`) ?? this.said.get(question);
    if (said === undefined) return; // Silent.
    const { rcode = Rcode.NoError, answer = [], authority = [] } = said;
    const records = [
      ...answer.flatMap((rrset) => recordsOf(rrset, 0)),
      ...authority.flatMap((rrset) => recordsOf(rrset, 1)),
    ];
    this.bench.answer(sent, { flags: 0x8180 | rcode, records });
  }
}

function recordsOf({ owner, type, ttl, rdatas, signatures }: RrSet, section: 0 | 1): FakeRecord[] {
  const name = formatName(owner);
  const record = (type: number) => (rdata: Uint8Array) => ({ section, name, type, ttl, rdata });
  return [...rdatas.map(record(type)), ...signatures.map(record(Qtype.RRSIG))];
}
