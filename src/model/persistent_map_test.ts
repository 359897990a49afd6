import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { differences } from "./differences.ts";
import { PersistentMap } from "./persistent_map.ts";

const none = { permissions: "none" } as const;

Deno.test("PersistentMap is a Map, and those before a change stay", none, () => {
  const prng = new Prng(seedFromEnv());
  for (const keys of [4, 40, 2_000]) {
    let map = PersistentMap.empty<number>();
    const plain = new Map<string, number>();
    const kept: [PersistentMap<number>, [string, number][]][] = [];
    for (let step = 0; step < 6_000; step++) {
      const key = `id_${prng.int(keys)}`;
      if (prng.chance(0.4)) {
        map = map.without(key);
        plain.delete(key);
      } else {
        map = map.with(key, step);
        plain.set(key, step);
      }
      const probe = `id_${prng.int(keys)}`;
      assert.equal(map.get(probe), plain.get(probe));
      assert.equal(map.has(probe), plain.has(probe));
      assert.equal(map.size, plain.size);
      if (step % 1_000 === 0) kept.push([map, [...plain]]);
    }
    for (const [old, entries] of [...kept, [map, [...plain]] as const]) {
      assert.deepEqual([...old], entries);
      assert.deepEqual([...old.keys()], entries.map(([key]) => key));
      assert.deepEqual([...old.values()], entries.map(([, value]) => value));
    }
  }
});

Deno.test("PersistentMap tells keys of one hash apart", none, () => {
  // Both have the same FNV-1a hash of 32 bits.
  const collision = findCollision();
  let map = PersistentMap.empty<number>();
  for (const [i, key] of collision.entries()) map = map.with(key, i);
  assert.deepEqual(collision.map((key) => map.get(key)), [0, 1]);
  map = map.with(collision[1], 7).without(collision[0]);
  assert.deepEqual([...map], [[collision[1], 7]]);
  assert.deepEqual([...map.without(collision[1])], []);
});

Deno.test("differences() finds what changed, in whatever maps", none, () => {
  const prng = new Prng(seedFromEnv());
  for (const keys of [3, 40, 2_000]) {
    let map = PersistentMap.empty<number>();
    for (let i = 0; i < keys; i++) if (prng.chance(0.5)) map = map.with(`id_${i}`, i);
    for (let round = 0; round < 50; round++) {
      const before = map;
      for (let step = prng.int(20); step > 0; step--) {
        const key = `id_${prng.int(keys)}`;
        map = prng.chance(0.4) ? map.without(key) : map.with(key, prng.int(5));
      }
      const message = `seed ${prng.seed}, ${keys} keys, round ${round}`;
      const found = differences(before, map);
      const rebuilt = new Map(before);
      for (const { key, before: old, after } of found) {
        assert.equal(before.get(key), old, message);
        assert.notEqual(old, after, message);
        if (after === undefined) rebuilt.delete(key);
        else rebuilt.set(key, after);
      }
      assert.deepEqual(new Map([...rebuilt].sort()), new Map([...map].sort()), message);
      const byKey = (list: typeof found) => list.toSorted((a, b) => a.key < b.key ? -1 : 1);
      assert.deepEqual(byKey(found), byKey(differences(new Map(before), new Map(map))), message);
      const order = found.filter(({ after }) => after !== undefined).map(({ key }) => key);
      assert.deepEqual(order, [...map.keys()].filter((key) => order.includes(key)), message);
    }
  }
  const collision = findCollision();
  const both = PersistentMap.empty<number>().with(collision[0], 0).with(collision[1], 1);
  const without = both.without(collision[0]);
  assert.deepEqual(differences(both, without), [
    { key: collision[0], before: 0, after: undefined },
  ]);
  assert.deepEqual(differences(without, both), [
    { key: collision[0], before: undefined, after: 0 },
  ]);
});

/** Two texts of one FNV-1a hash; among 2^18 texts about eight pairs are. */
function findCollision(): [string, string] {
  const seen = new Map<number, string>();
  for (let n = 0; n < 2 ** 18; n++) {
    const text = `k${n}`;
    let hash = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    }
    const other = seen.get(hash);
    if (other !== undefined) return [other, text];
    seen.set(hash, text);
  }
  throw new Error("no two texts have one hash");
}

Deno.test("PersistentMap.with() puts entries where they were", none, () => {
  const map = PersistentMap.empty<string>().with("c", "3", 40_000).with("a", "1", 7)
    .with("b", "2", 1_024).with("d", "4");
  assert.deepEqual([...map.values()], ["1", "2", "3", "4"]);
  assert.deepEqual(["a", "d", "none"].map((key) => map.placeOf(key)), [7, 40_001, undefined]);
  const seen: string[] = [];
  map.forEach((value, key, all) => seen.push(`${key}${value}${all.size}`));
  assert.deepEqual(seen, ["a14", "b24", "c34", "d44"]);
});
