// What becomes of servers that are slow, silent, moved, old or out of reach; and what is kept of them.
import assert from "node:assert/strict";
import { encodeResponse, parseRecord } from "../../../tests/replay/records.ts";
import { getU16 } from "../../bytes/mod.ts";
import {
  AA_BIT,
  decodeMessage,
  EdnsOption,
  HashedName,
  MessageWriter,
  QR_BIT,
  Qtype,
  Rcode,
} from "../../dns/mod.ts";
import { SEED, wire } from "../fakes.ts";
import { Delegation } from "./delegation.ts";
import { Delegations, isAskable } from "./delegations.ts";
import { benchOf, COM, failing, FakeZone, ROOT, says, serverOf } from "./fakes.ts";
import { builtInHints, parseHints } from "./hints.ts";
import { MINIMISE_STEPS_MAX, SERVERS_MAX } from "./limits.ts";
import { nextProbe } from "./minimise.ts";
import { NameServers } from "./name_servers.ts";

const none = { permissions: "none" } as const;
const [ONE, TWO, SIX] = ["192.0.2.10", "192.0.2.11", "2001:db8::6"];

const zone = new FakeZone("example.com", [
  "*.example.com A 203.0.113.1",
  "www.example.com A 203.0.113.1",
  "a.b.example.com A 203.0.113.2",
  ...Array.from({ length: 100 }, (_, i) => `n${i}.example.com A 203.0.113.3`),
]);

Deno.test("servers that fail at a part of a name are asked for the whole one", none, () => {
  for (const rcode of [Rcode.NXDomain, Rcode.Refused, Rcode.ServFail, Rcode.NotImp]) {
    const b = benchOf({
      [ONE]: (query) =>
        query.name === "b.example.com"
          ? [encodeResponse({ name: query.wireName, type: query.type }, rcode, {
            authority: rcode === Rcode.NXDomain
              ? [parseRecord("example.com SOA n. h. 1 2 3 4 60")]
              : [],
          })]
          : serverOf(zone)(query),
    });
    assert.match(b.resolve("a.b.example.com").answer, /203\.0\.113\.2/, `${rcode}`);
    b.run();
    b.checkIdle();
  }
});

Deno.test(
  "servers that are silent or lame at a part of a name are asked for the whole one",
  none,
  () => {
    for (const kind of ["silent", "lame", "malformed"]) {
      const b = benchOf({
        [ONE]: (query) => {
          if (query.name === "a.b.example.com") return serverOf(zone)(query);
          if (kind === "malformed") return [failing(query, 0).subarray(0, 14)];
          return kind === "silent" ? [] : [failing(query, 0)];
        },
      });
      const { answer, tookMs } = b.resolve("a.b.example.com");
      assert.match(answer, /203\.0\.113\.2$/, kind);
      assert.ok(tookMs < 4_800);
    }
  },
);

Deno.test("a host without IPv6 loses no time by it, nor one whose IPv6 leads nowhere", none, () => {
  const b = benchOf({ [ONE]: serverOf(zone), [SIX]: serverOf(zone) });
  b.unreachable.add(SIX);
  for (let i = 0; i < 50; i++) assert.ok(b.resolve(`n${i}.example.com`).tookMs < 100);
  const dead = benchOf({ [ONE]: serverOf(zone), [SIX]: () => [] });
  let slow = 0;
  for (let i = 0; i < 50; i++) if (dead.resolve(`n${i}.example.com`).tookMs >= 400) slow++;
  assert.ok(slow <= 3, `${slow} slow ones`);
});

Deno.test("the faster server is asked, and the slower one now and then", none, () => {
  const b = benchOf({ [ONE]: serverOf(zone), [TWO]: serverOf(zone) });
  b.latencyMs.set(ONE, 150);
  for (let i = 0; i < 100; i++) b.resolve(`n${i}.example.com`);
  assert.ok(b.count(ONE) >= 1 && b.count(ONE) <= 25, `${b.count(ONE)} to the slow one`);
});

