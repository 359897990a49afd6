import assert from "node:assert/strict";
import { encodeResponse, parseRecord } from "../../../tests/replay/records.ts";
import { getU16, setU16 } from "../../bytes/mod.ts";
import { AA_BIT, Qtype } from "../../dns/mod.ts";
import { ALIASES_MAX } from "../ask/scrubber.ts";
import { type BenchOptions, internet, RecursorBench, says } from "./fakes.ts";

const none = { permissions: "none" } as const;

/** A root, a top-level domain and two zones. */
const SMALL = {
  ". 198.41.0.4": [
    ". NS a.root-servers.net",
    "a.root-servers.net A 198.41.0.4",
    "com NS ns.com",
    "ns.com A 192.0.2.1",
    "net NS ns.net",
    "ns.net A 192.0.2.2",
  ],
  "com 192.0.2.1": [
    "com NS ns.com",
    "example.com NS ns1.example.com",
    "example.com NS ns2.example.com",
    "ns1.example.com A 192.0.2.10",
    "ns2.example.com A 192.0.2.11",
    "glueless.com NS ns.hoster.net",
  ],
  "net 192.0.2.2": ["hoster.net NS ns.hoster.net", "ns.hoster.net A 192.0.2.20"],
  "example.com 192.0.2.10 192.0.2.11": [
    "example.com NS ns1.example.com",
    "example.com NS ns2.example.com",
    "www.example.com A 203.0.113.1",
    "a.b.c.example.com A 203.0.113.2",
    "d.b.c.example.com A 203.0.113.3",
    "alias.example.com CNAME www.example.com",
    "away.example.com CNAME www.glueless.com",
    "loop.example.com CNAME loop.glueless.com",
  ],
  "hoster.net 192.0.2.20": ["ns.hoster.net A 192.0.2.20"],
};
const GLUELESS = {
  "glueless.com 192.0.2.20": [
    "www.glueless.com A 203.0.113.9",
    "loop.glueless.com CNAME loop.example.com",
  ],
};

function bench(options: BenchOptions = {}): RecursorBench {
  const servers = internet(SMALL);
  const glueless = internet(GLUELESS)["192.0.2.20"];
  const hoster = servers["192.0.2.20"];
  servers["192.0.2.20"] = (query) =>
    (query.name.endsWith("glueless.com") ? glueless : hoster)(query);
  return new RecursorBench({ servers, ...options });
}

Deno.test(
  "Recursor goes from the root to the zone, and sends each no more than it needs",
  none,
  () => {
    const b = bench();
    const client = b.resolve("www.example.com");
    assert.equal(client.answer, "NOERROR rd ra; www.example.com 3600 A 203.0.113.1");
    const log = b.log.map((line) => line.replace(/192\.0\.2\.1[01]/, "ns"));
    assert.deepEqual(log, [
      "198.41.0.4 . NS",
      "198.41.0.4 com A",
      "192.0.2.1 example.com A",
      "ns www.example.com A",
    ]);
    b.run();
    b.checkIdle();
  },
);

Deno.test(
  "Recursor follows a DNAME whose CNAME the server leaves out (RFC 6672 §3.1)",
  none,
  () => {
    const servers = internet(SMALL);
    const net = servers["192.0.2.2"];
    const answer = [parseRecord("moved.net DNAME example.com")];
    servers["192.0.2.2"] = (query) => {
      const { wireName: name, type } = query;
      if (!query.name.endsWith(".moved.net")) return net(query);
      const message = encodeResponse({ name, type }, 0, { answer });
      setU16(message, 2, getU16(message, 2) | AA_BIT);
      return [message];
    };
    const b = new RecursorBench({ servers });
    assert.match(
      b.resolve("www.moved.net").answer,
      /; moved\.net \d+ DNAME example\.com; www\.moved\.net \d+ CNAME www\.example\.com; www\.example\.com \d+ A 203/,
    );
    assert.match(b.resolve("a.b.c.moved.net").answer, / A 203\.0\.113\.2$/);
  },
);

