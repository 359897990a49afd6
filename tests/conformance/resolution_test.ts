// Goal: the specification's "DNS transports and resolution" 9 to 11 hold: the cache, the service's own
// names, rebinding protection. Method: one running service and an upstream that answers from a table
// and remembers what it was asked.

import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask, lookUp } from "../e2e/clients.ts";
import { byRule, FilterBench, NULL_A, PLAIN } from "../e2e/filter_bench.ts";
import { hasProgram, PERMISSIONS } from "../e2e/harness.ts";
import { negative, recordOf, type Zone } from "../e2e/zone.ts";

const PRIVATE = {
  A: ("10.0.0.1 172.16.0.1 172.31.255.1 192.168.0.1 100.64.0.1 169.254.1.1 127.0.0.1 127.1.2.3 " +
    "0.0.0.0").split(" "),
  AAAA: ("::1 :: fd00::1 fc00::1 fe80::1 64:ff9b:1::1 64:ff9b:1::192.0.2.1 ::ffff:192.168.0.1 " +
    "64:ff9b::10.0.0.1").split(" "),
};
const PUBLIC = {
  A: "9.9.9.9 172.15.0.1 172.32.0.1 192.169.0.1 11.0.0.1 198.51.100.1".split(" "),
  AAAA: "2001:db8::1 64:ff9b::c000:201".split(" "),
};
/** Names below these keep private addresses. */
const OWN = ["lan", "home.arpa", "internal", "local"];

/** Names under a domain, one for each address. */
function zoneOf(addresses: typeof PRIVATE, prefix: string, domain: string): Zone {
  return Object.fromEntries(
    (["A", "AAAA"] as const).flatMap((type) =>
      addresses[type].map((ip, i) =>
        [`${prefix}${i}.${domain} ${type}`, [`${type} ${ip}`]] as const
      )
    ),
  );
}

const ZONE: Zone = {
  ...zoneOf(PRIVATE, "p", "public.example"),
  ...zoneOf(PUBLIC, "q", "public.example"),
  ...Object.assign({}, ...OWN.map((domain) => zoneOf(PRIVATE, "p", domain))),
  "mixed.example A": ["A 192.168.1.1", "A 192.0.2.1", "A 10.1.1.1"],
  "hints.example HTTPS": [
    "HTTPS 1 . alpn=h2 ipv4hint=10.0.0.1,192.0.2.1 ipv6hint=64:ff9b:1::1,2001:db8::1",
  ],
  "hints.example SVCB": ["SVCB 1 svc.example ipv4hint=127.0.0.1 port=53"],
  "hints.lan HTTPS": ["HTTPS 1 . ipv4hint=10.0.0.1"],
};
const SPECIAL = {
  "gone.example": negative(Rcode.NXDomain, 60),
  "empty.example": negative(Rcode.NoError, 60),
  "long.example": { answers: [recordOf("A 192.0.2.1", "long.example", 864_000)] },
  "short.example": { answers: [recordOf("A 192.0.2.1", "short.example", 1)] },
};
const OPTIONS = { permissions: PERMISSIONS, ignore: !hasProgram("dig") } as const;

Deno.test("DNS transports and resolution, 9: the cache", OPTIONS, async (t) => {
  await using bench = await FilterBench.start({
    zone: ZONE,
    special: SPECIAL,
    config: { cache: { min_ttl: 30, max_ttl: 3_600, negative_max_ttl: 20 } },
  });
  const { api, service, upstream } = bench;
  await t.step("answers are held, their TTL clamped", async () => {
    for (const [name, ttl] of [["long.example", 3_600], ["short.example", 30]] as const) {
      const totals: number[] = [];
      for (let i = 0; i < 3; i++) {
        const { answers } = await ask(service.address, name, Qtype.A);
        assert(answers[0].ttl <= ttl && answers[0].ttl > ttl - 10, `${name} ${answers[0].ttl}`);
        totals.push(await upstream.total(name));
      }
      assert.equal(totals[2], totals[0]);
    }
  });
  await t.step("negative answers are held", async () => {
    for (const [name, rcode] of [["gone.example", "NXDOMAIN"], ["empty.example", "NOERROR"]]) {
      const totals: number[] = [];
      for (let i = 0; i < 3; i++) {
        assert.match(await bench.ask(name), new RegExp(`^${rcode}; SOA`));
        totals.push(await upstream.total(name));
        const { authorities } = await ask(service.address, name, Qtype.A);
        assert(authorities[0].ttl <= 20, `${authorities[0].ttl}`);
        totals.push(await upstream.total(name));
      }
      assert.equal(totals.at(-1), totals[0]);
    }
  });
  await t.step("POST cache/flush empties it; filter and records stay", async () => {
    await bench.rules("||ads.example^");
    await api.create("records", { name: "own.example", type: "A", value: "192.0.2.7" });
    const rows = [
      ["ads.example", `${NULL_A}; ${byRule("||ads.example^")}`],
      ["own.example", "NOERROR; A 192.0.2.7"],
    ] as const;
    await bench.check(rows);
    assert.equal(await api.call("POST", "cache/flush"), null);
    await bench.check(rows);
    const before = await upstream.total("long.example");
    await ask(service.address, "long.example", Qtype.A);
    assert(await upstream.total("long.example") > before);
    for (const name of ["ads.example", "own.example"]) assert.equal(await upstream.total(name), 0);
  });
  service.assertCalm();
});

