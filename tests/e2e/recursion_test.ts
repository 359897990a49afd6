// Goal: `svc run` with recursion answers the real shape of the Internet, and says where it is broken.
// Method: a namespace with an NSD for each name server: a root, top-level domains, zones that are well,
// lame, silent, in a circle; dig asks the service.

import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { FakeInternet, HAS_INTERNET } from "./fake_internet.ts";
import { OwnDirectory, PERMISSIONS, runProgram, Service, svcCommand, until } from "./harness.ts";

const ROOT = "198.41.0.4";
const LAN = "192.0.2.77";
/** Addresses of servers that nobody listens at. */
const SILENT = ["192.0.2.90", "192.0.2.91"];

const HOSTS = {
  [ROOT]: {
    ".": [
      "@ NS a.root-servers.net.",
      `a.root-servers.net. A ${ROOT}`,
      "example. NS ns.example.",
      "ns.example. A 192.0.2.1",
      "net. NS ns.net.",
      "ns.net. A 192.0.2.2",
      "broken. NS ns1.broken.",
      `ns1.broken. A ${SILENT[0]}`,
    ],
  },
  "192.0.2.1": {
    "example.": [
      "@ NS ns",
      "ns A 192.0.2.1",
      "well NS ns.well",
      "ns.well A 192.0.2.10",
      "hosted NS ns.hoster.net.",
      "half NS lame.half",
      "half NS ns.half",
      "half NS silent.half",
      "lame.half A 192.0.2.2",
      "ns.half A 192.0.2.10",
      `silent.half A ${SILENT[1]}`,
      "lame NS ns.lame",
      "ns.lame A 192.0.2.2",
      "circle NS ns.other-circle",
      "other-circle NS ns.circle",
      "six NS ns.six",
      "ns.six AAAA 2001:db8::10",
    ],
  },
  "192.0.2.2": {
    "net.": ["@ NS ns", "ns A 192.0.2.2", "hoster NS ns.hoster", "ns.hoster A 192.0.2.10"],
  },
  "192.0.2.10": {
    "well.example.": [
      "@ NS ns",
      "ns A 192.0.2.10",
      "www A 203.0.113.1",
      "a.b.c.d A 203.0.113.2",
      "away CNAME www.hosted.example.",
      "own CNAME nas.corp.example.",
      "loop CNAME loop.hosted.example.",
      `big TXT ${Array.from({ length: 12 }, () => `"${"x".repeat(200)}"`).join(" ")}`,
    ],
    "hosted.example.": [
      "@ NS ns.hoster.net.",
      "www A 203.0.113.3",
      "loop CNAME loop.well.example.",
    ],
    "half.example.": ["@ NS ns", "ns A 192.0.2.10", "www A 203.0.113.4"],
    "hoster.net.": ["@ NS ns", "ns A 192.0.2.10"],
  },
  "2001:db8::10": { "six.example.": ["@ NS ns", "ns AAAA 2001:db8::10", "www A 203.0.113.6"] },
  [LAN]: {
    "corp.example.": [
      "@ NS ns",
      `ns A ${LAN}`,
      "nas A 203.0.113.77",
      "out CNAME www.well.example.",
    ],
  },
};

