// Goal: clients get what rules, safe search and rebinding protection leave of an answer, in every form
// and for each group. Method: the running service between dig, as two clients, and an upstream that
// answers from a table; changes are made over the API.

import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { lookUp } from "./clients.ts";
import { address, answer, FakeUpstream, type Seen } from "./fake_upstream.ts";
import { type ConfigText, hasProgram, PERMISSIONS, Service } from "./harness.ts";
import { recordOf } from "./zone.ts";

const OPTIONS = { permissions: PERMISSIONS, ignore: !hasProgram("dig") } as const;
const [ONE, TWO] = ["127.0.0.1", "127.0.0.2"];

/** What the upstream answers, by name and type: `type data` of each record, names in front of some. */
const ZONE: Readonly<Record<string, readonly string[]>> = {
  "uncloak.example A": ["CNAME x.tracker.test", "x.tracker.test A 192.0.2.1"],
  "uncloak.example AAAA": ["CNAME x.tracker.test", "x.tracker.test AAAA 2001:db8::1"],
  "uncloak.example HTTPS": ["CNAME x.tracker.test", "x.tracker.test HTTPS 1 . alpn=h2"],
  "adult.example A": ["CNAME adult.test", "adult.test A 192.0.2.1"],
  "fine.example A": ["CNAME fine.test", "fine.test A 192.0.2.1"],
  "allowed.example A": ["CNAME x.tracker.test", "x.tracker.test A 192.0.2.1"],
  "address.example A": ["A 192.0.2.1", "A 198.51.100.66"],
  "protected.example A": ["A 198.51.100.67"],
  "address.example AAAA": ["AAAA 2001:db8::66"],
  "hints.example HTTPS": ["HTTPS 1 . alpn=h2 ipv4hint=198.51.100.66"],
  "mixed.public.example A": ["A 192.168.1.1", "A 192.0.2.1"],
  "hints.public.example HTTPS": [
    "HTTPS 1 . mandatory=ipv4hint alpn=h2 ipv4hint=10.0.0.1 ipv6hint=2001:db8::1,fd00::1",
  ],
};
const PRIVATE = {
  A: "10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 169.254.1.1 127.0.0.1 0.0.0.0".split(" "),
  AAAA: ("fd00::1 fe80::1 ::1 :: ::ffff:10.0.0.1 64:ff9b::192.168.0.1 64:ff9b:1::192.0.2.1")
    .split(" "),
};

function script(query: Seen) {
  const name = query.name.toLowerCase();
  const typeName = query.type === Qtype.AAAA ? "AAAA" : query.type === Qtype.A ? "A" : "HTTPS";
  if (name === "error.example") return answer(query, { answers: [], ede: 17 });
  // The first label says which private address.
  const index = /^p(\d+)\./.exec(name)?.[1];
  const lines = index !== undefined && typeName !== "HTTPS"
    ? [`${typeName} ${PRIVATE[typeName][Number(index)]}`]
    : ZONE[`${name} ${typeName}`];
  if (lines !== undefined) {
    return answer(query, { answers: lines.map((line) => recordOf(line, query.name)) });
  }
  if (query.type !== Qtype.HTTPS) return address(query, "198.51.100.1");
  return answer(query, { answers: [recordOf("HTTPS 1 . alpn=h3", query.name)] });
}

/** A service whose two clients are in the default group and in one of their own. */
async function start(upstream: FakeUpstream, config: ConfigText = {}) {
  const service = await Service.start({
    config: { upstream: [{ address: upstream.text }], ...config },
  });
  return { service, api: await Api.of(service) };
}

