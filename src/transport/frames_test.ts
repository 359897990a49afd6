import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { FrameReader } from "./mod.ts";

const none = { permissions: "none" } as const;

function framed(messages: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(messages.flatMap((m) => [m.length >> 8, m.length & 255, ...m]));
}

/** Every message that is whole after each chunk. */
function read(reader: FrameReader, chunks: readonly Uint8Array[]): Uint8Array[] {
  const messages: Uint8Array[] = [];
  for (const chunk of chunks) {
    reader.push(chunk);
    for (let m = reader.next(); m !== null; m = reader.next()) messages.push(m.slice());
  }
  return messages;
}

Deno.test("FrameReader cuts a stream at any two places into the same messages", none, () => {
  const messages = [[1], [], [2, 3, 4], [0, 0], [0, 1, 7]].map((m) => Uint8Array.from(m));
  const stream = framed(messages);
  for (let i = 0; i <= stream.length; i++) {
    for (let j = i; j <= stream.length; j++) {
      const reader = new FrameReader();
      const chunks = [stream.subarray(0, i), stream.subarray(i, j), stream.subarray(j)];
      assert.deepEqual(read(reader, chunks), messages, `cut at ${i} and ${j}`);
      assert.equal(reader.pendingBytes, 0);
    }
  }
});

Deno.test("FrameReader hands out nothing before the last byte", none, () => {
  const reader = new FrameReader();
  const stream = framed([Uint8Array.of(5, 6, 7)]);
  for (let i = 0; i < stream.length; i++) {
    assert.equal(reader.next(), null);
    assert.equal(reader.pendingBytes, i);
    reader.push(stream.subarray(i, i + 1));
  }
  assert.deepEqual(reader.next(), Uint8Array.of(5, 6, 7));
  assert.equal(reader.next(), null);
});

Deno.test("FrameReader keeps what is left behind while a message waits to be taken", none, () => {
  const reader = new FrameReader();
  const messages = Array.from({ length: 50 }, (_, i) => new Uint8Array(40).fill(i));
  reader.push(framed(messages.slice(0, 30)));
  assert.deepEqual(reader.next(), messages[0]);
  reader.push(framed(messages.slice(30))); // The others are still in there.
  const rest = read(reader, [new Uint8Array(0)]);
  assert.deepEqual(rest, messages.slice(1));
});

Deno.test("FrameReader takes the largest message, and messages of any size, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const prng = new Prng(seedFromEnv());
  const reader = new FrameReader();
  const sizes = [65_535, 0, 1, 65_535, 65_534, 1_023, 1_024, 1_025];
  for (let i = 0; i < 60; i++) sizes.push(prng.chance(0.1) ? prng.int(65_536) : prng.int(400));
  const messages = sizes.map((size) => prng.bytes(size));
  const stream = framed(messages);
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < stream.length;) {
    const size = 1 + prng.int(prng.pick([3, 100, 5_000, 200_000]));
    chunks.push(stream.subarray(at, at + size));
    at += size;
  }
  assert.deepEqual(read(reader, chunks), messages);
  assert.equal(reader.pendingBytes, 0);
});
