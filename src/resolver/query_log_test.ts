import assert from "node:assert/strict";
import { decodeMessage } from "../dns/mod.ts";
import {
  NO_RECORD,
  queueFigures,
  queueMemory,
  QueueReader,
  RecordAt,
  RecordFlag,
} from "../logqueue/mod.ts";
import { ForwarderBench, quietly } from "./forward/fakes.ts";
import { a, snapshotOf, START_SECONDS } from "./fakes.ts";
import { Outcome } from "./outcome.ts";
import { QueryLog } from "./query_log.ts";

const none = { permissions: "none" } as const;

/** What a record says, short enough for a table. */
function readRecords(memory: SharedArrayBuffer): string[] {
  const reader = new QueueReader(memory);
  const words = new Uint32Array(1_024);
  const bytes = new Uint8Array(words.buffer);
  const found: string[] = [];
  reader.mark();
  while (reader.next(words) !== NO_RECORD) {
    const what = words[RecordAt.What];
    const lengths = [
      words[RecordAt.Lengths] & 0xffff,
      words[RecordAt.Lengths] >>> 16,
      words[RecordAt.MoreLengths] & 0xffff,
      words[RecordAt.MoreLengths] >>> 16,
    ];
    let at = RecordAt.End * 4;
    const [message, ...texts] = lengths.map((length) => {
      const part = bytes.slice(at, at + length);
      at += (length + 3) & ~3;
      return part;
    });
    const decoded = decodeMessage(message);
    const outcome = Object.keys(Outcome)[what & 0xff];
    const address = bytes.subarray(RecordAt.Address * 4, RecordAt.Address * 4 + (what >>> 24));
    const atMs = words[RecordAt.TimeHigh] * 2 ** 32 + words[RecordAt.TimeLow] -
      START_SECONDS * 1_000;
    found.push([
      `${atMs} ms, ${words[RecordAt.Duration]} us`,
      `${decoded?.questions[0].name} ${outcome} ${decoded?.rcode} [${address.join(".")}]`,
      ((what >>> 16) & RecordFlag.Cached) !== 0 ? "cached" : `upstream ${words[RecordAt.Upstream]}`,
      texts.map((text) => new TextDecoder().decode(text).replace("\t", "|")).join(", "),
    ].join(", "));
  }
  reader.release();
  return found;
}

const DEFAULT = "gr_0000000000000000";
const LISTS = { ads: "||ads.example^\n@@||fine.example^\n" };
const GROUPS = { default: { lists: ["ads"] }, kids: { lists: ["ads"] } };
const CLIENTS = { tablet: { addresses: ["192.0.2.7"], group: "kids" } };

function bench(queueBytes?: number) {
  const memory = queueMemory(queueBytes);
  const snapshot = snapshotOf(LISTS, {}, { groups: GROUPS, clients: CLIENTS });
  const bench = new ForwarderBench({ log: new QueryLog(memory), snapshot });
  bench.clock.begin();
  return { memory, bench };
}

/** Lets time pass, as a new turn of the event loop finds it. */
function pass(b: ForwarderBench, ms: number): void {
  b.advance(ms);
  b.clock.begin();
}

Deno.test("Resolver notes every answered query once, with what decided", none, () => {
  const { memory, bench: b } = bench();
  b.ask("ADS.example", { from: "192.0.2.7", clientId: "phone" });
  b.ask("fine.example", { from: "2001:db8::1" });
  b.ask("Www.Example");
  assert.equal(b.open.length, 2);
  assert.deepEqual(readRecords(memory), [
    "0 ms, 0 us, ADS.example Blocked 0 [192.0.2.7], upstream 0, gr_kids|tablet, li_ads|||ads.example^, phone",
  ]);
  pass(b, 12.5);
  for (const sent of b.open) {
    b.answer(sent, { records: [a(sent.message.questions[0].name.toLowerCase(), 60)] });
  }
  pass(b, 10);
  b.ask("www.example");
  const address6 = "32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.1";
  assert.deepEqual(readRecords(memory), [
    `12 ms, 12500 us, fine.example Forwarded 0 [${address6}], upstream 1, ${DEFAULT}|, ` +
    "li_ads|@@||fine.example^, ",
    `12 ms, 12500 us, Www.Example Forwarded 0 [], upstream 1, ${DEFAULT}|, , `,
    `22 ms, 0 us, www.example Cached 0 [], cached, ${DEFAULT}|, , `,
  ]);
  const failed = b.ask("silent.example");
  quietly(() => b.advance(6_000));
  assert.notEqual(failed.answer, "");
  assert.match(readRecords(memory).join("\n"), /^\d+ ms, 4\d+ us, silent.example Failed 2 \[\], /);
});

Deno.test("Resolver leaves out health checks, and what is no query", none, () => {
  const { memory, bench: b } = bench();
  for (const type of [1, 28, 16]) b.ask("HEALTH.svc.test", { type });
  b.ask("other.svc.test");
  assert.deepEqual(readRecords(memory), [
    `0 ms, 0 us, other.svc.test Local 3 [], upstream 0, ${DEFAULT}|, , `,
  ]);
});

Deno.test("QueryLog counts what a full queue can't take, by outcome", none, () => {
  const { memory, bench: b } = bench(4_096);
  for (let i = 0; i < 100; i++) b.ask("ads.example");
  const { waiting, dropped } = queueFigures(memory);
  assert.equal(waiting + dropped[Outcome.Blocked], 100);
  assert.ok(waiting > 10 && dropped[Outcome.Blocked] > 10);
});