/** What dig tells: response code, extended error, answers and authorities in short. */
async function dig(service: Service, question: string, from: string = ONE): Promise<string> {
  const text = await lookUp(
    "dig",
    service.address,
    `-b ${from} +noall +comments +answer +authority ${question}`,
  );
  const status = /status: (\w+)/.exec(text)?.[1] ?? assert.fail(text);
  const ede = /^; EDE: (\d+).*?(?:: \((.*)\))?$/m.exec(text);
  const records = text.split("\n").filter((line) => line !== "" && !line.startsWith(";"))
    .map((line) => {
      const [, ttl, , type, ...data] = line.split(/\s+/);
      return type === "SOA" ? `SOA ${ttl} ${data.at(-1)}` : `${type} ${data.join(" ")}`;
    });
  const parts = [status, ...records];
  if (ede !== null) parts.push(`EDE ${ede[1]}${ede[2] === undefined ? "" : ` ${ede[2]}`}`);
  return parts.join("; ");
}

async function check(
  t: Deno.TestContext,
  service: Service,
  rows: readonly (readonly [question: string, want: string, from?: string])[],
): Promise<void> {
  for (const [question, want, from = ONE] of rows) {
    await t.step(`${question} from ${from}`, async () => {
      assert.equal(await dig(service, question, from), want);
    });
  }
}

Deno.test("svc run answers blocked and rewritten names in every form", OPTIONS, async (t) => {
  await using upstream = await FakeUpstream.start(script);
  const rules = [
    ...["||ads.example^", "||one.example^$dnsrewrite=192.0.2.10", "192.0.2.20 nas.example"],
    ...["||six.example^$dnsrewrite=2001:db8::10", "||gone.example^$dnsrewrite=NXDOMAIN"],
    ...["||no.example^$dnsrewrite=REFUSED", "||empty.example^$dnsrewrite=NOERROR"],
    ...["192.0.2.21 nas.example", "2001:db8::20 nas.example"],
  ];
  const { service, api } = await start(upstream, { filter: { rules } });
  await using _ = service;
  const ede = "EDE 15 ||ads.example^ (custom rules)";
  const blocked = (wants: readonly [a: string, aaaa: string, other: string]) =>
    ["A", "AAAA", "TXT"].map((type, i) =>
      [`www.ads.example ${type}`, `${wants[i]}; ${ede}`] as const
    );
  const negative = (rcode: string, ttl: number) => `${rcode}; SOA ${ttl} ${ttl}`;
  const forms = [
    [{ block_response: "null_ip" }, [
      "NOERROR; A 0.0.0.0",
      "NOERROR; AAAA ::",
      negative("NOERROR", 10),
    ]],
    [{ block_response: "nxdomain", block_ttl: 33 }, [
      negative("NXDOMAIN", 33),
      negative("NXDOMAIN", 33),
      negative("NXDOMAIN", 33),
    ]],
    [{ block_response: "refused" }, ["REFUSED", "REFUSED", "REFUSED"]],
    [{ block_response: "custom_ip", blocking_ipv4: "192.0.2.99", block_ttl: 10 }, [
      "NOERROR; A 192.0.2.99",
      "NOERROR; AAAA ::",
      negative("NOERROR", 10),
    ]],
    [{ block_response: "custom_ip", blocking_ipv6: "2001:db8::99" }, [
      "NOERROR; A 192.0.2.99",
      "NOERROR; AAAA 2001:db8::99",
      negative("NOERROR", 10),
    ]],
  ] as const;
  for (const [settings, wants] of forms) {
    await api.set(settings);
    await t.step(JSON.stringify(settings), (t) => check(t, service, blocked(wants)));
  }
  await check(t, service, [
    ["+noedns www.ads.example AAAA", "NOERROR; AAAA 2001:db8::99"],
    ["one.example A", "NOERROR; A 192.0.2.10"],
    ["one.example AAAA", negative("NOERROR", 10)],
    ["below.one.example A", "NOERROR; A 192.0.2.10"],
    ["six.example AAAA", "NOERROR; AAAA 2001:db8::10"],
    ["gone.example A", negative("NXDOMAIN", 10)],
    ["no.example A", "REFUSED"],
    ["empty.example A", negative("NOERROR", 10)],
    ["nas.example A", "NOERROR; A 192.0.2.20; A 192.0.2.21"],
    ["nas.example AAAA", "NOERROR; AAAA 2001:db8::20"],
    ["nas.example MX", negative("NOERROR", 10)],
    ["below.nas.example A", "NOERROR; A 198.51.100.1"],
    ["error.example A", "NOERROR; EDE 17"],
    ["error.example A", "NOERROR; EDE 17"],
  ]);
  service.assertCalm();
});

