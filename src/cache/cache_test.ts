import assert from "node:assert/strict";
import { Cache, CacheHit } from "./mod.ts";

const none = { permissions: "none" } as const;
const MIB = 1024 * 1024;
const NOW = 1_000_000;

/** A response for `name` with one A record, and where its TTL stands. */
function response(name: string, ttl: number, padding = 0): { message: Uint8Array; ttlAt: number } {
  const labels = name.split(".").flatMap((l) => [l.length, ...new TextEncoder().encode(l)]);
  const question = [...labels, 0, 0, 1, 0, 1];
  const head = [0, 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
  const ttlBytes = [ttl >>> 24, (ttl >>> 16) & 255, (ttl >>> 8) & 255, ttl & 255];
  const rdata = [0, 4 + padding, 192, 0, 2, 1, ...new Array<number>(padding).fill(7)];
  const message = [...head, ...question, 0xc0, 12, 0, 1, 0, 1, ...ttlBytes, ...rdata];
  return { message: Uint8Array.from(message), ttlAt: head.length + question.length + 6 };
}

function hashOf(name: string): number {
  let h = 7;
  for (const c of name.toLowerCase()) h = Math.imul(h ^ c.charCodeAt(0), 0x01000193);
  return h;
}

function put(cache: Cache, name: string, ttl: number, now = NOW, padding = 0): number {
  const { message, ttlAt } = response(name, ttl, padding);
  const qnameLength = name.length + 2;
  const hash = hashOf(name);
  return cache.store(
    { hash, qtype: 1, keyBits: 0, qnameLength, ttl, nowSeconds: now },
    message,
    0,
    message.length,
    Uint16Array.of(ttlAt),
    1,
  );
}

function find(cache: Cache, name: string, qtype = 1, keyBits = 0): number {
  const { message } = response(name, 0);
  return cache.find(hashOf(name), qtype, keyBits, message, 12, name.length + 2);
}

function findBy(
  cache: Cache,
  name: string,
  hash: (bytes: Uint8Array, qname: number, qtype: number, keyBits: number) => number,
): number {
  const { message } = response(name, 0);
  return cache.find(hash(message, 12, 1, 0), 1, 0, message, 12, name.length + 2);
}

function read(cache: Cache, entry: number, now: number): { bytes: Uint8Array; ttl: number } {
  const length = cache.messageLength(entry);
  const bytes = new Uint8Array(Math.ceil(length / 4) * 4 + 8);
  const words = new Uint32Array(bytes.buffer);
  cache.copyTo(entry, bytes, words, 4, now, 30);
  const at = length - 4 - 2 - 4 + 4;
  return { bytes: bytes.slice(4, 4 + length), ttl: new DataView(bytes.buffer).getUint32(at) };
}

Deno.test("Cache gives back what it keeps, whatever the case of the question", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
  put(cache, "www.example", 300);
  const entry = find(cache, "WWW.example");
  assert.ok(entry >= 0);
  assert.equal(cache.freshness(entry, NOW), CacheHit.Fresh);
  assert.deepEqual(read(cache, entry, NOW).bytes, response("www.example", 300).message);
  assert.equal(find(cache, "ww.example"), -1);
  assert.equal(find(cache, "www.example", 28), -1, "another type");
  assert.equal(find(cache, "www.example", 1, 1), -1, "another DO");
  assert.equal(cache.entries, 1);
});

Deno.test("Cache ages TTLs by the second and never lets them grow", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 100 });
  put(cache, "www.example", 300);
  const entry = find(cache, "www.example");
  const rows = [[NOW, 300], [NOW + 1, 299], [NOW + 299, 1], [NOW - 50, 300], [NOW + 300, 30]];
  for (const [now, ttl] of rows) assert.equal(read(cache, entry, now).ttl, ttl, `at ${now - NOW}`);
  assert.equal(cache.freshness(entry, NOW + 299), CacheHit.Fresh);
  assert.equal(cache.freshness(entry, NOW + 300), CacheHit.Stale);
  assert.equal(cache.freshness(entry, NOW + 399), CacheHit.Stale);
  assert.equal(cache.freshness(entry, NOW + 400), CacheHit.Miss);
});

Deno.test("Cache.store() takes the place of the same question", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
  put(cache, "www.example", 300);
  put(cache, "WWW.EXAMPLE".toLowerCase(), 60, NOW + 10);
  assert.equal(cache.entries, 1);
  assert.equal(read(cache, find(cache, "www.example"), NOW + 10).ttl, 60);
});

