// How long a verdict takes with a million names: against a Set of strings, asked for each parent of
// the name. `ask` is one pass over BATCH names; divide by BATCH for the time a name takes.

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
const matcher = new Matcher(compile({ seed: SEED, sources: [{ bytes }] }).snapshot);
const group = new Uint32Array([1]);
const prng = new Prng(SEED);

/** A batch of names one after the other in a packet, as texts and hashed. */
function batchOf(make: () => string) {
  const names = Array.from({ length: ignore ? 0 : BATCH }, make);
  const wires = names.map(wireName);
  const packet = new Uint8Array(wires.reduce((sum, wire) => sum + wire.length, 0));
  const hashed: HashedName[] = [];
  let at = 0;
  for (const wire of wires) {
    packet.set(wire, at);
    const name = new HashedName();
    name.read(packet, at, at + wire.length, SEED);
    hashed.push(name);
    at += wire.length;
  }
  return { names, packet, hashed };
}

function askSet(names: readonly string[]): number {
  let hits = 0;
  for (const name of names) {
    for (let rest = name;;) {
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

function askMatcher({ packet, hashed }: ReturnType<typeof batchOf>): number {
  let hits = 0;
  for (const name of hashed) if (matcher.match(packet, name, group) !== NO_RULE) hits++;
  return hits;
}

const label = () => prng.next().toString(36);
const batches = {
  "a miss of five labels": batchOf(() => `${label()}.${label()}.${label()}.${label()}.test`),
  "a hit": batchOf(() => prng.pick(listed)),
};
for (const [group, batch] of Object.entries(batches)) {
  Deno.bench(`Set of strings: ${group}`, {
    group,
    ignore,
    baseline: true,
    permissions: "none",
  }, () => void askSet(batch.names));
  Deno.bench(`Matcher.match(): ${group}`, {
    group,
    ignore,
    permissions: "none",
  }, () => void askMatcher(batch));
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