Deno.test("svc run blocks answers by what they hold, for each group", OPTIONS, async (t) => {
  await using upstream = await FakeUpstream.start(script);
  const rules = [
    ...["||tracker.test^", "@@||allowed.example^", "|198.51.100.66", "|2001:db8::66"],
    ...["|198.51.100.67", "@@|198.51.100.67"],
  ];
  const { service, api } = await start(upstream, { filter: { rules } });
  await using _ = service;
  const group = await api.create("groups", { name: "free", filtering: false });
  await api.create("clients", { name: "two", addresses: [TWO], group });
  const chain = "EDE 15 ||tracker.test^ (custom rules)";
  const free = "NOERROR; CNAME x.tracker.test.; A 192.0.2.1";
  const asked: number[] = [];
  for (const round of ["fresh", "cached"]) {
    await t.step(round, (t) =>
      check(t, service, [
        ["uncloak.example A", `NOERROR; A 0.0.0.0; ${chain}`],
        ["uncloak.example AAAA", `NOERROR; AAAA ::; ${chain}`],
        ["uncloak.example HTTPS", `NOERROR; SOA 10 10; ${chain}`],
        ["uncloak.example A", free, TWO],
        ["allowed.example A", free],
        ["fine.example A", "NOERROR; CNAME fine.test.; A 192.0.2.1"],
        ["address.example A", "NOERROR; A 0.0.0.0; EDE 15 |198.51.100.66 (custom rules)"],
        ["address.example A", "NOERROR; A 192.0.2.1; A 198.51.100.66", TWO],
        ["address.example AAAA", "NOERROR; AAAA ::; EDE 15 |2001:db8::66 (custom rules)"],
        ["protected.example A", "NOERROR; A 198.51.100.67"],
        ["hints.example HTTPS", "NOERROR; SOA 10 10; EDE 15 |198.51.100.66 (custom rules)"],
        ["+tcp uncloak.example A", `NOERROR; A 0.0.0.0; ${chain}`],
      ]));
    asked.push(await upstream.total("uncloak.example"));
  }
  assert.equal(asked[1], asked[0], "asked for once, and kept as it came");
  const fine = await upstream.total("fine.example");
  await api.create("rules", { rule: "||adult.test^" });
  await t.step("a rule that comes later holds for what is cached", (t) =>
    check(t, service, [
      ["adult.example A", "NOERROR; A 0.0.0.0; EDE 15 ||adult.test^ (custom rules)"],
      ["fine.example A", "NOERROR; CNAME fine.test.; A 192.0.2.1"],
    ]));
  await api.create("rules", { rule: "||fine.test^" });
  await check(t, service, [[
    "fine.example A",
    "NOERROR; A 0.0.0.0; EDE 15 ||fine.test^ (custom rules)",
  ]]);
  assert.equal(await upstream.total("fine.example"), fine);
  service.assertCalm();
});

