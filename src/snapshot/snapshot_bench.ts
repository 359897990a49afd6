// What it takes to know who asks, and to make a change of it hold, with ten thousand clients in a
// thousand groups. An iteration of the first group identifies BATCH clients.

import { parseIp } from "../addr/mod.ts";
import { Prng } from "../../tests/prng.ts";
import { baseOf, customRulesOf, type FakePolicy, policyState } from "./fakes.ts";
import { OverlayCompiler, Snapshot } from "./mod.ts";

const SEED = 0x5eed;
const CLIENTS = 10_000;
const GROUPS = 1_000;
const BATCH = 1_000;
const prng = new Prng(SEED);

const groups = Object.fromEntries(
  Array.from({ length: GROUPS }, (_, i) => [`group ${i}`, { lists: ["ads"] }]),
);
/** Single addresses, small networks and IPv6, as a large site has them. */
const addresses = Array.from({ length: CLIENTS }, (_, i) => {
  const [a, b] = [i >> 8, i & 255];
  if (i % 10 === 0) return `10.${a}.${b}.0/24`;
  return i % 3 === 0 ? `2001:db8:${a}:${b}::/64` : `10.${a}.${b}.9`;
});
const POLICY: FakePolicy = {
  lists: { ads: "||ads.example^\n" },
  rules: Array.from({ length: 100 }, (_, i) => `||custom${i}.example^`),
  groups,
  clients: Object.fromEntries(
    addresses.map((address, i) => [`client ${i}`, {
      addresses: [address],
      group: `group ${i % GROUPS}`,
    }]),
  ),
};
const state = policyState(POLICY);
const base = baseOf(POLICY, SEED);
const custom = customRulesOf(state, base, SEED);
const compileAll = () => new OverlayCompiler(SEED).compile(state, base, custom);
const compiler = new OverlayCompiler(SEED);
const compileKnown = () => compiler.compile(state, base, custom);
const overlay = compileAll();
const data = { generation: 1, rules: base.rules, overlay, pausedUntilMs: 0 };
const snapshot = new Snapshot(data, 0);

/** Addresses one behind the other, of one family. */
function batchOf(length: 4 | 16): Uint8Array {
  const known = addresses.map((text) => parseIp(text.split("/")[0])!).filter((ip) =>
    ip.length === length
  );
  const bytes = new Uint8Array(BATCH * length);
  for (let i = 0; i < BATCH; i++) bytes.set(prng.pick(known), i * length);
  // Some are of nobody.
  for (let i = 0; i < BATCH; i += 5) bytes[i * length] ^= 1;
  return bytes;
}

let sink = 0;
function identify(bytes: Uint8Array, length: 4 | 16): void {
  for (let at = 0; at < bytes.length; at += length) {
    sink += snapshot.groupOf(snapshot.clientAt(bytes, at, length));
  }
}

const [four, six] = [batchOf(4), batchOf(16)];
const loopback = Uint8Array.from({ length: BATCH * 4 }, (_, i) => [127, 0, 0, 1][i & 3]);
const who = { group: `identify ${BATCH} clients of ${CLIENTS}`, permissions: "none" } as const;
Deno.bench("read each address", { ...who, baseline: true }, () => {
  for (let i = 0; i < four.length; i++) sink += four[i];
});
Deno.bench("IPv4, at random", who, () => identify(four, 4));
Deno.bench("IPv6, at random", who, () => identify(six, 16));
Deno.bench("loopback", who, () => identify(loopback, 4));

const change = { group: "make a change hold", permissions: "none" } as const;
Deno.bench("copy the overlay's memory", { ...change, baseline: true }, () => {
  sink += new Uint8Array(overlay.clients.ids.memory).slice().length;
});
Deno.bench(
  "compile the overlay",
  change,
  () => void (sink += compileAll().groups.memory.byteLength),
);
Deno.bench("compile what is not about clients", change, () => {
  sink += compileKnown().groups.memory.byteLength;
});
Deno.bench("take it in a dns isolate", change, () => {
  sink += new Snapshot(data, 0).generation;
});
