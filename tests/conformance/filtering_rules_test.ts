// Goal: the specification's "Filtering" 2 to 8 and what is decided about rules hold for whoever asks.
// Method: one running service, custom rules over the API, queries over UDP, an upstream that answers
// from a table. The steps are the specification's sentences, under its numbers.

import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask, lookUp } from "../e2e/clients.ts";
import { byRule, EMPTY, FilterBench, NULL_A, PLAIN } from "../e2e/filter_bench.ts";
import { hasProgram, PERMISSIONS } from "../e2e/harness.ts";
import type { Zone } from "../e2e/zone.ts";

const ZONE: Zone = {
  "ten.example A": ["A 198.51.100.9", "A 203.0.113.5"],
  "net.example A": ["A 203.0.114.5"],
  "exact.example A": ["A 192.0.2.7"],
  "longer.example A": ["A 192.0.2.70"],
  "v6.example AAAA": ["AAAA 2001:db8::7"],
  "private.example A": ["A 10.1.2.3"],
  "alias.example A": [
    "CNAME mid.example",
    "mid.example CNAME x.tracker.test",
    "x.tracker.test A 192.0.2.1",
  ],
  "fine.example A": ["CNAME nottracker.test", "nottracker.test A 192.0.2.1"],
  "hinted.example HTTPS": ["HTTPS 1 . alpn=h2 ipv4hint=203.0.113.5"],
};
/** Extended errors of the upstream's own: Filtered, and DNSSEC Bogus. */
const SPECIAL = {
  "error.example": { ede: 17 },
  "failing.example": { ede: 6, rcode: Rcode.ServFail },
};
const OPTIONS = { permissions: PERMISSIONS } as const;

