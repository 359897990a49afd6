/** What it takes to know who asks, among the clients of a large office. */
import { parseIp } from "../../src/addr/mod.ts";
import { type FakePolicy, policyData } from "../../src/snapshot/fakes.ts";
import { Snapshot } from "../../src/snapshot/mod.ts";
import { Prng } from "../../tests/prng.ts";
import { BenchError } from "./bench_error.ts";

/** Clients and groups of a large office; the default group is beside them. */
export const CLIENTS = 10_000;
export const GROUPS = 1_000;

const SEED = 0x5eed;
/** Queries in a row, each of another client: beyond what processor caches hold. */
const BATCH = 100_000;
/** Batches until V8 has compiled the way of a query for speed. */
const WARM_BATCHES = 3;

/** The addresses of a client: networks of every kind of length, none of them the loopback's. */
export function addressesOf(client: number): [string, string, string] {
  const third = client & 255;
  const second = client >> 8;
  return [
    `10.${second}.${third}.7`,
    `10.${64 + second}.${third}.0/24`,
    `2001:db8:${client.toString(16)}::/48`,
  ];
}

/**
 * Nanoseconds that finding the client and the group of a query takes longer among all clients than
 * where there is none: a figure a round. A third are clients by their address, a third by their
 * network, a third are no one's.
 *
 * @throws {BenchError} When one was found who is none, or missed.
 */
export function timeIdentification(rounds: number): number[] {
  const some = new Snapshot(policyData(office(), SEED), 0);
  const none = new Snapshot(policyData({}, SEED), 0);
  const prng = new Prng(SEED);
  const bytes = new Uint8Array(4 * BATCH);
  for (let i = 0; i < BATCH; i++) bytes.set(askerOf(prng.int(CLIENTS), i % 3), 4 * i);
  const known = Math.ceil(BATCH / 3) + Math.ceil((BATCH - 1) / 3);
  const run = (snapshot: Snapshot, wanted: number) => {
    const startedMs = performance.now();
    const found = countKnown(snapshot, bytes);
    const tookNs = (performance.now() - startedMs) * 1e6 / BATCH;
    if (found !== wanted) throw new BenchError(`clients: ${found} are found, not ${wanted}`);
    return tookNs;
  };
  const added = () => run(some, known) - run(none, 0);
  for (let i = 0; i < WARM_BATCHES; i++) added();
  return Array.from({ length: rounds }, added);
}

function office(): FakePolicy {
  const groups = Array.from({ length: GROUPS }, (_, i) => [`group ${i}`, {}] as const);
  const clients = Array.from({ length: CLIENTS }, (_, i) => {
    const client = { addresses: addressesOf(i), group: `group ${i % GROUPS}` };
    return [`client ${i}`, client] as const;
  });
  return { groups: Object.fromEntries(groups), clients: Object.fromEntries(clients) };
}

/** An address of a client itself, in its network, or beside both. */
function askerOf(client: number, kind: number): Uint8Array {
  const [own, network] = addressesOf(client);
  const text = kind === 0 ? own : network.replace("0/24", "77");
  const ip = parseIp(text);
  if (ip === null) throw new BenchError(`clients: ${text} is no address`);
  if (kind === 2) ip[0] = 11;
  return ip;
}

function countKnown(snapshot: Snapshot, bytes: Uint8Array): number {
  let known = 0;
  for (let at = 0; at < bytes.length; at += 4) {
    if (snapshot.groupOf(snapshot.clientOf(bytes, at, 4, null)) > 0) known++;
  }
  return known;
}
