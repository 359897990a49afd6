import assert from "node:assert/strict";
import { encodeHex } from "./mod.ts";
import { sipHash } from "./sip_hash.ts";

// The reference implementation's vectors: key 00 to 0f, data 00, 00 01, 00 01 02 and so on.
const KEY = Uint8Array.from({ length: 16 }, (_, i) => i);
const VECTORS: readonly (readonly [number, string])[] = [
  [0, "310e0edd47db6f72"],
  [1, "fd67dc93c539f874"],
  [2, "5a4fa9d909806c0d"],
  [3, "2d7efbd796666785"],
  [7, "37d1018bf50002ab"],
  [8, "6224939a79f5f593"],
  [15, "e545be4961ca29a1"],
  [16, "db9bc2577fcc2a3f"],
  [63, "724506eb4c328a95"],
];

Deno.test("sipHash() agrees with the reference implementation", { permissions: "none" }, () => {
  const data = Uint8Array.from({ length: 64 }, (_, i) => i);
  for (const [length, want] of VECTORS) {
    const target = new Uint8Array(10).fill(0xee);
    sipHash(KEY, data, length, target, 1);
    assert.equal(encodeHex(target), `ee${want}ee`, `${length} bytes`);
  }
});