Deno.test("Filtering, 2 to 5: rules of every form", OPTIONS, async (t) => {
  await using bench = await FilterBench.start({ zone: ZONE, special: SPECIAL });
  const step = (name: string, fn: () => Promise<void>) => t.step(name, fn);
  const nx = "NXDOMAIN; SOA 10";

  await step("2. ||name^ covers a name and all below", async () => {
    await bench.rules("||ads.example^");
    const blocked = `${NULL_A}; ${byRule("||ads.example^")}`;
    await bench.check([
      ["ads.example", blocked],
      ["ADS.Example", blocked],
      ["a.b.ads.example", blocked],
      ["xads.example", PLAIN],
      ["ads.example.org", PLAIN],
    ]);
  });
  await step("2. |name^ covers that name", async () => {
    await bench.rules("|ads.example^");
    await bench.check([
      ["ads.example", `${NULL_A}; ${byRule("|ads.example^")}`],
      ["www.ads.example", PLAIN],
    ]);
  });
  await step("2. *.name covers the names below", async () => {
    await bench.rules("*.ads.example");
    await bench.check([
      ["a.b.ads.example", `${NULL_A}; ${byRule("*.ads.example")}`],
      ["ads.example", PLAIN],
    ]);
  });
  await step("2. @@ makes exceptions, of every form", async () => {
    await bench.rules("||ads.example^", "@@||ok.ads.example^", "@@|one.ads.example^");
    await bench.check([
      ["a.ok.ads.example", PLAIN],
      ["one.ads.example", PLAIN],
      ["x.one.ads.example", `${NULL_A}; ${byRule("||ads.example^")}`],
    ]);
    await bench.rules("||ads.example^", "@@*.ads.example");
    await bench.check([
      ["ads.example", `${NULL_A}; ${byRule("||ads.example^")}`],
      ["www.ads.example", PLAIN],
    ]);
  });
  await step("2. a hosts line with a real address answers that exact name with it", async () => {
    await bench.rules("192.0.2.9 nas.example", "2001:db8::9 nas.example", "192.0.2.10 nas.example");
    await bench.check([
      ["nas.example A", "NOERROR; A 192.0.2.9; A 192.0.2.10"],
      ["nas.example AAAA", "NOERROR; AAAA 2001:db8::9"],
      ["nas.example TXT", EMPTY],
      ["www.nas.example A", PLAIN],
    ]);
  });
  await step("2. 0.0.0.0 and loopback addresses block", async () => {
    const lines = ["0.0.0.0", "127.0.0.1", "127.0.1.1", "::", "::1"].map((ip, i) =>
      `${ip} h${i}.example`
    );
    await bench.rules(...lines);
    await bench.check(lines.map((line, i) => [`h${i}.example`, `${NULL_A}; ${byRule(line)}`]));
    await bench.check([["www.h0.example", PLAIN], [
      "h1.example AAAA",
      `NOERROR; AAAA ::; ${byRule(lines[1])}`,
    ]]);
  });
  await step("3. |10.* and whole addresses block a response that holds one", async () => {
    await bench.rules("|203.0.113.*", "|192.0.2.7", "|2001:db8::7", "|10.*");
    await bench.check([
      ["ten.example", `${NULL_A}; ${byRule("|203.0.113.*")}`],
      ["net.example", "NOERROR; A 203.0.114.5"],
      ["exact.example", `${NULL_A}; ${byRule("|192.0.2.7")}`],
      ["longer.example", "NOERROR; A 192.0.2.70"],
      ["v6.example AAAA", `NOERROR; AAAA ::; ${byRule("|2001:db8::7")}`],
      ["private.example", `${NULL_A}; ${byRule("|10.*")}`],
      ["hinted.example HTTPS", `${EMPTY}; ${byRule("|203.0.113.*")}`],
    ]);
  });
  await step("3. @@|10.* protects a response", async () => {
    await bench.rules("|203.0.113.*", "@@|203.0.113.5");
    await bench.check([["ten.example", "NOERROR; A 198.51.100.9; A 203.0.113.5"]]);
    await bench.rules("|203.*", "@@|203.0.*");
    await bench.check([["ten.example", "NOERROR; A 198.51.100.9; A 203.0.113.5"]]);
  });
  await step("3. IPv6 wildcard prefixes are not supported", async () => {
    const { status } = await bench.api.call("POST", "rules", { rule: "|2001:db8:*" });
    assert.equal(status, 422);
  });
  await step("4. $dnsrewrite answers with an address or a response code", async () => {
    await bench.rules(
      "||four.example^$dnsrewrite=192.0.2.4",
      "||six.example^$dnsrewrite=2001:db8::6",
      "||gone.example^$dnsrewrite=NXDOMAIN",
      "||no.example^$dnsrewrite=REFUSED",
      "||none.example^$dnsrewrite=NOERROR",
    );
    await bench.check([
      ["www.four.example", "NOERROR; A 192.0.2.4"],
      ["four.example AAAA", EMPTY],
      ["six.example AAAA", "NOERROR; AAAA 2001:db8::6"],
      ["six.example A", EMPTY],
      ["gone.example", nx],
      ["no.example", "REFUSED"],
      ["none.example", EMPTY],
    ]);
  });
  await step("4. it comes ahead of every other rule, blocks included", async () => {
    await bench.rules(
      "||a.example^$important",
      "||a.example^$dnsrewrite=192.0.2.4",
      "@@||b.example^",
      "||b.example^$dnsrewrite=192.0.2.5",
      "192.0.2.6 b.example",
    );
    await bench.check([["a.example", "NOERROR; A 192.0.2.4"], [
      "b.example",
      "NOERROR; A 192.0.2.5",
    ]]);
  });
  await step("4. @@…$dnsrewrite disables a rewrite for the name", async () => {
    await bench.rules("||a.example^$dnsrewrite=192.0.2.4", "@@||sub.a.example^$dnsrewrite");
    await bench.check([["a.example", "NOERROR; A 192.0.2.4"], ["sub.a.example", PLAIN]]);
    // With a value that one only (decisions, 7); it lifts no block.
    await bench.rules(
      "||a.example^$dnsrewrite=192.0.2.4",
      "||a.example^$dnsrewrite=192.0.2.5",
      "@@||a.example^$dnsrewrite=192.0.2.4",
      "||b.example^",
      "@@||b.example^$dnsrewrite",
    );
    await bench.check([
      ["a.example", "NOERROR; A 192.0.2.5"],
      ["b.example", `${NULL_A}; ${byRule("||b.example^")}`],
    ]);
  });
  await step("4. the long form is unsupported", async () => {
    for (const value of ["NOERROR;A;192.0.2.4", "NXDOMAIN;;", "NOERROR;CNAME;b.example"]) {
      const rule = `||a.example^$dnsrewrite=${value}`;
      assert.equal((await bench.api.call("POST", "rules", { rule })).status, 422);
    }
  });
  await step(
    "5. an important block outranks an exception, an important exception that",
    async () => {
      await bench.rules("||a.example^$important", "@@||a.example^");
      await bench.check([["a.example", `${NULL_A}; ${byRule("||a.example^$important")}`]]);
      await bench.rules("||a.example^$important", "@@||a.example^$important");
      await bench.check([["a.example", PLAIN]]);
      await bench.rules("||a.example^$important", "@@||deep.a.example^");
      await bench.check([["x.deep.a.example", `${NULL_A}; ${byRule("||a.example^$important")}`]]);
    },
  );
  await step("5. $badfilter disables the rule it names", async () => {
    await bench.rules("||a.example^", "||a.example^$badfilter");
    await bench.check([["a.example", PLAIN]]);
    await bench.rules("||a.example^", "||a.example^$important", "||a.example^$badfilter");
    await bench.check([["a.example", `${NULL_A}; ${byRule("||a.example^$important")}`]]);
    await bench.rules("||a.example^", "@@||a.example^", "@@||a.example^$badfilter");
    await bench.check([["a.example", `${NULL_A}; ${byRule("||a.example^")}`]]);
  });
  await step("5. rules carrying any other modifier are skipped", async () => {
    for (const modifier of ["client=1.2.3.4", "dnstype=A", "third-party", "all", "ctag=pc"]) {
      const rule = `||a.example^$${modifier}`;
      assert.equal((await bench.api.call("POST", "rules", { rule })).status, 422);
      const both = `||a.example^$important,${modifier}`;
      assert.equal((await bench.api.call("POST", "rules", { rule: both })).status, 422);
    }
  });
  bench.service.assertCalm();
});

