import assert from "node:assert/strict";
import { formatIp, parseIp } from "../../addr/mod.ts";
import type { Found } from "../../resolver/mod.ts";
import { Bootstrap } from "./bootstrap.ts";
import type { DnsUpstream } from "../messages.ts";

const none = { permissions: "none" } as const;
const NAMED: DnsUpstream = {
  transport: "tls",
  address: "tls://dns.example",
  timeoutMs: 2_000,
  domains: [],
  host: "dns.example",
  serverName: "dns.example",
  port: 853,
  path: "",
  ca: null,
  ips: [],
};
const PLAIN: DnsUpstream = {
  transport: "udp",
  address: "192.0.2.53",
  timeoutMs: 2_000,
  domains: [],
  endpoint: { ip: parseIp("192.0.2.53")!, port: 53 },
};
const TOLD: DnsUpstream = { ...NAMED, ips: [parseIp("192.0.2.1")!] };

const found = (...addresses: string[]): Found => ({ addresses, ttl: 300, failure: null });
const failed = (failure: string): Found => ({ addresses: [], ttl: 0, failure });

/** A bootstrap whose look-ups a test answers. */
function bench(...upstreams: DnsUpstream[]) {
  const asked: { name: string; qtype: number; done: (found: Found) => void }[] = [];
  const told: string[] = [];
  const waits: { ms: number; work: () => void }[] = [];
  const bootstrap = new Bootstrap({
    upstreams,
    after: (ms, work) => {
      const wait = { ms, work };
      waits.push(wait);
      return () => void waits.splice(waits.indexOf(wait), 1);
    },
    lookup: (name, qtype, done) => void asked.push({ name, qtype, done }),
    onAddresses: (i, ips) => void told.push(`${i}: ${ips.map((ip) => formatIp(ip)).join(" ")}`),
    onFailure: (i, reason) => void told.push(`${i} ${reason}`),
  });
  bootstrap.start();
  return { asked, told, waits, [Symbol.dispose]: () => bootstrap.close() };
}

Deno.test("Bootstrap looks up names that have no address, in both families", none, () => {
  using it = bench(PLAIN, TOLD, NAMED);
  assert.deepEqual(it.asked.map(({ name, qtype }) => [name, qtype]), [
    ["dns.example", 1],
    ["dns.example", 28],
  ]);
  it.asked[1].done(found("2001:db8::1"));
  assert.deepEqual(it.told, [], "the other family may come first in the list");
  it.asked[0].done(found("192.0.2.1", "192.0.2.2"));
  assert.deepEqual(it.told, ["2: 192.0.2.1 192.0.2.2 2001:db8::1"]);
});

Deno.test("Bootstrap is content with one family", none, () => {
  using it = bench(NAMED);
  it.asked[0].done(failed("a is unreachable"));
  it.asked[1].done(found("2001:db8::1"));
  assert.deepEqual(it.told, ["0: 2001:db8::1"]);
});

Deno.test("Bootstrap looks up again when the time of the addresses is over", none, () => {
  const rows = [
    [300, 3_600, 300_000],
    [3_600, 0, 60_000], // One that nobody may keep; as often as that it is not asked.
    [0, 0, 60_000],
    [30, 30, 60_000],
    [604_800, 604_800, 86_400_000],
  ];
  for (const [ttl, ttl6, ms] of rows) {
    using it = bench(NAMED);
    it.asked[0].done({ ...found("192.0.2.1"), ttl });
    it.asked[1].done({ ...found("2001:db8::1"), ttl: ttl6 });
    assert.deepEqual(it.waits.map((wait) => wait.ms), [ms], `${ttl} and ${ttl6}`);
  }
  // A denial says nothing about how long the other family's addresses hold.
  using it = bench(NAMED);
  it.asked[0].done({ ...found("192.0.2.1"), ttl: 0 });
  it.asked[1].done({ ...found(), ttl: 0 });
  assert.deepEqual(it.waits.map(({ ms }) => ms), [60_000]);
});

Deno.test("Bootstrap says why nobody knows, and tries again", none, () => {
  using it = bench(NAMED);
  it.asked[0].done(failed("a is unreachable"));
  it.asked[1].done(found());
  assert.deepEqual(it.told, ["0 has a name that can't be looked up: a is unreachable"]);
  const [{ ms, work }] = it.waits.splice(0);
  assert.equal(ms, 500);
  work();
  assert.equal(it.asked.length, 4, "asked again");
  it.asked[2].done(found("192.0.2.7"));
  it.asked[3].done(found());
  assert.deepEqual(it.told.slice(1), ["0: 192.0.2.7"]);
});

Deno.test("Bootstrap.close() ends it, look-ups on their way too", none, () => {
  const it = bench(NAMED);
  it[Symbol.dispose]();
  for (const { done } of it.asked) done(found("192.0.2.1"));
  assert.deepEqual(it.told, []);
});