Deno.test("Cache keeps hot names under a scan of many times its size", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
  const hot = Array.from({ length: 50 }, (_, i) => `hot${i}.example`);
  for (const name of hot) put(cache, name, 86_400);
  for (let i = 0; i < 50_000; i++) {
    put(cache, `scan${i}.example`, 86_400);
    if (i % 100 !== 0) continue;
    for (const name of hot) {
      const entry = find(cache, name);
      if (entry >= 0) cache.freshness(entry, NOW);
    }
  }
  assert.ok(cache.evicted > 30_000, `evicted ${cache.evicted}`);
  const left = hot.filter((name) => find(cache, name) >= 0);
  assert.equal(left.length, hot.length, "hot names are left");
  for (const name of left) {
    assert.deepEqual(read(cache, find(cache, name), NOW).bytes, response(name, 86_400).message);
  }
});

Deno.test("Cache hands out a TTL of zero in the second it came, and never later", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 100 });
  const entry = put(cache, "www.example", 0);
  assert.equal(read(cache, entry, NOW).ttl, 0);
  assert.equal(cache.freshness(entry, NOW), CacheHit.Stale);
  assert.equal(read(cache, entry, NOW + 1).ttl, 30, "stale by then");
});

Deno.test("Cache gives up the expired first, then the unwanted, then the soonest", none, () => {
  const store = (cache: Cache, name: string, ttl: number) => {
    const { message, ttlAt } = response(name, ttl);
    const qnameLength = name.length + 2;
    // One hash for all: eight of them fill a bucket.
    const options = { hash: 1, qtype: 1, keyBits: 0, qnameLength, ttl, nowSeconds: NOW };
    cache.store(options, message, 0, message.length, Uint16Array.of(ttlAt), 1);
  };
  const entryOf = (cache: Cache, name: string) =>
    cache.find(1, 1, 0, response(name, 0).message, 12, name.length + 2);
  // TTLs of eight entries (0 has expired), which of them were asked for, and which one goes.
  const rows: readonly (readonly [readonly number[], readonly number[], number])[] = [
    [[9, 9, 9, 9, 9, 9, 9, 9], [], 0],
    [[9, 9, 9, 9, 9, 9, 9, 9], [0, 1, 2], 3],
    [[9, 9, 5, 9, 9, 9, 4, 9], [], 6],
    [[9, 9, 5, 9, 9, 9, 4, 9], [6], 2],
    [[9, 9, 5, 9, 9, 0, 4, 9], [0, 1, 2, 3, 4, 5, 6, 7], 5],
    [[9, 9, 5, 9, 9, 8, 4, 9], [0, 1, 2, 3, 4, 5, 6, 7], 6],
  ];
  for (const [ttls, visited, gone] of rows) {
    const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
    for (const [i, ttl] of ttls.entries()) store(cache, `n${i}.example`, ttl);
    for (const i of visited) cache.freshness(entryOf(cache, `n${i}.example`), NOW);
    store(cache, "new.example", 9);
    const left = ttls.map((_, i) => entryOf(cache, `n${i}.example`) >= 0);
    assert.deepEqual(left, ttls.map((_, i) => i !== gone), `${ttls}, asked for ${visited}`);
    assert.ok(entryOf(cache, "new.example") >= 0);
    assert.equal(cache.evicted, ttls[gone] === 0 ? 0 : 1);
  }
});

Deno.test("Cache stays within its memory and serves only whole entries, seeded", none, () => {
  const seed = 20_261_120;
  console.log(`seed ${seed}`);
  let state = seed;
  const random = (n: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * n);
  };
  const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
  for (let i = 0; i < 60_000; i++) {
    const k = random(8_000);
    const name = `n${k}.example`;
    if (random(3) === 0) {
      put(cache, name, 1_000 + (k % 7), NOW, k % 1_500);
    } else {
      const entry = find(cache, name);
      if (entry < 0) continue;
      cache.freshness(entry, NOW);
      assert.deepEqual(
        read(cache, entry, NOW).bytes,
        response(name, 1_000 + (k % 7), k % 1_500).message,
      );
    }
    assert.ok(cache.usedBytes <= MIB);
  }
});

Deno.test(
  "Cache.store() takes the largest message, and refuses more TTLs than it ages",
  none,
  () => {
    const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
    const { message } = response("big.example", 60);
    const big = new Uint8Array(65_535);
    big.set(message);
    const options = {
      hash: hashOf("big.example"),
      qtype: 1,
      keyBits: 0,
      qnameLength: 13,
      ttl: 60,
      errors: Uint8Array.of(1, 2, 3, 4, 5),
      nowSeconds: NOW,
    };
    for (let i = 0; i < 40; i++) {
      const entry = cache.store(options, big, 0, big.length, new Uint16Array(4_000), 4_000);
      assert.ok(entry >= 0);
      assert.equal(cache.messageLength(entry), 65_535);
      assert.equal(cache.errorsLength(entry), 5);
    }
    assert.equal(cache.store(options, big, 0, big.length, new Uint16Array(4_001), 4_001), -1);
  },
);

