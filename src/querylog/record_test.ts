import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { queueMemory, QueueReader, QueueWriter, RecordAt } from "../logqueue/mod.ts";
import { showEntry, type ShownEntry } from "./entry.ts";
import { type FakeQuery, note, NOW_MS } from "./fakes.ts";
import { RECORD_BYTES_MAX, RecordReader } from "./record.ts";

const none = { permissions: "none" } as const;
const UPSTREAMS = ["192.0.2.53:53", "tls://dns.example"];

function logged(query: FakeQuery, anonymize = false): ShownEntry {
  const memory = queueMemory(8_192);
  note(new QueueWriter(memory), query);
  const queue = new QueueReader(memory);
  const record = new RecordReader({ anonymize, upstreams: UPSTREAMS });
  queue.mark();
  assert.ok(queue.next(record.words) > 0);
  const entry = record.read();
  assert.ok(entry !== null);
  return showEntry(entry);
}

Deno.test("RecordReader reads every field", none, () => {
  const entry = logged({
    name: "WWW.Example",
    type: "AAAA",
    outcome: "safe_search",
    protocol: "doq",
    durationUs: 4_000_000_000,
    address: "2001:db8::7",
    clientId: "phone",
    group: "gr_0123456789abcdef",
    clientName: "Großmutters\tTelefon",
    rule: "service:chat\t||chat.example^\twith a tab",
    answers: ["192.0.2.1", "2001:db8::1"],
    rcode: 3,
    upstream: 1,
    cached: true,
    dnssec: 3,
    dnssecReason: "www.example AAAA: the signature\tof key 7 does not fit",
  });
  assert.deepEqual(entry, {
    time: "2026-01-02T03:04:05.678Z",
    client: "2001:db8::7",
    client_name: "Großmutters\tTelefon",
    client_id: "phone",
    group: "gr_0123456789abcdef",
    protocol: "doq",
    name: "www.example",
    type: "AAAA",
    outcome: "safe_search",
    rcode: "NXDOMAIN",
    rule: "||chat.example^\twith a tab",
    list: "service:chat",
    answers: ["192.0.2.1", "2001:db8::1"],
    upstream: "tls://dns.example",
    cached: true,
    dnssec: "bogus",
    dnssec_reason: "www.example AAAA: the signature of key 7 does not fit",
    duration_us: 4_000_000_000,
  });
});

Deno.test("RecordReader shows null for what is not there", none, () => {
  const { client, client_name, client_id, rule, list, upstream, dnssec, answers } = logged({
    address: "",
    name: ".",
    type: "TYPE65399",
  });
  assert.deepEqual(
    { client, client_name, client_id, rule, list, upstream, dnssec, answers },
    {
      client: null,
      client_name: null,
      client_id: null,
      rule: null,
      list: null,
      upstream: null,
      dnssec: null,
      answers: [],
    },
  );
});

Deno.test("RecordReader keeps the start of an address where it is anonymised", none, () => {
  const rows = [
    ["192.0.2.77", "192.0.2.0"],
    ["2001:db8:1:2aff:3:4:5:6", "2001:db8:1:2a00::"],
    ["", null],
  ] as const;
  for (const [address, want] of rows) assert.equal(logged({ address }, true).client, want);
});

Deno.test("RecordReader shows as many answers as the copy of the response has", none, () => {
  const answers = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`);
  assert.deepEqual(logged({ answers: answers.slice(0, 9) }).answers, answers.slice(0, 9));
  // 16 at most, and no half one at the end of the copy.
  assert.deepEqual(logged({ answers }).answers, answers.slice(0, 16));
  const long = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.example`;
  const shown = logged({ name: long, answers: answers.slice(0, 60) }).answers;
  assert.deepEqual(shown, answers.slice(0, shown.length));
});

Deno.test("RecordReader reads a record as if it were its first", none, () => {
  const prng = new Prng(seedFromEnv());
  const memory = queueMemory(8_192);
  const [writer, queue] = [new QueueWriter(memory), new QueueReader(memory)];
  const reader = new RecordReader({ anonymize: false, upstreams: UPSTREAMS });
  // Four of the first are the bytes of the last.
  const addresses = ["192.0.2.1", "192.0.2.2", "c000:201:c000:201:c000:201:c000:201"];
  const long = "a".repeat(60);
  for (let i = 0; i < 1_000; i++) {
    const query: FakeQuery = {
      name: prng.pick(["a", "A", "b.a", "ab.a", `${long}.a`, `${long}.${long}.b`, "."]),
      type: prng.pick(["A", "AAAA", "HTTPS"]),
      outcome: prng.pick(["blocked", "cached", "forwarded"]),
      protocol: prng.pick(["udp", "doh"]),
      address: prng.pick(["", "192.0.2.7", "2001:db8::7", "192.0.2.8"]),
      clientId: prng.pick(["", "a", "phone", "phones"]),
      group: prng.pick(["gr_0", "gr_1"]),
      clientName: prng.pick(["", "a", "Großmutter", long, long + long + long]),
      rule: prng.pick(["", "l\tr", "l\tr2", `l\t${long}`, `l\t${long}${long}`]),
      answers: Array.from({ length: prng.int(10) }, () => prng.pick(addresses)),
      rcode: prng.pick([0, 3]),
      upstream: prng.pick([0, 1]),
      cached: prng.chance(0.5),
      dnssec: prng.int(4),
      dnssecReason: prng.pick(["", "a", "ab", long + long + long]),
    };
    assert.ok(note(writer, query));
    queue.mark();
    assert.ok(queue.next(reader.words) > 0);
    queue.release();
    const entry = reader.read();
    assert.ok(entry !== null);
    assert.deepEqual(showEntry(entry), logged(query), `seed's query ${i}`);
  }
});

Deno.test("RecordReader takes anything without an exception", none, () => {
  const prng = new Prng(seedFromEnv());
  const reader = new RecordReader({ anonymize: false, upstreams: UPSTREAMS });
  const memory = queueMemory(8_192);
  const queue = new QueueReader(memory);
  const writer = new QueueWriter(memory);
  let read = 0;
  for (let i = 0; i < 1_000; i++) {
    note(writer, { rule: "rules\t||x^", clientId: "id", answers: ["192.0.2.1", "2001:db8::1"] });
    queue.mark();
    const words = queue.next(reader.words) / 4;
    queue.release();
    for (let n = prng.int(6); n >= 0; n--) {
      const at = prng.int(words);
      if (at === RecordAt.What) continue;
      reader.words[at] ^= 1 << prng.int(32);
    }
    // The address has one of three lengths: whatever else stands there is the queue's to refuse.
    const entry = reader.read();
    if (entry !== null) showEntry(entry);
    if (entry !== null) read++;
  }
  assert.ok(read > 100);
  assert.ok(reader.words.byteLength === RECORD_BYTES_MAX);
});

Deno.test("RecordReader takes the time to the millisecond", none, () => {
  assert.equal(logged({ timeMs: NOW_MS + 1 }).time, "2026-01-02T03:04:05.679Z");
  assert.equal(logged({ timeMs: 2 ** 42 + 123 }).time, new Date(2 ** 42 + 123).toISOString());
});
