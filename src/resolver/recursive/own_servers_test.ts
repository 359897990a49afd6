// Goal: who else serves a zone is found where those fail that are asked first. Method: zones of which
// one part of the servers is dumb, gone, or known to the zone alone.
import assert from "node:assert/strict";
import { AA_BIT, Qtype } from "../../dns/mod.ts";
import { type FakeServer, FakeZone, RecursorBench, says, serverOf } from "./fakes.ts";

const none = { permissions: "none" } as const;
const ROOT = "198.41.0.4";
const [COM, ONE, TWO] = ["192.0.2.1", "192.0.2.10", "192.0.2.11"];
const ANSWER = "203.0.113.1";

const rootZone = new FakeZone(".", [
  ". NS a.root-servers.net",
  `a.root-servers.net A ${ROOT}`,
  "com NS ns.com",
  `ns.com A ${COM}`,
]);

function bench(com: readonly string[], servers: Readonly<Record<string, FakeServer>>) {
  return new RecursorBench({
    servers: {
      [ROOT]: serverOf(rootZone),
      [COM]: serverOf(new FakeZone("com", com)),
      ...servers,
    },
  });
}

/** The zone's own word, which names more servers than the zone above does. */
function answering(...names: readonly string[]): FakeServer {
  return (query) => [
    says(query, {
      answer: [`${query.name} 60 A ${ANSWER}`],
      authority: names.map((name) => `example.com 86400 NS ${name}`),
    }, AA_BIT),
  ];
}

const BOTH = [
  "example.com 600 NS ns.example.com",
  `ns.example.com 600 A ${ONE}`,
  "other.com NS ns.other.com",
  `ns.other.com A ${TWO}`,
];
const otherZone = new FakeZone("other.com", [`ns.other.com A ${TWO}`]);

Deno.test("a server that the zone alone names is asked once the others are gone", none, () => {
  const own = answering("ns.example.com", "ns.other.com");
  const b = bench(BOTH, { [ONE]: own, [TWO]: (query) => [...serverOf(otherZone)(query)] });
  assert.match(b.resolve("www.example.com").answer, /203/);
  assert.equal(b.count(TWO), 0, "nobody looks for it as long as others answer");
  b.servers.set(ONE, () => []);
  b.servers.set(
    TWO,
    (query) => query.name.endsWith("other.com") ? serverOf(otherZone)(query) : own(query),
  );
  assert.match(b.resolve("mail.example.com").answer, /203/);
  assert.ok(b.count(TWO) > 0);
});

Deno.test("what a zone says of its servers is gone with its delegation", none, () => {
  const own = answering("ns.example.com", "ns.other.com");
  const b = bench(BOTH, {
    [ONE]: own,
    [TWO]: (query) => query.name.endsWith("other.com") ? serverOf(otherZone)(query) : own(query),
  });
  b.resolve("www.example.com");
  b.servers.set(COM, serverOf(new FakeZone("com", BOTH.slice(2))));
  b.servers.set(ONE, () => []);
  b.advance(601_000);
  assert.match(b.resolve("late.example.com").answer, /^NXDOMAIN/);
  assert.equal(
    b.sent.filter(({ address, name }) => address === TWO && name === "late.example.com").length,
    0,
  );
});

Deno.test("names that a zone has for its own servers lead to few queries", none, () => {
  const names = Array.from({ length: 40 }, (_, i) => `v${i}.other.com`);
  const b = bench(BOTH, {
    [ONE]: answering("ns.example.com", ...names),
    [TWO]: serverOf(new FakeZone("other.com", [])),
  });
  b.resolve("www.example.com");
  b.servers.set(ONE, () => []);
  b.resolve("mail.example.com");
  assert.ok(b.count(TWO) <= 20, `${b.count(TWO)} messages to others`);
});

const GLUELESS = [...BOTH.slice(0, 2), "example.com 600 NS ns.other.com", ...BOTH.slice(2)];
const dumb: FakeServer = (query) => [says(query, {}, AA_BIT)];

Deno.test("a server without a word leads on to one whose address is to be found", none, () => {
  const zone = new FakeZone("example.com", [`www.example.com A ${ANSWER}`]);
  const b = bench(GLUELESS, { [ONE]: dumb, [TWO]: serverOf(otherZone, zone) });
  assert.match(b.resolve("www.example.com").answer, /203/);
});

Deno.test("where nobody has a word, there is nothing", none, () => {
  const b = bench(GLUELESS, { [ONE]: dumb, [TWO]: () => [] });
  assert.match(b.resolve("www.example.com").answer, /^NOERROR/);
  const alone = bench(BOTH, { [ONE]: dumb });
  assert.match(alone.resolve("www.example.com").answer, /^NOERROR/);
  // Nobody else is to be asked.
  assert.equal(alone.sent.filter(({ name }) => name === "www.example.com").length, 1);
});

Deno.test("a DNAME that a chain passes twice is in the answer once", none, () => {
  const com = ["example.com NS ns.example.com", `ns.example.com A ${ONE}`];
  const b = bench(com, {
    [ONE]: (query) => {
      const { name } = query;
      const target = name.replace(/\.d\.example\.com$/, ".example.com");
      return target === name
        ? [says(query, { answer: [`${name} 60 A ${ANSWER}`] }, AA_BIT)]
        : [says(query, {
          answer: [`d.example.com 60 DNAME example.com`, `${name} 60 CNAME ${target}`],
        }, AA_BIT)];
    },
  });
  const { answer } = b.resolve("a.d.d.example.com", Qtype.A);
  assert.equal(answer.match(/DNAME/g)?.length, 1, answer);
  assert.equal(answer.match(/CNAME/g)?.length, 2, answer);
  assert.match(answer, /203/);
});
