// Goal: who has IPv6 alone reaches names that have IPv4 alone, and none that is blocked or of one's own
// network by mistake (RFC 6147, 7050). Method: a scripted upstream behind services with DNS64, asked
// with dig.

import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { lookUp } from "./clients.ts";
import {
  answer,
  FakeUpstream,
  type RecordSpec,
  type Script,
  soaRdata,
  wireName,
} from "./fake_upstream.ts";
import { hasProgram, PERMISSIONS, Service } from "./harness.ts";
import { scrape, valueOf } from "./scrape.ts";

const HAS_DIG = hasProgram("dig");
const a = (data: string, ttl = 300): RecordSpec => ({ type: Qtype.A, ttl, data });
const aaaa = (data: string, ttl = 300): RecordSpec => ({ type: Qtype.AAAA, ttl, data });
const soa = (minimum: number) => [{
  type: Qtype.SOA,
  ttl: 900,
  name: "example",
  data: soaRdata("example", minimum),
}];

/** What names have, by type; those that are not here have an A. */
const ZONE: Readonly<Record<string, Readonly<Record<number, readonly RecordSpec[]>>>> = {
  "both.example": { [Qtype.A]: [a("192.0.2.1")], [Qtype.AAAA]: [aaaa("2001:db8::1")] },
  "mapped.example": { [Qtype.A]: [a("192.0.2.3")], [Qtype.AAAA]: [aaaa("::ffff:192.0.2.9")] },
  "mixed.example": { [Qtype.AAAA]: [aaaa("::ffff:192.0.2.9"), aaaa("2001:db8::5")] },
  "short.example": { [Qtype.A]: [a("192.0.2.4", 20)] },
  "none.example": {},
  "private.example": { [Qtype.A]: [a("192.168.1.9"), a("192.0.2.6")] },
  "onlyprivate.example": { [Qtype.A]: [a("192.168.1.9")] },
  "embedded.example": { [Qtype.AAAA]: [aaaa("2001:db8:122:c0a8:1:900::")] },
  "refused-address.example": { [Qtype.A]: [a("198.51.100.7")] },
  "nas.lan": { [Qtype.A]: [a("192.168.1.5")] },
  "alias.example": {
    [Qtype.A]: [
      { type: Qtype.CNAME, ttl: 60, data: wireName("end.example") },
      { ...a("192.0.2.8"), name: "end.example" },
    ],
    [Qtype.AAAA]: [{ type: Qtype.CNAME, ttl: 60, data: wireName("end.example") }],
  },
  "cloaked.example": {
    [Qtype.A]: [
      { type: Qtype.CNAME, ttl: 60, data: wireName("ads.example") },
      { ...a("192.0.2.8"), name: "ads.example" },
    ],
    [Qtype.AAAA]: [{ type: Qtype.CNAME, ttl: 60, data: wireName("ads.example") }],
  },
  "8.2.0.192.in-addr.arpa": {
    [Qtype.PTR]: [{ type: Qtype.PTR, ttl: 60, data: wireName("host.example") }],
  },
};

const script: Script = (query) => {
  const name = query.name.toLowerCase();
  if (name === "missing.example") {
    return answer(query, { rcode: Rcode.NXDomain, authorities: soa(60) });
  }
  if (name === "broken.example" && query.type === Qtype.AAAA) {
    return answer(query, { rcode: Rcode.ServFail });
  }
  const answers = (ZONE[name] ?? { [Qtype.A]: [a("192.0.2.33")] })[query.type] ?? [];
  return answer(query, answers.length > 0 ? { answers } : { answers, authorities: soa(120) });
};

