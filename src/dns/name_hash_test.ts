import assert from "node:assert/strict";
import { HashedName, LABELS_MAX, parseName } from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 0x5eed;

function hashed(text: string): HashedName {
  const [name, wire] = [new HashedName(), parseName(text)];
  assert(wire !== null, text);
  assert.equal(name.read(wire, 0, wire.length, SEED), wire.length);
  return name;
}

Deno.test("HashedName gives each suffix the hash of that name", none, () => {
  const name = hashed("a.b.Example.COM");
  assert.equal(name.count, 4);
  ["a.b.example.com", "B.example.com", "example.com", "com", "."].forEach((suffix, k) => {
    assert.equal(name.hashes[k], hashed(suffix).hashes[0], suffix);
  });
  assert.notEqual(hashed("ab.c").hashes[0], hashed("a.bc").hashes[0]);
  assert.notEqual(hashed("a\\.b").hashes[0], hashed("a.b").hashes[0]);
});

Deno.test("HashedName refuses compressed, cut and too long names", none, () => {
  const name = new HashedName();
  const long = new Uint8Array(257);
  for (let i = 0; i < 256; i += 2) [long[i], long[i + 1]] = [1, 0x61];
  assert.equal(name.read(long, 2, 257, SEED), 257);
  assert.equal(name.count, LABELS_MAX);
  assert.equal(name.read(long, 0, 257, SEED), -1);
  const rows = [[], [1], [1, 0x61], [1, 0x61, 0xc0, 0x0c], [64], [3, 0x61, 0]];
  for (const row of rows) {
    assert.equal(name.read(Uint8Array.from(row), 0, row.length, SEED), -1, row.join(" "));
  }
});
