import assert from "node:assert/strict";
import { formatHostPort, formatIp } from "../addr/mod.ts";
import { parseConfig, type Upstream } from "./mod.ts";

const none = { permissions: "none" } as const;

function show(upstream: Upstream): string {
  if (upstream.kind === "udp") return `udp ${formatHostPort(upstream.endpoint)}`;
  const { kind, host, port, serverName } = upstream;
  const ips = upstream.ips.map((ip) => formatIp(ip)).join() || "looked up";
  const path = upstream.kind === "https" ? ` path ${upstream.path}` : "";
  return `${kind} ${host} port ${port} at ${ips} as ${serverName}${path}`;
}

const ROWS = [
  ["9.9.9.9", "udp 9.9.9.9:53"],
  ["9.9.9.9:5353", "udp 9.9.9.9:5353"],
  ["2620:fe::fe", "udp [2620:fe::fe]:53"],
  ["[2620:fe::fe]:5353", "udp [2620:fe::fe]:5353"],
  ["tls://dns.quad9.net", "tls dns.quad9.net port 853 at looked up as dns.quad9.net"],
  ["TLS://DNS.Quad9.net:8853", "tls dns.quad9.net port 8853 at looked up as dns.quad9.net"],
  ["tls://9.9.9.9#dns.quad9.net", "tls 9.9.9.9 port 853 at 9.9.9.9 as dns.quad9.net"],
  ["tls://9.9.9.9", "tls 9.9.9.9 port 853 at 9.9.9.9 as 9.9.9.9"],
  [
    "tls://[2620:FE::FE]:853#dns.quad9.net",
    "tls 2620:fe::fe port 853 at 2620:fe::fe as dns.quad9.net",
  ],
  ["quic://dns.example", "quic dns.example port 853 at looked up as dns.example"],
  ["QUIC://192.0.2.1:8853#dns.example", "quic 192.0.2.1 port 8853 at 192.0.2.1 as dns.example"],
  ["quic://[2001:db8::1]", "quic 2001:db8::1 port 853 at 2001:db8::1 as 2001:db8::1"],
  [
    "https://dns.quad9.net/dns-query",
    "https dns.quad9.net port 443 at looked up as dns.quad9.net path /dns-query",
  ],
  [
    "https://dns.example:8443/q/abc?x=1",
    "https dns.example port 8443 at looked up as dns.example path /q/abc?x=1",
  ],
  [
    "https://192.0.2.1/dns-query#dns.example",
    "https 192.0.2.1 port 443 at 192.0.2.1 as dns.example path /dns-query",
  ],
  [
    "https://[2001:db8::1]/dns-query",
    "https 2001:db8::1 port 443 at 2001:db8::1 as 2001:db8::1 path /dns-query",
  ],
] as const;