Deno.test("Recursor follows twelve DNAMEs in a row, and says where there are more", none, () => {
  for (const count of [ALIASES_MAX, ALIASES_MAX + 1]) {
    const servers = internet(SMALL);
    const net = servers["192.0.2.2"];
    servers["192.0.2.2"] = (query) => {
      const place = /\.d(\d+)\.net$/.exec(query.name)?.[1];
      if (place === undefined) return net(query);
      const record = Number(place) === count
        ? `${query.name} A 203.0.113.7`
        : `d${place}.net DNAME d${Number(place) + 1}.net`;
      return [says(query, { answer: [record] }, AA_BIT)];
    };
    const { answer } = new RecursorBench({ servers }).resolve("www.d0.net", Qtype.A, { edns: {} });
    if (count > ALIASES_MAX) assert.match(answer, /^SERVFAIL.*\(ALIASES_MAX\)/);
    else assert.match(answer, /www\.d12\.net \d+ A 203\.0\.113\.7; OPT$/);
  }
});

Deno.test("Recursor asks a known zone once, and knows which names are no zones", none, () => {
  const b = bench();
  b.resolve("www.example.com");
  b.run();
  const before = b.count();
  assert.match(b.resolve("a.b.c.example.com").answer, /203\.0\.113\.2/);
  assert.deepEqual(b.log.slice(before).map((line) => line.split(" ").slice(1).join(" ")), [
    "c.example.com A",
    "b.c.example.com A",
    "a.b.c.example.com A",
  ]);
  assert.match(b.resolve("d.b.c.example.com").answer, /203\.0\.113\.3/);
  assert.equal(b.log.at(-1)?.split(" ").slice(1).join(" "), "d.b.c.example.com A");
  assert.equal(b.count(), before + 4);
  assert.match(b.resolve("nothing.example.com").answer, /^NXDOMAIN rd ra; example\.com 60 SOA/);
  assert.match(
    b.resolve("www.example.com", Qtype.MX).answer,
    /^NOERROR rd ra; example\.com 60 SOA/,
  );
  assert.equal(b.count(), before + 6);
});

Deno.test(
  "Recursor looks up name servers without glue, and follows aliases to other zones",
  none,
  () => {
    const b = bench();
    assert.equal(
      b.resolve("away.example.com").answer,
      "NOERROR rd ra; away.example.com 3600 CNAME www.glueless.com; www.glueless.com 3600 A 203.0.113.9",
    );
    assert.equal(
      b.resolve("alias.example.com").answer,
      "NOERROR rd ra; alias.example.com 3600 CNAME www.example.com; www.example.com 3600 A 203.0.113.1",
    );
    assert.match(b.resolve("loop.example.com").answer, /^SERVFAIL/);
    b.run();
    b.checkIdle();
  },
);

Deno.test("Recursor answers special-use names itself", none, () => {
  const b = bench();
  for (
    const [name, type, want] of [
      ["localhost", Qtype.A, /^NOERROR rd ra; localhost 3600 A 127\.0\.0\.1$/],
      ["a.localhost", Qtype.AAAA, /^NOERROR rd ra; a\.localhost 3600 AAAA ::1$/],
      ["localhost", Qtype.MX, /^NOERROR rd ra; localhost 3600 SOA|^NOERROR.*SOA/],
      ["printer.local", Qtype.A, /^NXDOMAIN rd ra; local \d+ SOA/],
      ["x.onion", Qtype.A, /^NXDOMAIN/],
      ["x.invalid", Qtype.A, /^NXDOMAIN/],
      ["x.test", Qtype.A, /^NXDOMAIN/],
      ["nas.home.arpa", Qtype.A, /^NXDOMAIN/],
      ["home.arpa", Qtype.DS, /^NOERROR rd ra; home\.arpa \d+ SOA [^;]*$/],
      ["1.0.168.192.in-addr.arpa", Qtype.PTR, /^NXDOMAIN/],
      ["1.0.20.172.in-addr.arpa", Qtype.PTR, /^NXDOMAIN/],
      ["1.2.64.100.in-addr.arpa", Qtype.PTR, /^NXDOMAIN/],
      [`${"0.".repeat(12)}d.f.ip6.arpa`, Qtype.PTR, /^NXDOMAIN/],
    ] as const
  ) {
    assert.match(b.resolve(name, type).answer, want, name);
  }
  assert.equal(b.count(), 0);
});