/** Names, what dig is asked beside them, and what it shows. */
const ROWS: readonly (readonly [string, string, RegExp, string])[] = [
  ["A alone", "four.example AAAA", /IN\s+AAAA\s+64:ff9b::c000:221$/m, "ANSWER: 1,"],
  [
    "no longer than the denial holds",
    "four2.example AAAA",
    /\s120\s+IN\s+AAAA\s+64:/,
    "ANSWER: 1,",
  ],
  ["no longer than A holds", "short.example AAAA", /\s20\s+IN\s+AAAA\s+64:/, "ANSWER: 1,"],
  ["AAAA that there is", "both.example AAAA", /AAAA\s+2001:db8::1$/m, "ANSWER: 1,"],
  ["excluded AAAA", "mapped.example AAAA", /AAAA\s+64:ff9b::c000:203$/m, "ANSWER: 1,"],
  ["some of them excluded", "mixed.example AAAA", /AAAA\s+2001:db8::5$/m, "ANSWER: 1,"],
  ["a name without addresses", "none.example AAAA", /IN\s+SOA/, "ANSWER: 0,"],
  ["a name that is not there", "missing.example AAAA", /status: NXDOMAIN/, "ANSWER: 0,"],
  [
    "an upstream that chokes on AAAA",
    "broken.example AAAA",
    /AAAA\s+64:ff9b::c000:221/,
    "ANSWER: 1,",
  ],
  [
    "behind an alias",
    "alias.example AAAA",
    /^end\.example\..*AAAA\s+64:ff9b::c000:208$/m,
    "ANSWER: 2,",
  ],
  ["who validates", "four3.example AAAA +cd +dnssec", /IN\s+SOA/, "ANSWER: 0,"],
  ["who wants signatures", "four4.example AAAA +dnssec", /AAAA\s+64:ff9b::c000:221/, "ANSWER: 1,"],
  ["a private one among them", "private.example AAAA", /AAAA\s+64:ff9b::c000:206$/m, "ANSWER: 1,"],
  ["private ones alone", "onlyprivate.example AAAA", /status: NOERROR/, "ANSWER: 0,"],
  ["a name of one's own network", "nas.lan AAAA", /status: NOERROR/, "ANSWER: 0,"],
  ["a blocked name", "ads.example AAAA", /AAAA\s+::$/m, "ANSWER: 1,"],
  ["an alias of a blocked name", "cloaked.example AAAA", /AAAA\s+::$/m, "ANSWER: 1,"],
  ["a blocked address", "refused-address.example AAAA", /AAAA\s+::$/m, "ANSWER: 1,"],
  ["a record of ours", "printer.example AAAA", /AAAA\s+64:ff9b::cb00:7105$/m, "ANSWER: 1,"],
  ["a private record of ours", "shelf.example AAAA", /status: NOERROR/, "ANSWER: 0,"],
  ["RFC 7050", "ipv4only.arpa AAAA", /64:ff9b::c000:aa$/m, "ANSWER: 2,"],
  ["RFC 7050, IPv4", "ipv4only.arpa A", /A\s+192\.0\.0\.171$/m, "ANSWER: 2,"],
  ["RFC 7050, other types", "ipv4only.arpa TXT", /IN\s+SOA/, "ANSWER: 0,"],
  ["the name of an address", "-x 64:ff9b::c000:208", /PTR\s+host\.example\.$/m, "ANSWER: 2,"],
  ["the name of another address", "-x 2001:db8::1", /status: NOERROR/, "ANSWER: 0,"],
];

/** The same of a prefix of one's own, which may stand before private addresses. */
const OWN_ROWS: typeof ROWS = [
  ["A alone", "four.example AAAA", /AAAA\s+2001:db8:122:c000:2:2100::$/m, "ANSWER: 1,"],
  ["a name of one's own network", "nas.lan AAAA", /2001:db8:122:c0a8:1:500::$/m, "ANSWER: 1,"],
  ["a private one among them", "private.example AAAA", /2001:db8:122:c000:2:600::$/m, "ANSWER: 1,"],
  ["a private one in the prefix", "embedded.example AAAA", /status: NOERROR/, "ANSWER: 0,"],
  ["RFC 7050", "ipv4only.arpa AAAA", /2001:db8:122:c000:0:aa00::$/m, "ANSWER: 2,"],
  ["the name of an address", "-x 2001:db8:122:c000:2:800::", /host\.example\.$/m, "ANSWER: 2,"],
];

async function asksAll(t: Deno.TestContext, service: Service, rows: typeof ROWS): Promise<void> {
  for (const [name, args, want, count] of rows) {
    await t.step(name, async () => {
      for (const round of ["first", "from the cache"]) {
        const shown = await lookUp("dig", service.address, args);
        assert.match(shown, want, round);
        assert.ok(shown.includes(count), `${round}: ${shown}`);
        assert.doesNotMatch(shown, /flags:[^;]* ad/);
      }
    });
  }
}

Deno.test({
  name: "svc run makes AAAA of A",
  permissions: PERMISSIONS,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await using upstream = await FakeUpstream.start(script);
    await using service = await Service.start({
      config: {
        upstream: [{ address: upstream.text, timeout: "10s" }],
        dns64: { enabled: true },
        filter: { rules: ["||ads.example^", "|198.51.100.7"] },
      },
    });
    const api = await Api.of(service);
    await api.create("records", { name: "printer.example", type: "A", value: "203.0.113.5" });
    await api.create("records", { name: "shelf.example", type: "A", value: "192.168.1.20" });
    await asksAll(t, service, ROWS);
    assert.deepEqual((await api.call("GET", "status")).dns64, { prefix: "64:ff9b::/96" });
    assert.ok(valueOf(await scrape(api.base), "svc_dns64_synthesized_total") >= 8);
    assert.equal(upstream.about("ipv4only.arpa").length, 0, "is nobody else's business");
    service.assertCalm();
  },
});

Deno.test({
  name: "svc run makes AAAA of A behind a prefix of one's own",
  permissions: PERMISSIONS,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await using upstream = await FakeUpstream.start(script);
    await using service = await Service.start({
      config: {
        upstream: [{ address: upstream.text, timeout: "10s" }],
        dns64: { enabled: true, prefix: "2001:db8:122::/48" },
      },
    });
    await asksAll(t, service, OWN_ROWS);
    service.assertCalm();
  },
});
