// Goal: what goes into a way comes out of it, in order and whole, wherever its queue begins anew, and
// whoever has stopped looking is told. Method: both ends in one thread, driven by a seed.
import assert from "node:assert/strict";
import type { SignatureCheck } from "../../dnssec/verify.ts";
import { Prng } from "../../../tests/prng.ts";
import { Bell, CheckRing, CHECKS_MAX, type NumberedCheck } from "./ring.ts";

const none = { permissions: "none" } as const;
/** More than the largest RRset that is checked. */
const LARGE = 120_000;

function checkOf(data: number, byte = data & 255): SignatureCheck {
  return {
    algorithm: 13,
    publicKey: new Uint8Array(64).fill(byte),
    data: new Uint8Array(data).fill(byte + 1),
    signature: new Uint8Array(64).fill(byte + 2),
  };
}

function ends(): [CheckRing, CheckRing] {
  const memory = new SharedArrayBuffer(CheckRing.MEMORY_BYTES);
  return [new CheckRing(memory), new CheckRing(memory)];
}

Deno.test("CheckRing hands on what it is given, around its end and past 32 bits", none, () => {
  const prng = new Prng(7);
  const [dns, thread] = ends();
  const waiting: NumberedCheck[] = [];
  const results: [number, boolean][] = [];
  let id = 0xffff_ff00; // Numbers are of 32 bits.
  let bytes = 0;
  for (let round = 0; round < 4_000; round++) {
    while (waiting.length + results.length < CHECKS_MAX && dns.hasRoom && prng.int(3) > 0) {
      const size = prng.int(50) === 0 ? prng.int(LARGE) : prng.int(500);
      const one = { id: id = id + 1 >>> 0, check: checkOf(size, round & 255) };
      assert.ok(dns.push(one.id, one.check), `${size} bytes`);
      waiting.push(one);
      bytes += size;
    }
    for (let i = prng.int(4); i > 0 && waiting.length > 0; i--) {
      const [wanted] = waiting.splice(0, 1);
      assert.deepEqual(thread.take(), wanted);
      thread.put(wanted.id, wanted.id % 3 === 0);
      results.push([wanted.id, wanted.id % 3 === 0]);
    }
    if (prng.int(2) === 0 || results.length === CHECKS_MAX) {
      const read: typeof results = [];
      dns.read(1 + prng.int(CHECKS_MAX), (id, fits) => read.push([id, fits]));
      assert.deepEqual(read, results.splice(0, read.length));
      assert.equal(dns.hasResult, results.length > 0);
    }
  }
  assert.ok(bytes > 10 * CheckRing.MEMORY_BYTES, "it went round often");
});

Deno.test("CheckRing has an end, and takes nothing that it could not hand on", none, () => {
  const [dns, thread] = ends();
  assert.equal(thread.take(), null);
  assert.equal(dns.push(1, checkOf(200_000)), false);
  assert.equal(thread.take(), null, "nothing of it is there");
  let count = 0;
  while (dns.hasRoom) assert.ok(dns.push(++count, checkOf(LARGE)));
  assert.ok(count >= 2 && count < 5, `${count}`);
  for (let id = 1; id <= count; id++) assert.equal(thread.take()?.id, id);
  assert.ok(dns.hasRoom);
});

Deno.test("CheckRing.put() has those told who have read all, and no others", none, () => {
  const [dns, thread] = ends();
  const read: number[] = [];
  for (let id = 1; id <= 3; id++) dns.push(id, checkOf(1));
  assert.equal(thread.put(1, true), true, "nobody looks");
  assert.equal(thread.put(2, true), false, "it was told, and has not read that yet");
  dns.read(CHECKS_MAX, (id) => {
    // Who still reads finds it.
    if (id === 2) assert.equal(thread.put(3, false), true);
    read.push(id);
  });
  assert.deepEqual(read, [1, 2, 3]);
  assert.equal(thread.put(4, true), true);
});

Deno.test("Bell.wait() ends at once where it was rung since", none, () => {
  const bell = new Bell(new SharedArrayBuffer(Bell.MEMORY_BYTES));
  const { count } = bell;
  bell.ring();
  bell.wait(count, 60_000);
  assert.notEqual(bell.count, count);
});