Deno.test("svc run resolves from the root down", {
  permissions: PERMISSIONS,
  ignore: !HAS_INTERNET,
}, async (t) => {
  await using directory = await OwnDirectory.make();
  await using internet = await FakeInternet.start(directory.path, HOSTS, { more: SILENT });
  const hints = `${directory.path}/root.hints`;
  await Deno.writeTextFile(
    hints,
    `. 3600 NS a.root-servers.net.\na.root-servers.net. 3600 A ${ROOT}\n`,
  );
  await using service = await Service.start({
    prefix: internet.prefix,
    config: {
      recursion: { enabled: true, dnssec: false, root_hints: hints },
      upstream: [
        { address: "192.0.2.99" },
        { address: LAN, domains: ["corp.example"] },
      ],
    },
  });
  const { port } = service.address;
  const ask = (...args: string[]) =>
    internet.dig("@127.0.0.1", "-p", `${port}`, "+time=6", ...args);
  const CASES: readonly (readonly [string, string, RegExp])[] = [
    ["a zone with glue", "www.well.example", /NOERROR[^]*203\.0\.113\.1\s/],
    ["a name with empty non-terminals", "a.b.c.d.well.example", /NOERROR[^]*203\.0\.113\.2\s/],
    [
      "name servers elsewhere, and an alias",
      "away.well.example",
      /CNAME\s+www\.hosted[^]*203\.0\.113\.3\s/,
    ],
    ["a zone with a lame and a silent server", "www.half.example", /NOERROR[^]*203\.0\.113\.4\s/],
    ["a zone reached by IPv6 alone", "www.six.example", /NOERROR[^]*203\.0\.113\.6\s/],
    ["a name that is not there", "nothing.well.example", /NXDOMAIN[^]*SOA/],
    ["a top-level domain that is not there", "www.nowhere", /NXDOMAIN[^]*SOA/],
    ["a zone of an upstream", "nas.corp.example", /NOERROR[^]*203\.0\.113\.77/],
    [
      "an alias from a zone to an upstream's",
      "own.well.example",
      /CNAME\s+nas\.corp[^]*203\.0\.113\.77/,
    ],
    [
      "an alias from an upstream's zone",
      "out.corp.example",
      /CNAME\s+www\.well[^]*203\.0\.113\.1\s/,
    ],
    ["a special-use name", "printer.local", /NXDOMAIN/],
    [
      "a zone whose only server is lame",
      "www.lame.example",
      /SERVFAIL[^]*EDE: 22[^]*does not serve|SERVFAIL[^]*EDE: 22[^]*REFUSED/,
    ],
    ["name servers in a circle", "www.circle.example", /SERVFAIL[^]*EDE: \d+/],
    ["aliases in a circle", "loop.well.example", /SERVFAIL[^]*EDE: \d+[^]*circle/],
    ["a broken top-level domain", "www.broken", /SERVFAIL[^]*EDE: 22/],
  ];
  for (const [what, name, want] of CASES) {
    await t.step(what, async () => assert.match(await ask(name), want));
  }
  await t.step("an answer that has no room over UDP", async () => {
    assert.match(await ask("big.well.example", "TXT", "+tcp"), /NOERROR[^]*ANSWER: 1[^]*xxxx/);
  });
  await t.step("svc explain --trace shows each step", async () => {
    const api = (await Api.of(service)).base.replace("/api/v1", "");
    const [command, ...args] = [
      ...internet.prefix,
      ...svcCommand([
        "explain",
        "www.half.example",
        "--trace",
        "--api",
        api,
      ]),
    ];
    const { code, stdout, stderr } = await runProgram(command, ...args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^www\.half\.example A: recursed$/m);
    assert.match(
      stdout,
      /asked: www\.half\.example A, zone half\.example, server \S+half\.example/,
    );
    assert.match(stdout, /answered: .*NOERROR[^]*result: NOERROR[^]*203\.0\.113\.4/);
    const [, ...broken] = [
      ...internet.prefix,
      ...svcCommand(["explain", "x.lame.example", "--trace", "--api", api]),
    ];
    const failed = await runProgram(command, ...broken);
    assert.equal(failed.code, 0, failed.stderr);
    assert.match(failed.stdout, /failed: zone lame\.example, ns\.lame\.example .*REFUSED/);
    assert.match(failed.stdout, /result: SERVFAIL after .*REFUSED$/m);
  });
  await t.step("a known answer comes from the cache", async () => {
    assert.match(await ask("www.well.example"), /NOERROR[^]*203\.0\.113\.1\s/);
  });
  await t.step("what it took, and why there was no answer, is counted", async () => {
    const api = await Api.of(service, internet.prefix);
    const own = (text: string) =>
      Object.fromEntries(
        text.split("\n").filter((line) => line.startsWith("svc_recursion_")).map((line) => {
          const [name, value] = line.split(" ");
          return [name, Number(value)];
        }),
      );
    // How much is known is told every few seconds.
    await until(
      "servers that are known",
      async () => own(await api.metrics()).svc_recursion_servers > 0,
    );
    const counts = own(await api.metrics());
    const { svc_recursion_queries_count: questions, svc_recursion_queries_sum: sent } = counts;
    // Each case but those that are local, an upstream's or cached.
    assert.ok(questions >= CASES.length - 4 && sent >= questions, `${sent} for ${questions}`);
    assert.equal(counts['svc_recursion_queries_bucket{le="100"}'], questions, "QUERIES_MAX");
    assert.equal(counts['svc_recursion_queries_bucket{le="+Inf"}'], questions);
    assert.equal(counts.svc_recursion_duration_seconds_count, questions);
    assert.ok(counts.svc_recursion_duration_seconds_sum > 0);
    assert.ok(counts.svc_recursion_zones > 0);
    const failures = (reason: string) => counts[`svc_recursion_failures_total{reason="${reason}"}`];
    assert.ok(failures("unhelpful") >= 1, "a lame zone");
    assert.ok(failures("circle") >= 1, "aliases in a circle");
    const reasons = ["timeout", "unreachable", "malformed", "bound", "overload", "no_socket"];
    for (const reason of reasons) assert.equal(typeof failures(reason), "number", reason);
  });
});