Deno.test("Filtering, 6 to 8: what is answered to a blocked name, and when none is", {
  ...OPTIONS,
  ignore: !hasProgram("dig"),
}, async (t) => {
  await using bench = await FilterBench.start({ zone: ZONE, special: SPECIAL });
  const { api, service } = bench;
  const ads = byRule("||ads.example^");
  const chain = byRule("||tracker.test^");
  await bench.rules("||ads.example^", "||tracker.test^");

  await t.step(
    "6. an answer whose CNAME chain passes through a blocked name is blocked",
    async () => {
      await bench.check([
        ["alias.example", `${NULL_A}; ${chain}`],
        ["alias.example", `${NULL_A}; ${chain}`], // From the cache.
        ["fine.example", "NOERROR; CNAME nottracker.test; A 192.0.2.1"],
      ]);
    },
  );
  await t.step("6. an exception for the asked name protects its answer", async () => {
    await bench.rules("||ads.example^", "||tracker.test^", "@@|alias.example^");
    await bench.check([[
      "alias.example",
      "NOERROR; CNAME mid.example; CNAME x.tracker.test; A 192.0.2.1",
    ]]);
    await bench.rules("||ads.example^", "||tracker.test^", "@@||x.tracker.test^");
    await bench.check([[
      "alias.example",
      "NOERROR; CNAME mid.example; CNAME x.tracker.test; A 192.0.2.1",
    ]]);
    await bench.rules("||ads.example^", "||tracker.test^");
  });
  await t.step("6. blocked answers state which rule and list decided", async () => {
    const text = await lookUp("dig", service.address, "www.ads.example A");
    assert.match(text, /EDE: 15 \(Blocked\): \(\|\|ads\.example\^ \(custom rules\)\)/);
    const told = await api.call("GET", "explain?name=www.ads.example");
    assert.deepEqual([told.outcome, told.rule, told.list], ["blocked", "||ads.example^", "rules"]);
  });

  const forms: readonly [Record<string, unknown>, a: string, aaaa: string, txt: string][] = [
    [{ block_response: "null_ip" }, NULL_A, "NOERROR; AAAA ::", EMPTY],
    [
      { block_response: "nxdomain" },
      ...Array(3).fill("NXDOMAIN; SOA 10") as [string, string, string],
    ],
    [{ block_response: "refused" }, "REFUSED", "REFUSED", "REFUSED"],
    [
      { block_response: "custom_ip", blocking_ipv4: "192.0.2.99" },
      "NOERROR; A 192.0.2.99",
      "NOERROR; AAAA ::",
      EMPTY,
    ],
    [
      { block_response: "custom_ip", blocking_ipv4: null, blocking_ipv6: "2001:db8::99" },
      NULL_A,
      "NOERROR; AAAA 2001:db8::99",
      EMPTY,
    ],
  ];
  for (const [settings, a, aaaa, txt] of forms) {
    await t.step(`7. ${JSON.stringify(settings)}`, async () => {
      await api.set(settings);
      await bench.check([
        ["ads.example A", `${a}; ${ads}`],
        ["ads.example AAAA", `${aaaa}; ${ads}`],
        ["ads.example TXT", `${txt}; ${ads}`],
        ["ads.example HTTPS", `${txt}; ${ads}`],
        ["alias.example A", `${a}; ${chain}`],
      ]);
    });
  }
  await t.step("7. the settings' TTL is that of blocked answers", async () => {
    await api.set({ block_response: "null_ip", block_ttl: 77, blocking_ipv6: null });
    const { answers } = await ask(service.address, "ads.example", Qtype.A);
    assert.deepEqual(answers.map(({ ttl }) => ttl), [77]);
    await bench.check([["ads.example TXT", `NOERROR; SOA 77; ${ads}`]]);
    await api.set({ block_ttl: 10 });
  });
  await t.step("7. without EDNS there is no extended error", async () => {
    const { opt, answers } = await ask(service.address, "ads.example", Qtype.A);
    assert.deepEqual([opt, answers.map(({ data }) => data)], [null, ["0.0.0.0"]]);
  });
  await t.step("7. an upstream's own extended error is relayed unchanged", async () => {
    await bench.check([["error.example", "NOERROR; EDE 17"], ["error.example", "NOERROR; EDE 17"]]);
    assert.match(await bench.ask("failing.example"), /^SERVFAIL; EDE 6\b/);
  });
  await t.step("8. pausing turns filtering off for every client", async () => {
    const { paused, until } = await api.call("PUT", "pause", { seconds: 600 });
    assert.equal(paused, true);
    assert(Date.parse(until) > Date.now());
    await bench.check([
      ["ads.example", PLAIN],
      ["ads.example", PLAIN, "127.0.0.9"],
      ["alias.example", "NOERROR; CNAME mid.example; CNAME x.tracker.test; A 192.0.2.1"],
    ]);
    assert.deepEqual(await api.call("DELETE", "pause"), { paused: false, until: null });
    await bench.check([["ads.example", `${NULL_A}; ${ads}`]]);
    for (const seconds of [0, 604_801, 1.5]) {
      assert.equal((await api.call("PUT", "pause", { seconds })).status, 422);
    }
  });
  await t.step("8. so does the protection switch", async () => {
    await api.set({ protection: false });
    assert.equal((await api.call("GET", "status")).protection, false);
    await bench.check([["ads.example", PLAIN], ["ads.example", PLAIN, "127.0.0.9"]]);
    await api.set({ protection: true });
    await bench.check([["ads.example", `${NULL_A}; ${ads}`]]);
  });
  service.assertCalm();
});