Deno.test("Cache.copyAside() gives back what stands beside a message", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
  const target = new Uint8Array(100);
  const kept = (aside: Uint8Array | undefined, padding: number) => {
    const name = "www.example";
    const { message, ttlAt } = response(name, 60, padding);
    const options = {
      ...{ hash: hashOf(name), qtype: 1, keyBits: 0, qnameLength: 13, ttl: 60 },
      nowSeconds: NOW,
      ...(aside !== undefined && { aside }),
    };
    const entry = cache.store(options, message, 0, message.length, Uint16Array.of(ttlAt), 1);
    assert.deepEqual(read(cache, entry, NOW).bytes, message);
    put(cache, "next.example", 60); // Nothing of it stands in the next one's place.
    const length = cache.copyAside(entry, target);
    return target.slice(0, length);
  };
  for (let padding = 0; padding < 4; padding++) {
    assert.deepEqual(kept(undefined, padding), Uint8Array.of());
    assert.deepEqual(kept(Uint8Array.of(), padding), Uint8Array.of());
    for (let length = 1; length < 9; length++) {
      const aside = Uint8Array.from({ length }, (_, i) => 200 + i);
      assert.deepEqual(kept(aside, padding), aside);
    }
  }
});

Deno.test("Cache.flush() forgets everything, and claimRefresh() is granted once", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
  const entry = put(cache, "www.example", 300);
  assert.equal(cache.claimRefresh(entry), true);
  assert.equal(cache.claimRefresh(entry), false);
  cache.flush();
  assert.equal(cache.entries, 0);
  assert.equal(cache.usedBytes, 0);
  assert.equal(find(cache, "www.example"), -1);
});

Deno.test("Cache forgets what a clock stored that was far ahead", none, () => {
  const cache = new Cache({ sizeBytes: MIB, serveStale: 3_600 });
  const ahead = NOW + 400_000_000;
  const { message } = response("www.example", 300);
  const hash = hashOf("www.example");
  const options = { hash, qtype: 1, keyBits: 0, qnameLength: 13, ttl: 300, nowSeconds: ahead };
  const entry = cache.store(options, message, 0, message.length, new Uint16Array(0), 0);
  assert.equal(cache.freshness(entry, ahead), CacheHit.Fresh);
  assert.equal(
    cache.freshness(entry, ahead - 60),
    CacheHit.Fresh,
    "a small step back does no harm",
  );
  assert.equal(cache.freshness(entry, ahead - 61), CacheHit.Miss);
  assert.equal(cache.freshness(entry, NOW), CacheHit.Miss);
});

Deno.test("Cache.load() takes over what another cache saved and what still holds", none, () => {
  const former = new Cache({ sizeBytes: MIB, serveStale: 0 });
  put(former, "short.example", 10);
  put(former, "twice.example", 20);
  for (const name of ["twice.example", "long.example"]) put(former, name, 300);
  const saved = former.save();
  for (const sizeBytes of [MIB, 2 * MIB]) {
    const cache = new Cache({ sizeBytes, serveStale: 0 });
    // Hashes are of another seed there.
    const otherHash = (bytes: Uint8Array, qname: number, qtype: number, keyBits: number) => {
      assert.deepEqual([qtype, keyBits], [1, 0]);
      const end = bytes.indexOf(0, qname);
      return hashOf(new TextDecoder().decode(bytes.subarray(qname, end))) ^ 0x5555;
    };
    cache.load(saved, otherHash, NOW + 15);
    assert.equal(cache.entries, 2);
    const entry = findBy(cache, "long.example", otherHash);
    assert.equal(cache.freshness(entry, NOW + 299), CacheHit.Fresh);
    assert.equal(cache.freshness(entry, NOW + 300), CacheHit.Miss);
    assert.equal(findBy(cache, "short.example", otherHash), -1);
  }
});

Deno.test("Cache.load() leaves what is cut off, too large, or of another format", none, () => {
  const former = new Cache({ sizeBytes: MIB, serveStale: 0 });
  put(former, "one.example", 300);
  put(former, "two.example", 300);
  const saved = former.save();
  const load = (change: (words: Uint32Array) => void, lengthBytes = saved.byteLength) => {
    const copy = saved.slice(0, lengthBytes);
    change(new Uint32Array(copy));
    const cache = new Cache({ sizeBytes: MIB, serveStale: 0 });
    cache.load(copy, () => 1, NOW);
    return cache.entries;
  };
  assert.equal(load(() => {}), 2);
  assert.equal(load(() => {}, 4), 0);
  assert.equal(load(() => {}, saved.byteLength - 4), 1);
  assert.equal(load((words) => words[0]++), 0, "another format");
  assert.equal(load((words) => words[2] = 0), 0, "an entry of nothing");
  assert.equal(load((words) => words[2] = 0xffff_ffff), 0, "an entry of everything");
  assert.equal(load((words) => words[6] = 0xffff_ffff), 0, "a message of everything");
});