/** As before, signed down to some zones; what is below them is signed, unsigned, or spoilt. */
const SIGNED_HOSTS = {
  [ROOT]: {
    ".": [
      "@ NS a.root-servers.net.",
      `a.root-servers.net. A ${ROOT}`,
      "example. NS ns.example.",
      "ns.example. A 192.0.2.1",
    ],
  },
  "192.0.2.1": {
    "example.": [
      "@ NS ns",
      "ns A 192.0.2.1",
      "signed NS ns.signed",
      "ns.signed A 192.0.2.10",
      "plain NS ns.plain",
      "ns.plain A 192.0.2.10",
      "stripped NS ns.stripped",
      "ns.stripped A 192.0.2.11",
    ],
  },
  "192.0.2.10": {
    "signed.example.": [
      "@ NS ns",
      "ns A 192.0.2.10",
      "www A 203.0.113.1",
      "a.b.c A 203.0.113.2",
      "*.wild CNAME www",
      "away CNAME www.plain.example.",
    ],
    "plain.example.": ["@ NS ns", "ns A 192.0.2.10", "www A 203.0.113.3"],
  },
  "192.0.2.11": { "stripped.example.": ["@ NS ns", "ns A 192.0.2.11", "www A 203.0.113.4"] },
};

Deno.test("svc run proves what it resolves", {
  permissions: PERMISSIONS,
  ignore: !HAS_INTERNET,
}, async (t) => {
  await using directory = await OwnDirectory.make();
  const signed = ["signed.example.", "stripped.example.", "example.", "."];
  const stripped = ["stripped.example."]; // Its DS is there, and its signatures are not.
  await using internet = await FakeInternet.start(directory.path, SIGNED_HOSTS, {
    signed,
    stripped,
  });
  const hints = `${directory.path}/root.hints`;
  await Deno.writeTextFile(hints, `a.root-servers.net. 3600 A ${ROOT}\n`);
  await using service = await Service.start({
    prefix: internet.prefix,
    config: {
      recursion: { enabled: true, root_hints: hints, trust_anchor: internet.anchorsOf(".") },
    },
  });
  const { port } = service.address;
  const ask = (...args: string[]) =>
    internet.dig("@127.0.0.1", "-p", `${port}`, "+time=6", "+dnssec", ...args);
  const CASES: readonly (readonly [string, string[], RegExp])[] = [
    [
      "a signed answer",
      ["www.signed.example"],
      /NOERROR[^]*flags: qr rd ra ad;[^]*203\.0\.113\.1\s/,
    ],
    [
      "a name below empty non-terminals",
      ["a.b.c.signed.example"],
      /flags: qr rd ra ad;[^]*203\.0\.113\.2\s/,
    ],
    ["a wildcard's alias", ["x.wild.signed.example"], /flags: qr rd ra ad;[^]*203\.0\.113\.1\s/],
    [
      "an alias to an unsigned zone",
      ["away.signed.example"],
      /flags: qr rd ra;[^]*203\.0\.113\.3\s/,
    ],
    [
      "a name that is proven not to be there",
      ["nothing.signed.example"],
      /NXDOMAIN[^]*flags: qr rd ra ad;/,
    ],
    [
      "a name below one that is not there",
      ["a.nothing.signed.example"],
      /NXDOMAIN[^]*flags: qr rd ra ad;/,
    ],
    ["a top-level domain that is not there", ["www.nowhere"], /NXDOMAIN[^]*flags: qr rd ra ad;/],
    [
      "the DS of a signed zone",
      ["signed.example", "DS"],
      /NOERROR[^]*flags: qr rd ra ad;[^]*\sDS\s/,
    ],
    [
      "no DS of an unsigned zone",
      ["plain.example", "DS"],
      /NOERROR[^]*flags: qr rd ra ad;[^]*NSEC/,
    ],
    ["an unsigned zone", ["www.plain.example"], /NOERROR[^]*flags: qr rd ra;[^]*203\.0\.113\.3\s/],
    ["a zone whose signatures are missing", ["www.stripped.example"], /SERVFAIL[^]*EDE: (9|10)/],
    ["the same without checking", ["www.stripped.example", "+cd"], /NOERROR[^]*203\.0\.113\.4\s/],
    ["a special-use name", ["printer.local"], /NXDOMAIN[^]*flags: qr rd ra;/],
  ];
  for (const [what, args, want] of CASES) {
    await t.step(what, async () => assert.match(await ask(...args), want));
  }
});