Deno.test("svc run keeps private addresses out of answers for public names", OPTIONS, async (t) => {
  await using upstream = await FakeUpstream.start(script);
  await using corporate = await FakeUpstream.start(script);
  const upstreams = [
    { address: upstream.text },
    { address: corporate.text, domains: ["corp.example"] },
  ];
  const security = { rebinding_exempt: ["trusted.example"] };
  const { service } = await start(upstream, { upstream: upstreams, security });
  await using _ = service;
  const names = ["lan", "home.arpa", "internal", "local", "trusted.example", "corp.example"];
  const rows = (["A", "AAAA"] as const).flatMap((type) =>
    PRIVATE[type].flatMap((_, i) => [[`p${i}.public.example ${type}`, "NOERROR"] as const])
  );
  await check(t, service, rows);
  await t.step("names of one's own network keep them", (t) =>
    check(
      t,
      service,
      names.flatMap((name, i) => [
        [`p${i}.${name} A`, `NOERROR; A ${PRIVATE.A[i]}`] as const,
        [`p0.${name} AAAA`, "NOERROR; AAAA fd00::1"] as const,
      ]),
    ));
  const asked: number[] = [];
  for (const round of ["fresh", "cached"]) {
    await t.step(round, (t) =>
      check(t, service, [
        ["mixed.public.example A", "NOERROR; A 192.0.2.1"],
        ["hints.public.example HTTPS", 'NOERROR; HTTPS 1 . alpn="h2" ipv6hint=2001:db8::1'],
      ]));
    asked.push(await upstream.total("mixed.public.example"));
  }
  assert.equal(asked[1], asked[0], "asked for once");
  service.assertCalm();
  const off = await start(upstream, { security: { rebinding_protection: false } });
  await using _off = off.service;
  assert.equal(await dig(off.service, "p2.public.example A"), "NOERROR; A 192.168.0.1");
});

/** One host of each engine, and where it is led. */
const ENGINES = [
  ["www.google.com", "forcesafesearch.google.com"],
  ["www.google.co.uk", "forcesafesearch.google.com"],
  ["www.youtube.com", "restrict.youtube.com"],
  ["www.bing.com", "strict.bing.com"],
  ["duckduckgo.com", "safe.duckduckgo.com"],
  ["www.ecosia.org", "strict-safe-search.ecosia.org"],
  ["pixabay.com", "safesearch.pixabay.com"],
] as const;

Deno.test(
  "svc run searches safely and keeps clients that look for a way around",
  OPTIONS,
  async (t) => {
    await using upstream = await FakeUpstream.start(script);
    const { service, api } = await start(upstream);
    await using _ = service;
    const group = await api.create("groups", { name: "kids", safe_search: true });
    await api.create("clients", { name: "two", addresses: [TWO], group });
    for (const [host, safe] of ENGINES) {
      await t.step(host, (t) =>
        check(t, service, [
          [`${host} A`, `NOERROR; CNAME ${safe}.; A 198.51.100.1`, TWO],
          [`${host} AAAA`, `NOERROR; CNAME ${safe}.; AAAA 2001:db8::1`, TWO],
          [`${host} HTTPS`, `NOERROR; CNAME ${safe}.; HTTPS 1 . alpn="h3"`, TWO],
          [`${host} A`, "NOERROR; A 198.51.100.1"],
          [`+tcp ${host} A`, `NOERROR; CNAME ${safe}.; A 198.51.100.1`, TWO],
        ]));
    }
    await check(t, service, [
      ["yandex.ru A", "NOERROR; A 213.180.193.56", TWO],
      ["yandex.ru AAAA", "NOERROR; SOA 10 10", TWO],
      ["www.ya.ru HTTPS", "NOERROR; SOA 10 10", TWO],
      ["yandex.ru A", "NOERROR; A 198.51.100.1"],
      ["mail.yandex.ru A", "NOERROR; A 198.51.100.1", TWO],
    ]);
    await check(t, service, [
      ["use-application-dns.net A", "NXDOMAIN; SOA 10 10"],
      ["use-application-dns.net AAAA", "NXDOMAIN; SOA 10 10"],
      ["mask.icloud.com A", "NXDOMAIN; SOA 10 10"],
      ["mask-h2.icloud.com HTTPS", "NXDOMAIN; SOA 10 10"],
      ["_dns.resolver.arpa SVCB", "NOERROR; SOA 10 10"],
      ["a._dns.resolver.arpa SVCB", "NOERROR; SOA 10 10"],
    ]);
    const asked = upstream.seen.map(({ name }) => name.toLowerCase());
    assert(!asked.some((name) => /application-dns|mask|arpa/.test(name)), asked.join());
    await api.create("records", { name: "mask.icloud.com", type: "A", value: "192.0.2.5" });
    await check(t, service, [["mask.icloud.com A", "NOERROR; A 192.0.2.5"]]);
    service.assertCalm();
  },
);
