// Goal: what the specification and its decisions say of the query log, statistics, leak tests, status
// and pausing holds for whoever asks. Method: one running service with a certificate, clients on
// addresses of loopback, an upstream that answers from a table; others for what is configured.

import assert from "node:assert/strict";
import { formatIp, type HostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { DEFAULT_GROUP } from "../e2e/api.ts";
import { makeAuthority, writePair } from "../e2e/certificates.ts";
import { ask, askTcp, framed, lookUp, nextId, TcpClient } from "../e2e/clients.ts";
import { FilterBench, type FilterBenchOptions, NULL_A, PLAIN } from "../e2e/filter_bench.ts";
import { HAS_IPV6, hasProgram, PERMISSIONS, until } from "../e2e/harness.ts";
import { assertShape, ENTRY, LEAK_TEST, OUTCOMES, STATISTICS, STATUS } from "./shapes.ts";

const OPTIONS = { permissions: PERMISSIONS } as const;
const [UNKNOWN, KID] = ["127.0.0.1", "127.0.3.2"];
const DOMAIN = "dns.svc.test";
const WEEK_SECONDS = 604_800;
const LIMIT_MAX = 1_000;
const CATALOGUE = {
  blocked_services: [{ id: "chat", name: "Chat", rules: ["||chat.example^"], group: "messenger" }],
  groups: [{ id: "messenger" }],
};
interface TopClient {
  readonly name: string;
  readonly address: string;
  readonly count: number;
}

interface Entry {
  readonly time: string;
  readonly name: string;
  readonly outcome: string;
  readonly [field: string]: unknown;
}

async function page(bench: FilterBench, query = ""): Promise<{ entries: Entry[]; next: unknown }> {
  const answer = await bench.api.call("GET", `querylog?${query}`);
  assert.ok(Array.isArray(answer.entries), JSON.stringify(answer));
  return answer;
}

const entries = async (bench: FilterBench, query = "") => (await page(bench, query)).entries;

/** The one entry of a name. */
async function entryOf(bench: FilterBench, name: string): Promise<Entry> {
  const found = (await entries(bench, `name=${name}`)).filter((entry) => entry.name === name);
  assert.equal(found.length, 1, `${name}: ${JSON.stringify(found)}`);
  return found[0];
}

async function refused(bench: FilterBench, path: string): Promise<void> {
  const { status, error } = await bench.api.call("GET", path);
  assert.deepEqual([status, error?.code], [400, "bad_request"], path);
}

/** Asks over QUIC, as the client with the ID `phone`. */
async function askQuic({ ip, port }: HostPort, ca: string): Promise<void> {
  const conn = await Deno.connectQuic<false>({
    ...{ hostname: formatIp(ip), port, serverName: `phone.${DOMAIN}` },
    ...{ caCerts: [ca], alpnProtocols: ["doq"] },
  });
  const stream = await conn.createBidirectionalStream();
  const writer = stream.writable.getWriter();
  await writer.write(framed([encodeQuery("over-doq.example", Qtype.A, { id: 0 })]));
  await writer.close();
  let length = 0;
  for await (const chunk of stream.readable) length += chunk.length;
  assert.ok(length > 0, "an answer");
  conn.close();
}

async function makeDirectory(stack: AsyncDisposableStack): Promise<string> {
  const directory = await Deno.makeTempDir({ prefix: "svc-conformance-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  return directory;
}

/** A service with every outcome but recursion, and every transport, at hand. */
async function prepare(stack: AsyncDisposableStack): Promise<FilterBenchOptions> {
  const directory = await makeDirectory(stack);
  await Deno.writeTextFile(`${directory}/services.json`, JSON.stringify(CATALOGUE));
  const authority = await makeAuthority();
  await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
  await writePair(
    directory,
    "server",
    await authority.issue({ names: [DOMAIN, `*.${DOMAIN}`], ips: ["127.0.0.1"] }),
  );
  const listen = ["127.0.0.1:0"];
  return {
    directory,
    special: { "failing.example": { rcode: Rcode.ServFail } },
    config: {
      "server.tls": {
        cert: "server.crt",
        key: "server.key",
        server_name: DOMAIN,
        dot: listen,
        doh: listen,
        doq: listen,
      },
      filter: {
        rules: ["||ads.example^", "||moved.example^$dnsrewrite=192.0.2.9"],
        services: true,
        services_file: "services.json",
      },
    },
  };
}

Deno.test("Other behaviors, 1 and 2, and decisions, 5", OPTIONS, async (t) => {
  await using stack = new AsyncDisposableStack();
  await using bench = await FilterBench.start(await prepare(stack));
  const { api, service } = bench;
  const step = (name: string, fn: () => Promise<void>) => t.step(name, fn);
  const kids = await api.create("groups", {
    name: "kids",
    safe_search: true,
    blocked_services: [{ service: "chat" }],
  });
  await api.create("clients", { name: "kid", addresses: [KID], ids: ["phone"], group: kids });
  await api.create("records", { name: "nas.example", type: "A", value: "192.0.2.5" });

  await step("the query log is on by default, with every field of an entry", async () => {
    await bench.check([["plain.example", PLAIN]]);
    const entry = await entryOf(bench, "plain.example");
    assertShape(entry, ENTRY);
    const { id: _, time: __, duration_us: ___, ...rest } = entry;
    assert.deepEqual(rest, {
      client: UNKNOWN,
      client_name: null,
      client_id: null,
      group: DEFAULT_GROUP,
      protocol: "udp",
      name: "plain.example",
      type: "A",
      outcome: "forwarded",
      rcode: "NOERROR",
      rule: null,
      list: null,
      answers: ["198.51.100.1"],
      upstream: bench.upstream.text,
      cached: false,
      dnssec: null,
      dnssec_reason: null,
      node: (await api.call("GET", "status")).node,
    });
  });
  await step("health.svc.test is left out of the query log, another name is not", async () => {
    for (const name of ["health.svc.test", "HEALTH.svc.Test"]) {
      await bench.ask(name);
      await askTcp(service.address, name, Qtype.AAAA);
    }
    await bench.ask("other.svc.test");
    const names = (await entries(bench, "name=svc.test")).map(({ name }) => name);
    assert.deepEqual(names, ["other.svc.test"]);
    assert.deepEqual(bench.upstream.about("other.svc.test"), [], "never forwarded");
  });
  await step("each outcome has its name", async () => {
    await bench.ask("plain.example");
    await bench.ask("nas.example");
    await bench.ask("www.ads.example");
    await bench.ask("moved.example");
    await bench.ask("www.bing.com", KID);
    await ask(service.address, "elsewhere.example", Qtype.A, { rd: false });
    await bench.ask("failing.example");
    const want = [
      ["cached", "plain.example", "NOERROR", null, null],
      ["local", "nas.example", "NOERROR", null, null],
      ["blocked", "www.ads.example", "NOERROR", "||ads.example^", "rules"],
      ["rewritten", "moved.example", "NOERROR", "||moved.example^$dnsrewrite=192.0.2.9", "rules"],
      ["safe_search", "www.bing.com", "NOERROR"],
      ["refused", "elsewhere.example", "REFUSED", null, null],
      ["failed", "failing.example", "SERVFAIL", null, null],
    ];
    for (const [outcome, name, ...rest] of want) {
      const found = (await entries(bench, `outcome=${outcome}`)).find((e) => e.name === name);
      assert.ok(found !== undefined, `${name} is ${outcome}`);
      const { rcode, rule, list } = found;
      assert.deepEqual([rcode, rule, list].slice(0, rest.length), rest, String(outcome));
      assert.equal(found.cached, outcome === "cached");
    }
    assert.deepEqual(await entries(bench, "outcome=recursed"), []);
  });
  await step("markers: blocks by a service as service:<id> with the rule", async () => {
    await bench.ask("a.chat.example", KID);
    const { outcome, list, rule, client, client_name, group } = await entryOf(
      bench,
      "a.chat.example",
    );
    assert.deepEqual([outcome, list, rule], ["blocked", "service:chat", "||chat.example^"]);
    assert.deepEqual([client, client_name, group], [KID, "kid", kids]);
  });
  await step("markers: safe-search rewrites as safe_search", async () => {
    const { outcome, answers } = await entryOf(bench, "www.bing.com");
    assert.equal(outcome, "safe_search");
    assert.deepEqual(answers, ["strict.bing.com", "198.51.100.1"]);
  });
  await step("protocols distinguished: udp, tcp, dot, doh, doq", async () => {
    await bench.ask("over-udp.example");
    await askTcp(service.address, "over-tcp.example", Qtype.A);
    const told = [["over-udp.example", "udp"], ["over-tcp.example", "tcp"]];
    const { dot, doh, doq } = service.encrypted;
    const named: string[] = ["doq"];
    await askQuic(doq[0], await Deno.readTextFile(`${service.directory}/ca.crt`));
    if (hasProgram("kdig")) {
      await lookUp("kdig", dot[0], `+tls +tls-sni=phone.${DOMAIN} over-dot.example`);
      await lookUp("kdig", doh[0], "+https=/dns-query/phone over-doh.example");
      named.push("dot", "doh");
    }
    for (const protocol of named) {
      told.push([`over-${protocol}.example`, protocol]);
      const { client_id, client_name, client } = await entryOf(bench, `over-${protocol}.example`);
      assert.deepEqual([client_id, client_name, client], ["phone", "kid", UNKNOWN], protocol);
    }
    for (const [name, protocol] of told) {
      assert.equal((await entryOf(bench, name)).protocol, protocol);
    }
  });
  await querylogParameters(bench, step);
  await statistics(bench, step);
  await leakTests(bench, step);
  await statusAndPause(bench, step);
  service.assertCalm();
});

type Step = (name: string, fn: () => Promise<void>) => Promise<unknown>;

async function querylogParameters(bench: FilterBench, step: Step): Promise<void> {
  await step("querylog: entries newest first, plus next, null at the end", async () => {
    const { entries, next } = await page(bench, `limit=${LIMIT_MAX}`);
    assert.equal(next, null);
    const times = entries.map(({ time }) => time);
    assert.deepEqual(times, times.toSorted().reverse());
    for (const entry of entries) {
      assertShape(entry, ENTRY);
      assert.ok(OUTCOMES.includes(entry.outcome), entry.outcome);
    }
  });
  await step("querylog: next is the cursor to page, each entry once", async () => {
    const all = await entries(bench);
    const paged: Entry[] = [];
    let [next, pages] = ["", 0];
    do {
      const answer = await page(bench, `limit=2${next === "" ? "" : `&next=${next}`}`);
      assert.ok(answer.entries.length <= 2);
      paged.push(...answer.entries);
      next = String(answer.next ?? "");
      // What is new meanwhile moves no page.
      if (pages++ === 0) await bench.ask("between-pages.example");
    } while (next !== "");
    assert.deepEqual(paged, all);
    assert.equal(pages, Math.ceil(all.length / 2));
  });
  await step("querylog: next goes with the filters", async () => {
    const first = await page(bench, "outcome=blocked&limit=1");
    const second = await page(bench, `outcome=blocked&limit=1&next=${first.next}`);
    assert.deepEqual(
      [...first.entries, ...second.entries],
      await entries(bench, "outcome=blocked"),
    );
    assert.equal(second.next, null);
  });
  await step("querylog: outcome, client and name, alone and together", async () => {
    const all = await entries(bench);
    for (const outcome of OUTCOMES) {
      const want = all.filter((entry) => entry.outcome === outcome);
      assert.deepEqual(await entries(bench, `outcome=${outcome}`), want, outcome);
    }
    const ofKid = all.filter(({ client }) => client === KID);
    assert.ok(ofKid.length >= 2 && ofKid.length < all.length);
    assert.deepEqual(await entries(bench, `client=${KID}`), ofKid);
    assert.deepEqual(await entries(bench, "client=192.0.2.200"), []);
    for (const text of ["CHAT", "chat.exa", "t.ex"]) {
      const want = all.filter(({ name }) => name.includes(text.toLowerCase()));
      assert.ok(want.length > 0, text);
      assert.deepEqual(await entries(bench, `name=${text}`), want, text);
    }
    assert.deepEqual(
      await entries(bench, `client=${KID}&outcome=blocked&name=chat`),
      ofKid.filter(({ outcome }) => outcome === "blocked"),
    );
  });
  await step("querylog: since and until, only entries after and before", async () => {
    const all = await entries(bench);
    const { time } = all[Math.floor(all.length / 2)];
    // The same moment as another zone tells it.
    const elsewhere = encodeURIComponent(
      new Date(Date.parse(time) + 7_200_000).toISOString().replace("Z", "+02:00"),
    );
    for (const at of [time, elsewhere]) {
      const after = await entries(bench, `since=${at}`);
      assert.deepEqual(after, all.filter((entry) => entry.time > time));
      const before = await entries(bench, `until=${at}`);
      assert.deepEqual(before, all.filter((entry) => entry.time < time));
    }
    const [last, first] = [all[0].time, all.at(-1)!.time];
    assert.deepEqual(
      await entries(bench, `since=${first}&until=${last}`),
      all.filter((entry) => entry.time > first && entry.time < last),
    );
    assert.deepEqual(await entries(bench, `since=${last}&until=${first}`), []);
  });
  await step("querylog: a bad query string is refused", async () => {
    const bad = [
      "limit=0",
      "limit=-1",
      "limit=x",
      "limit=1.5",
      `limit=${LIMIT_MAX + 1}`,
      "outcome=unheard-of",
      "since=yesterday",
      "until=2026-13-01T00:00:00Z",
      "next=%40",
      "nonsense=1",
      "limit=1&limit=2",
    ];
    for (const query of bad) await refused(bench, `querylog?${query}`);
  });
}

async function statistics(bench: FilterBench, step: Step): Promise<void> {
  const { api } = bench;
  await step("stats: counts per hour by outcome, and the most asked", async () => {
    const all = await entries(bench, `limit=${LIMIT_MAX}`);
    const told = await api.call("GET", "stats?hours=2");
    assertShape(told, STATISTICS, "statistics");
    assert.equal(told.total, all.length);
    for (const outcome of OUTCOMES) {
      const want = all.filter((entry) => entry.outcome === outcome).length;
      assert.equal(told.outcomes[outcome], want, outcome);
      const perHour = told.series.map((row: Record<string, number>) => row[outcome]);
      assert.equal(perHour.reduce((sum: number, count: number) => sum + count, 0), want, outcome);
    }
    const counted = (of: readonly unknown[]) => {
      const counts = new Map<unknown, number>();
      for (const name of of) counts.set(name, (counts.get(name) ?? 0) + 1);
      return counts;
    };
    const blocked = all.filter(({ outcome }) => outcome === "blocked");
    const wants = {
      names: counted(all.map(({ name }) => name)),
      blocked: counted(blocked.map(({ name }) => name)),
      clients: counted(all.map(({ client_name, client }) => client_name ?? client)),
    };
    for (const [kind, want] of Object.entries(wants)) {
      const top: { name: string; count: number }[] = told.top[kind];
      assert.deepEqual(new Map(top.map(({ name, count }) => [name, count])), want, kind);
      const counts = top.map(({ count }) => count);
      assert.deepEqual(counts, counts.toSorted((a, b) => b - a), kind);
    }
  });
  await step("stats: hours from 1 to 720, one row each", async () => {
    for (const hours of [1, 24, 720]) {
      const told = await api.call("GET", `stats?hours=${hours}`);
      assert.deepEqual([told.hours, told.series.length, told.scope], [hours, hours, "node"]);
      const times = told.series.map(({ time }: { time: string }) => Date.parse(time));
      for (let i = 1; i < hours; i++) assert.equal(times[i] - times[i - 1], 3_600_000);
    }
    for (const hours of ["0", "721", "-1", "1.5", "x", ""]) {
      await refused(bench, `stats?hours=${hours}`);
    }
  });
  await step("stats: scope=cluster names the nodes included", async () => {
    const { node } = await api.call("GET", "status");
    const told = await api.call("GET", "stats?scope=cluster&hours=2");
    assertShape(told, STATISTICS, "statistics");
    assert.deepEqual([told.scope, told.nodes, told.unreachable], ["cluster", [node], []]);
    assert.equal(told.total, (await api.call("GET", "stats?hours=2")).total);
    await refused(bench, "stats?scope=everything");
  });
}

async function leakTests(bench: FilterBench, step: Step): Promise<void> {
  const { api, service } = bench;
  await step("leak tests: a test with an ID and 8 names below leak.svc.test", async () => {
    const response = await fetch(`${api.base}/leak-tests`, { method: "POST" });
    const test = await response.json();
    assert.equal(response.status, 201);
    assertShape(test, LEAK_TEST, "test");
    assert.equal(new Set(test.names).size, 8);
    for (const name of test.names) assert.match(name, /^[^.]+\.leak\.svc\.test$/);
    assert.deepEqual([test.reached, test.lookups], [0, []]);
    const other = await api.call("POST", "leak-tests");
    assert.equal(new Set([...test.names, ...other.names]).size, 16, "no name is told twice");
  });
  await step("leak tests: which names were asked for, and by whom", async () => {
    const test = await api.call("POST", "leak-tests");
    const other = await api.call("POST", "leak-tests");
    const shown = async (id: string) => await api.call("GET", `leak-tests/${id}`);
    await bench.ask(test.names[0], KID);
    await bench.ask(test.names[0].toUpperCase(), KID);
    await askTcp(service.address, test.names[5], Qtype.AAAA);
    await bench.ask(`x${test.names[1]}`);
    await until("two names", async () => (await shown(test.id)).reached === 2);
    const told = await shown(test.id);
    assertShape(told, LEAK_TEST, "test");
    assert.deepEqual([told.id, told.names, told.created_at], [
      test.id,
      test.names,
      test.created_at,
    ]);
    assert.deepEqual(told.lookups, [
      { address: KID, protocol: "udp", client: "kid" },
      { address: UNKNOWN, protocol: "tcp", client: null },
    ]);
    assert.deepEqual(await shown(other.id), other, "another test knows nothing of it");
  });
  await step("leak tests: only the service answers the names", async () => {
    await bench.check([["forwarded.example", PLAIN]]);
    assert.ok(bench.upstream.about("forwarded.example").length > 0);
    assert.deepEqual(
      bench.upstream.seen.filter(({ name }) => /svc\.test$/i.test(name)),
      [],
    );
  });
  await step("leak tests: every test of the last hour, and no other", async () => {
    const { items } = await api.call("GET", "leak-tests");
    assert.equal(items.length, 4);
    assertShape(items, [LEAK_TEST], "tests");
    const { status, error } = await api.call("GET", "leak-tests/lt_0000000000000000");
    assert.deepEqual([status, error.code], [404, "not_found"]);
  });
  await step("leak tests are not audited", async () => {
    const { items } = await api.call("GET", "audit?limit=1000");
    assert.doesNotMatch(JSON.stringify(items), /leak|lt_/);
    assert.ok(items.length > 0);
  });
}

async function statusAndPause(bench: FilterBench, step: Step): Promise<void> {
  const { api, service } = bench;
  const AD: [string, string] = ["pause.ads.example", PLAIN];
  const blocks = async () => (await bench.ask("pause.ads.example")).startsWith(NULL_A);
  await step("health: ok while there is no problem", async () => {
    assert.deepEqual(await api.call("GET", "health"), { status: "ok" });
  });
  await step("status: every key, of what the node does", async () => {
    // Counts of the isolates come with their next report.
    await until("the cache", async () => (await api.call("GET", "status")).cache.entries > 0);
    const status = await api.call("GET", "status");
    assertShape(status, STATUS, "status");
    const { protection, paused_until, problems, api_docs } = status;
    assert.deepEqual([protection, paused_until, problems, api_docs], [true, null, [], false]);
    assert.deepEqual(status.cluster, await api.call("GET", "cluster"));
    assert.deepEqual(
      status.upstreams.map(({ address, healthy }: Record<string, unknown>) => [address, healthy]),
      [[bench.upstream.text, true]],
    );
    const protocols = status.listeners.map(({ protocol }: { protocol: string }) => protocol);
    assert.deepEqual([...new Set(protocols)].sort(), ["doh", "doq", "dot", "tcp", "udp"]);
    assert.ok(status.cache.hits > 0 && status.cache.misses > 0 && status.cache.bytes > 0);
    assert.equal(status.filter.rules, 2);
    const { length } = await entries(bench, `limit=${LIMIT_MAX}`);
    assert.deepEqual(status.querylog, { entries: length, dropped: 0 });
  });
  await step("pause: active to paused by PUT, on this node", async () => {
    assert.ok(await blocks());
    const beganMs = Date.now();
    const paused = await api.call("PUT", "pause", { seconds: 60 });
    assertShape(paused, { paused: "boolean", until: "timestamp?" });
    assert.equal(paused.paused, true);
    const untilMs = Date.parse(paused.until);
    assert.ok(untilMs >= beganMs + 60_000 && untilMs <= Date.now() + 61_000, paused.until);
    assert.equal((await api.call("GET", "status")).paused_until, paused.until);
    await bench.check([AD]);
    const [entry] = await entries(bench, "name=pause.ads.example");
    assert.deepEqual([entry.outcome, entry.rule, entry.list], ["forwarded", null, null]);
  });
  await step("pause: paused to active by DELETE", async () => {
    const resumed = await api.call("DELETE", "pause");
    assert.deepEqual(resumed, { paused: false, until: null });
    assert.ok(await blocks());
    assert.equal((await api.call("GET", "status")).paused_until, null);
  });
  await step("pause: paused to active when the time elapses", async () => {
    await api.call("PUT", "pause", { seconds: 60 });
    await api.call("PUT", "pause", { seconds: 1 }); // The latest one holds.
    await until("the end of the pause", blocks);
    assert.equal((await api.call("GET", "status")).paused_until, null);
  });
  await step("pause: every pause and resume is recorded", async () => {
    const { items } = await api.call("GET", "audit?limit=4");
    const actions = items.map(({ action }: { action: string }) => action);
    assert.deepEqual(actions, ["pause", "pause", "resume", "pause"]);
  });
  await step("pause: up to one week", async () => {
    const longest = await api.call("PUT", "pause", { seconds: WEEK_SECONDS });
    assert.equal(longest.paused, true);
    for (const seconds of [0, -1, 1.5, WEEK_SECONDS + 1, "60", null]) {
      const { status, error } = await api.call("PUT", "pause", { seconds });
      assert.deepEqual([status, error.code], [422, "invalid"], String(seconds));
    }
    assert.equal((await api.call("GET", "status")).paused_until, longest.until, "as it was");
    await api.call("DELETE", "pause");
  });
  service.assertCalm();
}

Deno.test(
  "paused to active: the service restarts; the log and statistics stay",
  OPTIONS,
  async () => {
    await using stack = new AsyncDisposableStack();
    const options = {
      directory: await makeDirectory(stack),
      config: { filter: { rules: ["||ads.example^"] } },
    };
    const blocked = async (bench: FilterBench) =>
      (await bench.ask("ads.example")).startsWith(NULL_A);
    {
      await using bench = await FilterBench.start(options);
      await bench.api.call("PUT", "pause", { seconds: WEEK_SECONDS });
      assert.equal(await blocked(bench), false);
      assert.equal((await entries(bench)).length, 1); // Written, however little time the end leaves.
      assert.equal((await bench.service.stop()).code, 0);
    }
    await using bench = await FilterBench.start(options);
    assert.equal((await bench.api.call("GET", "status")).paused_until, null);
    const outcomes = (await entries(bench)).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ["forwarded"]);
    assert.equal(await blocked(bench), true);
    assert.equal((await bench.api.call("GET", "stats?hours=2")).total, 2);
    assert.deepEqual((await bench.api.call("GET", "leak-tests")).items, [], "kept in memory");
  },
);

Deno.test("addresses may be anonymised; over the limit is not logged", OPTIONS, async (t) => {
  await using bench = await FilterBench.start({
    config: {
      querylog: { anonymize: true },
      "server.rate_limit": { queries_per_second: 1, burst: 4, exempt: [] },
    },
  });
  const { service } = bench;
  await t.step("to /24", async () => {
    await bench.ask("www.example", "127.0.9.77");
    const entry = await entryOf(bench, "www.example");
    assert.equal(entry.client, "127.0.9.0");
    assert.equal((await entries(bench, "client=127.0.9.5")).length, 1);
    assert.equal((await entries(bench, "client=127.0.8.77")).length, 0);
    const { top } = await bench.api.call("GET", "stats?hours=2");
    const clients = top.clients.map((
      { name, address, count }: TopClient,
    ) => [name, address, count]);
    assert.deepEqual(clients, [["127.0.9.0", "127.0.9.0", 1]]);
  });
  await t.step("to /56", async () => {
    if (!HAS_IPV6) return;
    await ask(service.address6, "six.example", Qtype.A);
    assert.equal((await entryOf(bench, "six.example")).client, "::");
  });
  await t.step("TCP over the limit is answered REFUSED and not logged", async () => {
    using client = await TcpClient.connect(service.address);
    const rcodes: number[] = [];
    for (let i = 0; i < 40; i++) {
      await client.send(encodeQuery(`over${i}.example`, Qtype.A, { id: nextId() }));
      rcodes.push((await client.message()).rcode);
    }
    const answered = rcodes.filter((rcode) => rcode === Rcode.NoError).length;
    const over = rcodes.filter((rcode) => rcode === Rcode.Refused).length;
    assert.ok(answered >= 4 && over > 0 && answered + over === 40, rcodes.join());
    assert.equal((await entries(bench, "name=over")).length, answered);
    assert.deepEqual(await entries(bench, "outcome=refused"), []);
  });
  assert.equal(service.count("sending telemetry"), 0);
  service.assertCalm();
});