Deno.test("DNS transports and resolution, 10: the service's own names", OPTIONS, async (t) => {
  await using bench = await FilterBench.start();
  await t.step("health.svc.test answers its addresses", () =>
    bench.check([
      ["health.svc.test A", "NOERROR; A 127.0.0.1"],
      ["health.svc.test AAAA", "NOERROR; AAAA ::1"],
      ["HEALTH.SVC.TEST", "NOERROR; A 127.0.0.1"],
    ]));
  await t.step("nothing below svc.test is forwarded", async () => {
    for (const name of ["svc.test", "x.svc.test", "a.b.leak.svc.test", "health.svc.test"]) {
      for (const type of ["A", "AAAA", "TXT", "NS", "SOA", "HTTPS"]) {
        await bench.ask(`${name} ${type}`);
      }
      assert.equal(bench.wasAsked(name), false, name);
    }
    await bench.check([["xsvc.test", PLAIN], ["svc.test.example", PLAIN]]);
    assert.equal(bench.wasAsked("xsvc.test"), true);
  });
  await t.step("health.svc.test is left out of the query log", async () => {
    const { entries } = await bench.api.call("GET", "querylog?name=health.svc.test");
    assert.deepEqual(entries, []);
  });
  bench.service.assertCalm();
});

Deno.test("DNS transports and resolution, 11: rebinding protection", OPTIONS, async (t) => {
  await using bench = await FilterBench.start({ zone: ZONE });
  const rows = (addresses: typeof PRIVATE, prefix: string, domain: string, keeps: boolean) =>
    (["A", "AAAA"] as const).flatMap((type) =>
      addresses[type].map((ip, i) =>
        [
          `${prefix}${i}.${domain} ${type}`,
          keeps ? `NOERROR; ${type} ${inText(ip)}` : "NOERROR",
        ] as const
      )
    );
  await t.step(
    "public names lose private, loopback and link-local addresses",
    () => bench.check(rows(PRIVATE, "p", "public.example", false)),
  );
  await t.step("they keep public ones", async () => {
    await bench.check(rows(PUBLIC, "q", "public.example", true));
    await bench.check([["mixed.example", "NOERROR; A 192.0.2.1"]]);
  });
  for (const domain of OWN) {
    await t.step(
      `names below ${domain} keep all`,
      () => bench.check(rows(PRIVATE, "p", domain, true)),
    );
  }
  await t.step("hints of SVCB and HTTPS are stripped the same way", async () => {
    const dig = async (question: string) =>
      (await lookUp("dig", bench.service.address, `+short ${question}`)).trim();
    assert.equal(
      await dig("hints.example HTTPS"),
      '1 . alpn="h2" ipv4hint=192.0.2.1 ipv6hint=2001:db8::1',
    );
    assert.equal(await dig("hints.example SVCB"), "1 svc.example. port=53");
    assert.equal(await dig("hints.lan HTTPS"), "1 . ipv4hint=10.0.0.1");
  });
  bench.service.assertCalm();
});

/** An address as the decoder of answers writes it. */
function inText(ip: string): string {
  return {
    "64:ff9b:1::192.0.2.1": "64:ff9b:1::c000:201",
    "64:ff9b::10.0.0.1": "64:ff9b::a00:1",
  }[ip] ??
    ip;
}