Deno.test("Decisions, 7: what the specification leaves open about rules", OPTIONS, async (t) => {
  const directory = await Deno.makeTempDir({ prefix: "svc-conformance-" });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  await Deno.mkdir(`${directory}/lists`);
  const hosts = [
    "127.0.0.1 localhost localhost.localdomain",
    "255.255.255.255 broadcasthost",
    "::1 ip6-localhost ip6-loopback",
    "0.0.0.0 ads.example second.example # both",
  ];
  await Deno.writeTextFile(`${directory}/lists/hosts.txt`, hosts.join("\r\n"));
  await using bench = await FilterBench.start({
    directory,
    zone: ZONE,
    config: { filter: { lists: [{ name: "Hosts", path: "lists/hosts.txt" }] } },
  });
  await t.step("||name without ^ reads as ||name^", async () => {
    await bench.rules("||ads.example");
    await bench.check([
      ["www.ads.example", `${NULL_A}; ${byRule("||ads.example")}`],
      ["ads.example.org", PLAIN],
    ]);
  });
  await t.step("a plain domain covers that exact name", async () => {
    await bench.rules("plain.example");
    await bench.check([
      ["plain.example", `${NULL_A}; ${byRule("plain.example")}`],
      ["www.plain.example", PLAIN],
    ]);
  });
  await t.step("internationalised names are converted", async () => {
    await bench.rules("||bücher.example^", "||xn--mnchen-3ya.example^");
    await bench.check([
      ["www.xn--bcher-kva.example", `${NULL_A}; ${byRule("||bücher.example^")}`],
      ["xn--mnchen-3ya.example", `${NULL_A}; ${byRule("||xn--mnchen-3ya.example^")}`],
    ]);
  });
  await t.step("localhost names in hosts files are left alone", async () => {
    await bench.rules();
    await bench.check([
      ["ip6-localhost", PLAIN],
      ["broadcasthost", PLAIN],
      ["localhost.localdomain", PLAIN],
      ["ads.example", `${NULL_A}; ${byRule("0.0.0.0 ads.example", "Hosts")}`],
      ["second.example", `${NULL_A}; ${byRule("0.0.0.0 second.example", "Hosts")}`],
    ]);
  });
  await t.step(
    "several rewrites are all answered; a response code outranks addresses",
    async () => {
      await bench.rules("||a.example^$dnsrewrite=192.0.2.4", "|a.example^$dnsrewrite=2001:db8::4");
      await bench.check([
        ["a.example A", "NOERROR; A 192.0.2.4"],
        ["a.example AAAA", "NOERROR; AAAA 2001:db8::4"],
        ["a.example TXT", EMPTY],
      ]);
      await bench.rules("||a.example^$dnsrewrite=192.0.2.4", "||a.example^$dnsrewrite=REFUSED");
      await bench.check([["a.example A", "REFUSED"]]);
    },
  );
  await t.step("an exception for the asked name protects from address rules", async () => {
    await bench.rules("|203.0.113.*", "@@||ten.example^");
    await bench.check([["ten.example", "NOERROR; A 198.51.100.9; A 203.0.113.5"]]);
  });
  await t.step("a name with any local record is ours for every type", async () => {
    await bench.api.create("records", { name: "own.example", type: "A", value: "192.0.2.30" });
    await bench.check([
      ["own.example A", "NOERROR; A 192.0.2.30"],
      ["own.example AAAA", EMPTY],
      ["own.example TXT", EMPTY],
    ]);
    assert.equal(bench.wasAsked("own.example"), false);
  });
  bench.service.assertCalm();
});