Deno.test("readUpstream() reads each form of address", none, async (t) => {
  for (const [address, want] of ROWS) {
    await t.step(address, () => {
      // Another one looks up the names of the first.
      const text = `[[upstream]]\naddress = "${address}"\n[[upstream]]\naddress = "9.9.9.9"\n`;
      const { config, problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
      assert.deepEqual(problems, []);
      assert.equal(config?.upstreams.length, 2);
      assert.equal(show(config.upstreams[0]), want);
      assert.equal(config.upstreams[0].address, address);
    });
  }
});

Deno.test("readUpstream() refuses what is no upstream", none, async (t) => {
  const bad = ["9.9.9.9:65536", "dns.example:53", "9.9.9", "tls://2620:fe::fe", "tls://a b"];
  bad.push("tls://9.9.9.9:0", "tls://9.9.9.9#", "tls://u@dns.example", "https://u:p@dns.example/q");
  bad.push("https://dns.example", "http://dns.example/dns-query", "sdns://AgcA", "tls://-.example");
  bad.push("quic://", "quic://dns.example/path", "quic://192.0.2.1:0", "quic://u@dns.example");
  for (const address of bad) {
    await t.step(address, () => {
      const text = `[[upstream]]\naddress = "${address}"\n`;
      const { config, problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
      assert.equal(config, null);
      assert.deepEqual(problems.map(({ key, line }) => [key, line]), [["upstream[0].address", 2]]);
    });
  }
});

/** Keys of `[forwarding]`, and what is wrong with them. */
const FORWARDING = [
  ['strategy = "fastest"', []],
  ['strategy = "parallel"\nparallel_max = 5', []],
  ['strategy = "quickest"', [["forwarding.strategy", "error", 2]]],
  ['strategy = "parallel"\nparallel_max = 6', [["forwarding.parallel_max", "error", 3]]],
  ['strategy = "fastest"\nparallel_max = 2', [["forwarding.parallel_max", "note", 3]]],
  ['stratgey = "order"', [["forwarding.stratgey", "error", 2]]],
] as const;

Deno.test("readForwarding() names the place of what is wrong", none, async (t) => {
  for (const [keys, want] of FORWARDING) {
    await t.step(keys, () => {
      const text = `[forwarding]\n${keys}\n`;
      const { problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
      assert.deepEqual(problems.map(({ key, severity, line }) => [key, severity, line]), want);
    });
  }
});

/** Values of `client_subnet`, and what is wrong with them. */
const SUBNETS = [
  ["off", null],
  ["client", null],
  ["192.0.2.0/24", null],
  ["2001:db8::/56", null],
  ["192.0.2.0/25", /tells too much: give it 24 bits or fewer/],
  ["2001:db8::/64", /tells too much: give it 56 bits or fewer/],
  ["192.168.1.0/24", /a private network, which is never told/],
  ["on", /neither "off" nor "client" nor a network/],
  ["192.0.2.1/24", /has host bits set: write "192\.0\.2\.0\/24"/],
] as const;

Deno.test("readUpstream() bounds what is told of clients", none, async (t) => {
  for (const [value, want] of SUBNETS) {
    await t.step(value, () => {
      const text = `[[upstream]]\naddress = "9.9.9.9"\nclient_subnet = "${value}"\n`;
      const { problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
      assert.deepEqual(
        problems.map(({ key }) => key),
        want === null ? [] : [
          "upstream[0].client_subnet",
        ],
      );
      if (want !== null) assert.match(problems[0].message, want);
    });
  }
});

/** Keys of `[dns64]`, and what is wrong with them. */
const DNS64 = [
  ["enabled = true", null],
  ['prefix = "2001:db8::/32"', null],
  ['prefix = "10.0.0.0/8"', /"10\.0\.0\.0\/8", not an IPv6 network/],
  ['prefix = "2001:db8::/33"', /has 33 bits: give the prefix 32, 40, 48, 56, 64 or 96/],
  ['prefix = "2001:db8:0:0:ff00::/96"', /bits 64 to 71 set/],
  ['exclude = ["192.0.2.0/24"]', /not an IPv6 network/],
] as const;

Deno.test("readDns64() takes the prefixes of RFC 6052", none, async (t) => {
  for (const [keys, want] of DNS64) {
    await t.step(keys, () => {
      const text = `[dns64]\n${keys}\n`;
      const { problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
      assert.equal(problems.length, want === null ? 0 : 1);
      if (want !== null) assert.match(problems[0].message, want);
    });
  }
});

/** Upstreams by address, each with further keys; which of them nobody can look up. */
const NAMED = [
  [['"tls://dns.example"'], [0]],
  [['"tls://dns.example"\nbootstrap = ["192.0.2.1"]'], []],
  [['"tls://192.0.2.1#dns.example"'], []],
  [['"tls://dns.example"', '"https://doh.example/dns-query"'], [0, 1]],
  [['"tls://dns.example"', '"https://192.0.2.1/dns-query"'], []],
  [['"tls://dns.example"', '"tls://dot.example"\nbootstrap = ["192.0.2.1"]'], []],
  [['"tls://dns.example"', '"192.0.2.1"\ndomains = ["corp.test"]'], [0]],
  [['"tls://dns.example"', '"192.0.2.1"\ndomains = ["example"]'], []],
  // Names at or below example are asked of itself alone.
  [['"tls://dns.example"\ndomains = ["example"]', '"192.0.2.1"'], [0]],
  [['"tls://dns.example"\ndomains = ["corp.test"]', '"192.0.2.1"'], []],
] as const;

Deno.test("checkNames() reports names that no other upstream can look up", none, async (t) => {
  for (const [upstreams, want] of NAMED) {
    const text = upstreams.map((keys) => `[[upstream]]\naddress = ${keys}\n`).join("");
    await t.step(text, () => {
      const { config, problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
      assert.ok(config !== null, "the service starts all the same");
      assert.deepEqual(
        problems.map(({ key, severity }) => [key, severity]),
        want.map((index) => [`upstream[${index}].address`, "check"]),
      );
      for (const { message } of problems) assert.match(message, /write its addresses in bootstrap/);
    });
  }
});

Deno.test("recursion ignores upstreams without domains, and says so", none, () => {
  const text = '[recursion]\nenabled = true\n[[upstream]]\naddress = "tls://dns.example"\n' +
    '[[upstream]]\naddress = "192.0.2.1"\ndomains = ["corp.example"]\n';
  const { config, problems } = parseConfig(text, { file: "svc.toml", directory: "/etc/svc" });
  assert.notEqual(config, null);
  assert.deepEqual(problems.map(({ key, severity, message }) => [key, severity, message]), [[
    "upstream[0].address",
    "note",
    "is not asked, for recursion is enabled and this upstream has no domains: leave it out, or give " +
    "it the names that are to be asked there",
  ]]);
});
