// How long a verdict takes with a million names, from the bytes of the name on: against a Set of
// strings that is asked for each parent. An iteration asks for BATCH names; what the matcher alone
// takes is the difference to `HashedName.read`, which the cache needs as well.

import { gunzipSync } from "node:zlib";
import { wireName } from "../../tests/filter_reference.ts";
import { Prng } from "../../tests/prng.ts";
import { HashedName } from "../dns/mod.ts";
import { compile } from "./compile.ts";
import { Matcher, NO_RULE } from "./matcher.ts";

const SEED = 0x5eed;
const BATCH = 1_000;
const LIST = new URL("../../../shared/lists/million.domains.gz", import.meta.url);
const ignore = await Deno.stat(LIST).then(() => false, () => true);
if (ignore) console.warn("skipped: these benchmarks need ../shared/lists");

const bytes = ignore ? new Uint8Array() : new Uint8Array(gunzipSync(await Deno.readFile(LIST)));
const listed = new TextDecoder().decode(bytes).split("\n").filter((line) => /^[^#]/.test(line));
const set = new Set(listed);
const matcher = new Matcher(compile({ seed: SEED, sources: [{ bytes }] }).rules);
const sources = new Uint32Array([1]);
const hashed = new HashedName();
const decoder = new TextDecoder();
const prng = new Prng(SEED);

/** Names one after the other in a packet, and as the text of each. */
interface Batch {
  readonly packet: Uint8Array;
  readonly texts: readonly Uint8Array[];
}

function batchOf(make: () => string): Batch {
  const names = Array.from({ length: ignore ? 0 : BATCH }, make);
  return {
    packet: new Uint8Array(names.flatMap((name) => [...wireName(name)])),
    texts: names.map((name) => new TextEncoder().encode(name)),
  };
}

function askSet({ texts }: Batch): number {
  let hits = 0;
  for (const text of texts) {
    for (let rest = decoder.decode(text);;) {
      if (set.has(rest)) {
        hits++;
        break;
      }
      const dot = rest.indexOf(".");
      if (dot < 0) break;
      rest = rest.slice(dot + 1);
    }
  }
  return hits;
}

function readNames({ packet }: Batch): number {
  let sum = 0;
  for (let at = 0; at < packet.length;) {
    at = hashed.read(packet, at, packet.length, SEED);
    sum ^= hashed.hashes[0];
  }
  return sum;
}

function askMatcher({ packet }: Batch): number {
  let hits = 0;
  for (let at = 0; at < packet.length;) {
    at = hashed.read(packet, at, packet.length, SEED);
    if (matcher.match(packet, hashed, sources) !== NO_RULE) hits++;
  }
  return hits;
}

const label = () => prng.next().toString(36);
const batches = {
  "a miss of five labels": batchOf(() => `${label()}.${label()}.${label()}.${label()}.test`),
  "a hit": batchOf(() => prng.pick(listed)),
  "a hit, the same hundred names": batchOf(() => listed[prng.int(100)]),
};
for (const [group, batch] of Object.entries(batches)) {
  const bench = { group, ignore, permissions: "none" } as const;
  Deno.bench(`Set of strings: ${group}`, { ...bench, baseline: true }, () => void askSet(batch));
  Deno.bench(`HashedName.read(): ${group}`, bench, () => void readNames(batch));
  Deno.bench(`read and Matcher.match(): ${group}`, bench, () => void askMatcher(batch));
}

Deno.bench("Set: a million names", {
  group: "compile",
  ignore,
  baseline: true,
  permissions: "none",
}, () => void new Set(new TextDecoder().decode(bytes).split("\n")));
Deno.bench("compile(): a million names", { group: "compile", ignore, permissions: "none" }, () => {
  compile({ seed: SEED, sources: [{ bytes }] });
});

// What patterns cost beside names: names that no pattern is about, and names that hold a text of one.
// Their lists are like real ones: a word and a wildcard, an open end, some expressions.
const words = Array.from({ length: 5_000 }, () => prng.next().toString(36).slice(0, 6));
const hosts = ["vercel.app", "pages.dev", "weebly.com", "amazonaws.com"];
const patternOf = (i: number) => {
  const [word, other] = [words[i], words[(i * 7 + 1) % words.length]];
  if (i % 10 < 5) return `||${word}-*.${hosts[i % hosts.length]}^`;
  if (i % 10 < 9) return i % 2 === 0 ? `|${word}.` : `||${word}${other}.`;
  return `/^${word}[0-9]+\\.(com|net)$/`;
};
const ASKED = new URL("../../../shared/lists/umbrella-top-100k.names.gz", import.meta.url);
const top = ignore
  ? []
  : new TextDecoder().decode(gunzipSync(await Deno.readFile(ASKED))).split("\n").slice(1, 20_000);
const patternBatches = {
  "names that are asked for": batchOf(() => prng.pick(top)),
  "names with a pattern's text": batchOf(() => `${prng.pick(words)}.example.net`),
};
for (const [kind, batch] of Object.entries(patternBatches)) {
  for (const count of [0, 1_000, 5_000]) {
    const text = Array.from({ length: count }, (_, i) => patternOf(i)).join("\n");
    const list = new TextEncoder().encode(`||ads.example^\n${text}`);
    const one = new Matcher(compile({ seed: SEED, sources: [{ bytes: list }] }).rules);
    const group = `patterns: ${kind}`;
    const bench = { group, ignore, baseline: count === 0, permissions: "none" } as const;
    Deno.bench(`Matcher.match(): ${count} patterns, ${kind}`, bench, () => {
      for (let at = 0; at < batch.packet.length;) {
        at = hashed.read(batch.packet, at, batch.packet.length, SEED);
        one.match(batch.packet, hashed, sources);
      }
    });
  }
}
