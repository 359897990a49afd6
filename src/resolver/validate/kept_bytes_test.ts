import assert from "node:assert/strict";
import { KeptBytes } from "./kept_bytes.ts";

Deno.test(
  "KeptBytes copies what is small into memory that is shared",
  { permissions: "none" },
  () => {
    const kept = new KeptBytes();
    const source = Uint8Array.from({ length: 3_000 }, (_, i) => i * 7);
    const copies = Array.from({ length: 900 }, (_, i) => kept.copy(source.subarray(i, 2 * i)));
    source.fill(0);
    for (const [i, copy] of copies.entries()) {
      assert.deepEqual(copy, Uint8Array.from({ length: i }, (_, k) => (i + k) * 7));
    }
    const small = copies.slice(1, 40);
    const pieces = new Set(small.map(({ buffer }) => buffer));
    assert.equal(pieces.size, 1);
    assert.equal(copies[800].buffer.byteLength, 800, "what is large is let go of by itself");
  },
);