Deno.test("a silent server costs one wait, and is asked again once it is back", none, () => {
  const b = benchOf({ [ONE]: serverOf(zone), [TWO]: () => [] });
  let slow = 0;
  for (let i = 0; i < 60; i++) {
    const { answer, tookMs } = b.resolve(`n${i}.example.com`);
    assert.match(answer, /203\.0\.113\.3/);
    if (tookMs >= 300) slow++;
  }
  assert.ok(slow <= 4, `${slow} slow ones`);
  b.servers.set(ONE, () => []);
  b.servers.set(TWO, serverOf(zone));
  assert.match(b.resolve("n90.example.com").answer, /203\.0\.113\.3/);
});

Deno.test("a delegation that leads nowhere is asked for again, once", none, () => {
  const b = benchOf({ [ONE]: serverOf(zone), [TWO]: serverOf(zone) }, [ONE]);
  b.resolve("n1.example.com");
  b.servers.set(ONE, (query) => [failing(query, Rcode.Refused)]);
  b.servers.set(
    COM,
    serverOf(new FakeZone("com", ["example.com NS ns.example.com", `ns.example.com A ${TWO}`])),
  );
  assert.match(b.resolve("n2.example.com").answer, /203\.0\.113\.3/);
});

Deno.test("a server that chokes on EDNS is asked without", none, () => {
  for (const rcode of [Rcode.FormErr, Rcode.NotImp]) {
    const b = benchOf({
      [ONE]: (query) =>
        query.message.opt === null ? serverOf(zone)(query) : [failing(query, rcode)],
    });
    assert.match(b.resolve("n1.example.com").answer, /203\.0\.113\.3/, `${rcode}`);
    const before = b.count(ONE);
    assert.match(b.resolve("n2.example.com").answer, /203\.0\.113\.3/, `${rcode}`);
    assert.equal(b.count(ONE), before + 1);
  }
});

Deno.test("a server that wants another cookie is asked over TCP (RFC 7873 §5.3)", none, () => {
  const b = benchOf({
    [ONE]: (query) => {
      if (query.tcp) return serverOf(zone)(query);
      const room = new Uint8Array(512);
      const writer = new MessageWriter();
      writer.start(room, 0, room.length, 0, QR_BIT | (Rcode.BadCookie & 15));
      writer.question(query.wireName, query.type);
      writer.opt({ payload: 1232, extendedRcode: 1, version: 0, dnssecOk: false });
      writer.option(EdnsOption.Cookie, new Uint8Array(24));
      return [writer.bytes()];
    },
  });
  assert.match(b.resolve("n1.example.com").answer, /203\.0\.113\.3/);
  assert.equal(b.count(ONE), 2);
});

Deno.test("a cookie that a server sends goes back to it, and to nobody else", none, () => {
  const cookie = Uint8Array.from({ length: 24 }, (_, i) => i);
  const b = benchOf({
    [ONE]: (query) => {
      const [answer] = serverOf(zone)(query);
      const room = new Uint8Array(1_232);
      const writer = new MessageWriter();
      const message = decodeMessage(answer)!;
      writer.start(room, 0, room.length, 0, getU16(answer, 2) | AA_BIT);
      writer.question(query.wireName, query.type);
      for (const { name, type, ttl, rdata } of message.answers) {
        writer.record(0, wire(name), type, 1, ttl, rdata);
      }
      writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false });
      writer.option(EdnsOption.Cookie, cookie);
      return [writer.bytes()];
    },
  });
  b.resolve("n1.example.com");
  b.resolve("n2.example.com");
  const cookies = b.sent.map(({ message }) =>
    message.opt?.options.find(({ code }) => code === EdnsOption.Cookie)?.data.join() ?? ""
  );
  assert.deepEqual(cookies, [...Array(cookies.length - 1).fill(""), cookie.join()]);
});

