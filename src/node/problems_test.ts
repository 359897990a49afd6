import assert from "node:assert/strict";
import { parseHostPort } from "../addr/mod.ts";
import { dnsProblems, openResolverProblems, Problems } from "./problems.ts";

const none = { permissions: "none" } as const;

const ANSWERS = null;
const SILENT = "does not answer";

/** A report about upstreams: why each is left alone, or `ANSWERS`. */
const report = (...reasons: (string | null)[]) => ({
  cacheEntries: 0,
  cacheBytes: 0,
  cacheEvicted: 0,
  connections: { tcp: null, dot: null, doh: null, doq: null },
  cutOff: { unfinished: 0, unread: 0 },
  recursion: { servers: 0, zones: 0 },
  lacksSockets: false,
  clockSuspect: false,
  upstreams: reasons.map((reason) => ({
    healthy: reason === null,
    reason: reason ?? "",
    latencyMs: 1,
    failures: 0,
    sent: 0,
    failed: 0,
    calledOff: 0,
  })),
});

Deno.test("Problems.texts() are what lasts, and what is so at the moment", none, () => {
  const problems = new Problems();
  let passing = ["a list fails"];
  problems.watch("part", () => passing);
  problems.add("store", "no store");
  assert.deepEqual(problems.texts(), ["no store", "a list fails"]);
  passing = [];
  assert.deepEqual(problems.texts(), ["no store"]);
});

Deno.test("dnsProblems() names missing isolates, and upstreams that are away", none, () => {
  const two = { now: 2, wanted: 2 };
  const upstreams = [{ address: "192.0.2.1" }, { address: "tls://dns.example" }];
  const problems = (reports: ReturnType<typeof report>[], running = two) =>
    dnsProblems({ running, reports }, upstreams)
      .map((problem) => typeof problem === "string" ? problem : problem.message);
  assert.deepEqual(problems([]), [], "nobody said anything yet");
  assert.deepEqual(problems([report(ANSWERS, ANSWERS), report(ANSWERS, ANSWERS)]), []);
  assert.deepEqual(problems([report(ANSWERS, ANSWERS), report(ANSWERS, SILENT)]), [
    "upstream tls://dns.example does not answer",
  ]);
  assert.deepEqual(problems([report(SILENT, SILENT), report(SILENT, SILENT)]), [
    "upstream 192.0.2.1 does not answer",
    "upstream tls://dns.example does not answer",
    "no upstream answers",
  ]);
  assert.match(problems([], { now: 1, wanted: 2 }).join(), /^1 of 2 isolates answer/);
});

Deno.test("openResolverProblems() tells where anybody is answered", none, async (t) => {
  const listener = (text: string) =>
    ({ protocol: "udp", address: parseHostPort(text, 53)! }) as const;
  const rows: readonly (readonly [string[], boolean, string[], RegExp | null])[] = [
    [[], false, ["127.0.0.1", "0.0.0.0"], /^anybody who reaches 0\.0\.0\.0:53 is answered/],
    [[], false, ["[::]:53"], /reaches \[::\]:53 .* access\.allowed is empty.*PUT/],
    [[], false, ["192.168.1.5"], /192\.168\.1\.5:53/],
    [[], false, ["127.0.0.1", "[::1]:53"], null],
    [[], false, [], null],
    [[], true, ["0.0.0.0"], null],
    [["192.168.0.0/16"], false, ["0.0.0.0"], null],
  ];
  for (const [allowed, requireClientId, addresses, want] of rows) {
    await t.step(`${addresses} for ${allowed}`, () => {
      const access = { allowed, disallowed: [] };
      const found = openResolverProblems({ access }, { requireClientId }, addresses.map(listener));
      assert.equal(found.length, want === null ? 0 : 1);
      if (want !== null) assert.match(found[0], want);
    });
  }
});

Deno.test("Problems tell of a part that can't say what is wrong, and of the others", none, () => {
  const problems = new Problems();
  problems.watch("part", () => {
    throw new Error("no figures");
  });
  problems.watch("part", () => ["the disk is full"]);
  assert.deepEqual(problems.texts(), [
    "a part can't tell what is wrong with it: no figures",
    "the disk is full",
  ]);
});

Deno.test("Problems.now() tells since when each is so, whatever figures it has", none, () => {
  let nowMs = 1_000;
  const problems = new Problems(() => nowMs);
  const list = { code: "list", message: "Ads fails", resource: { type: "list", id: "li_1" } };
  let told: Parameters<Problems["watch"]>[1] = () => ["5 of 6 answer"];
  problems.watch("dns", () => told());
  const first = { code: "dns", message: "5 of 6 answer", resource: null, sinceMs: 1_000 };
  assert.deepEqual(problems.now(), [first]);
  nowMs = 2_000;
  told = () => ["4 of 6 answer", list];
  assert.deepEqual(problems.now(), [
    { ...first, message: "4 of 6 answer" },
    { ...list, sinceMs: 2_000 },
  ]);
  nowMs = 3_000;
  told = () => [{ ...list, message: "Ads still fails" }];
  assert.deepEqual(problems.now().map(({ sinceMs }) => sinceMs), [2_000]);
  told = () => [];
  assert.deepEqual(problems.now(), []);
  told = () => [list];
  assert.deepEqual(problems.now().map(({ sinceMs }) => sinceMs), [3_000], "it came again");
});