Deno.test(
  "what the root denies is not asked for again, whatever is below it (RFC 8020)",
  none,
  () => {
    const b = benchOf({ [ONE]: serverOf(zone) });
    assert.match(b.resolve("www.nowhere").answer, /^NXDOMAIN/);
    b.run();
    const before = b.count();
    assert.match(b.resolve("mail.a.nowhere").answer, /^NXDOMAIN rd ra; \. \d+ SOA/);
    assert.equal(b.count(), before);
    b.advance(400_000);
    assert.match(b.resolve("mail.a.nowhere").answer, /^NXDOMAIN/);
    assert.ok(b.count() > before);
  },
);

Deno.test(
  "the root is asked for its own servers, and its word goes before the hints (RFC 8109)",
  none,
  () => {
    const moved = "198.41.0.44";
    const root = new FakeZone(".", [
      ". 600 NS b.root-servers.net",
      `b.root-servers.net A ${moved}`,
      "com NS ns.com",
      `ns.com A ${COM}`,
    ]);
    const b = benchOf({ [ONE]: serverOf(zone), [ROOT]: serverOf(root), [moved]: serverOf(root) }, [
      ONE,
    ]);
    const asked = () => b.sent.filter(({ name, type }) => name === "." && type === Qtype.NS);
    b.resolve("www.example.com");
    b.run();
    assert.deepEqual(asked().map(({ address }) => address), [ROOT]);
    b.resolve("www.other");
    assert.equal(b.sent.at(-1)?.address, moved);
    assert.equal(asked().length, 1);
    // Once its time is over, the hints lead the way again.
    b.advance(601_000);
    b.resolve("www.another");
    b.run();
    assert.deepEqual(asked().map(({ address }) => address), [ROOT, ROOT]);
  },
);

Deno.test("a new zone costs two messages, and ten names of one little more than ten", none, () => {
  const b = benchOf({ [ONE]: serverOf(zone) });
  b.resolve("www.other.com");
  b.run();
  const before = b.count();
  b.resolve("n0.example.com");
  assert.equal(b.count() - before, 2);
  for (let i = 1; i < 10; i++) b.resolve(`n${i}.example.com`);
  assert.equal(b.count() - before, 11);
});

Deno.test("an answer past its time is served where no server answers (RFC 8767)", none, () => {
  const b = benchOf({ [ONE]: serverOf(zone) }, undefined, { serveStale: 86_400 });
  b.resolve("www.example.com");
  b.run();
  b.advance(4_000_000);
  for (const ip of [ROOT, COM, ONE]) b.servers.set(ip, () => []);
  const { answer, tookMs } = b.resolve("www.example.com");
  assert.match(answer, /^NOERROR rd ra; www\.example\.com 30 A 203\.0\.113\.1/);
  assert.ok(tookMs <= 1_850, `${tookMs} ms of the clock of this test`);
});

Deno.test("a name is told in ten parts at most, over however many zones it leads", none, () => {
  const labels = Array.from({ length: 40 }, (_, i) => `l${i}`);
  const name = `${labels.join(".")}.example.com`;
  // Every third label begins a zone, all of which one server has.
  const b = benchOf({
    [ONE]: (query) => {
      const asked = query.name.split(".");
      if (query.name === name) return [says(query, { answer: [`${name} A 203.0.113.8`] }, AA_BIT)];
      const isZone = asked.length % 3 === 0;
      const own = asked.slice(-(asked.length - asked.length % 3 || 3)).join(".");
      return isZone
        ? [says(query, {
          authority: [`${query.name} NS ns0.example.com`],
          additional: [`ns0.example.com A ${ONE}`],
        })]
        : [says(query, { authority: [`${own} SOA n.${own} h.${own} 1 2 3 4 60`] }, AA_BIT)];
    },
  });
  assert.match(b.resolve(name).answer, /203\.0\.113\.8/);
  const parts = b.sent.filter((sent) => sent.name !== name && sent.name !== ".");
  assert.ok(parts.length <= MINIMISE_STEPS_MAX, parts.map((sent) => sent.name).join("\n"));
});

Deno.test("nextProbe() grows by a label, then spreads what is left over ten steps", none, () => {
  const stepsOf = (text: string, label: number, inner: readonly number[] = []) => {
    const bytes = wire(text);
    const name = new HashedName();
    name.read(bytes, 0, bytes.length, SEED);
    const probes: number[] = [];
    for (let at = label; at > 0;) {
      at = nextProbe(name, bytes, at, probes.length, (k) => inner.includes(k));
      probes.push(at);
    }
    return probes;
  };
  assert.deepEqual(stepsOf("www.example.com", 3), [2, 1, 0]);
  assert.deepEqual(stepsOf("a.b.c.example.com", 3), [2, 1, 0]);
  assert.deepEqual(stepsOf("a.b.c.example.com", 3, [2]), [1, 0]);
  assert.deepEqual(stepsOf("_25._tcp.mail.example.com", 3), [2, 0]);
  const reverse = `${"1.".repeat(32)}ip6.arpa`;
  const probes = stepsOf(reverse, 34);
  assert.equal(probes.length, 10);
  assert.deepEqual(probes.slice(0, 4), [33, 32, 31, 30]);
  assert.equal(probes.at(-1), 0);
});

Deno.test("parseHints() reads named.root, and the built-in hints are 13 servers", none, () => {
  const text =
    `; This file\n.  3600000  NS  A.ROOT-SERVERS.NET.\nA.ROOT-SERVERS.NET.  3600000  A  198.41.0.4\n` +
    "A.ROOT-SERVERS.NET. 3600000 IN AAAA 2001:503:ba3e::2:30 ; end\nnonsense\n";
  const hints = parseHints(text);
  assert.equal(hints.length, 1);
  assert.deepEqual(hints[0].addresses.map(({ length }) => length), [4, 16]);
  assert.equal(builtInHints().length, 13);
  assert.ok(builtInHints().every(({ addresses }) => addresses.length === 2));
});

Deno.test(
  "Delegations keep within their bytes, and an hour's new zones leave hot ones",
  none,
  () => {
    let nowS = 1_000_000;
    const sizeBytes = 2 * 1024 * 1024;
    const delegations = new Delegations(sizeBytes, () => nowS);
    const name = new HashedName();
    const keep = (text: string, ttl: number) => {
      const bytes = wire(text);
      name.read(bytes, 0, bytes.length, SEED);
      const servers = [0, 1, 2, 3].map((i) => ({
        name: wire(`ns${i}.${text}`),
        addresses: [Uint8Array.of(192, 0, 2, i)],
      }));
      delegations.keep(name, bytes, 0, new Delegation(bytes, servers, nowS + ttl));
    };
    const find = (text: string) => {
      const bytes = wire(text);
      name.read(bytes, 0, bytes.length, SEED);
      const label = delegations.closest(name, bytes, 0);
      return label < 0 ? null : delegations.delegation(name, bytes, label);
    };
    keep("com", 86_400);
    for (let i = 0; i < 30_000; i++) {
      keep(`z${i}.com`, 3_600);
      if (i % 100 === 0) assert.equal(find("www.z.com")?.servers.length, 4, `${i}`);
    }
    assert.ok(delegations.usedBytes <= sizeBytes);
    nowS += 86_401;
    assert.equal(find("www.z.com"), null);
  },
);

Deno.test("NameServers are bounded, and those in use stay", none, () => {
  const servers = new NameServers({ remote: () => ({ transport: "udp" }) }, () => 0.5);
  const busy = servers.at(Uint8Array.of(10, 0, 0, 1));
  busy.open = 1;
  for (let i = 0; i < 2 * SERVERS_MAX; i++) servers.at(Uint8Array.of(192, 0, i >> 8, i & 255));
  assert.equal(servers.count, SERVERS_MAX);
  assert.equal(servers.at(Uint8Array.of(10, 0, 0, 1)), busy);
});

Deno.test("isAskable() leaves this host, links and groups out", none, () => {
  assert.ok(isAskable(Uint8Array.of(192, 168, 1, 1)));
  assert.ok(!isAskable(Uint8Array.of(127, 1, 2, 3)));
  assert.ok(!isAskable(new Uint8Array(16)));
  assert.ok(!isAskable(new Uint8Array(5)));
});
