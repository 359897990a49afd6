// Goal: a change that was answered holds for the very next query, on every isolate and for whoever
// asks. Method: the real isolates on a real port, the real policy, and dig from two addresses of
// loopback; the state is changed as the store would.

import assert from "node:assert/strict";
import { parseIp } from "../../src/addr/mod.ts";
import { Policy } from "../../src/node/policy.ts";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { compileRules, DnsSupervisor } from "../../src/isolate/mod.ts";
import { openSeats } from "../../src/isolate/seats.ts";
import { openNative } from "../../src/native/mod.ts";
import { baseOf, type FakePolicy, policyState } from "../../src/snapshot/fakes.ts";
import { decode, exchangeUdp, lookUp, nextId } from "./clients.ts";
import { address, FakeUpstream, type Seen } from "./fake_upstream.ts";
import { HAS_IPV6, hasProgram, pause, until } from "./harness.ts";

const PERMISSIONS = { net: true, ffi: true, read: true, run: true, env: true } as const;
const IGNORE = Deno.build.os !== "linux" || !hasProgram("dig");
const SEED = 77;
const WORKERS = 2;
/** Questions from new ports: each isolate gets some of them. */
const ROUNDS = 24;
const POLL_MS = 100;
/** Isolates close their last sockets a while after their end. */
const CLOSING_MS = 1_200;

const [ONE, TWO, ONE6] = ["127.0.0.1", "127.0.0.2", "::1"];

/** Isolates, their policy, and an upstream that answers every name. */
class Running {
  private constructor(
    readonly supervisor: DnsSupervisor,
    readonly policy: Policy,
    readonly upstream: FakeUpstream,
  ) {}

  static async start(fake: FakePolicy): Promise<Running> {
    const upstream = await FakeUpstream.start((query: Seen) => address(query, "198.51.100.1"));
    let supervisor: DnsSupervisor | null = null;
    const policy = new Policy({
      seed: SEED,
      state: policyState(fake),
      base: baseOf(fake, SEED),
      compile: compileRules,
      publish: (data) => supervisor?.publish(data) ?? Promise.resolve(),
    });
    const { address: endpoint, text } = upstream;
    const options = {
      seed: SEED,
      listen: [parseIp(ONE)!, ...HAS_IPV6 ? [parseIp(ONE6)!] : []].map((ip) => ({ ip, port: 0 })),
      openMax: 1_024,
      lostDomains: [],
      upstreams: [{
        transport: "udp" as const,
        address: text,
        endpoint,
        timeoutMs: 10_000,
        domains: [],
      }],
      strategy: { kind: "order" as const, atOnce: 1 },
      cacheBytes: 1024 * 1024,
      ttl: { min: 0, max: 86_400, negativeMax: 3_600 },
      serveStale: 0,
      prefetch: false,
      trust: null,
      recursion: null,
      dns64: null,
      rebindingExempt: [],
      failClosed: false,
      isShutIn: true,
      traces: null,
      rateLimit: null,
      neverLimited: [],
      requireClientId: false,
      tcp: {
        connectionsMax: 64,
        connectionsPerClientMax: 64,
        queriesMax: 16,
        idleMs: 10_000,
        unreadBytesMax: 1024 * 1024,
      },
      tls: null,
    };
    const native = openNative();
    const { listen } = options;
    const seats = native === null ? null : openSeats(native, { listen, dot: [], doh: [] }, WORKERS);
    supervisor = new DnsSupervisor(options, seats, policy.data);
    await supervisor.start();
    return new Running(supervisor, policy, upstream);
  }

  /** What dig from an address is told, in short: the data of each record. */
  async dig(from: string, question: string): Promise<string> {
    const server = this.supervisor.listening[from === ONE6 ? 1 : 0];
    const told = await lookUp("dig", server, `-b ${from} +short ${question}`);
    return told.trim().split("\n").join(" ");
  }

  /** The answers to one question, from a new port each time; of IPv4 loopback. */
  async askOften(name: string): Promise<Set<string>> {
    const [server] = this.supervisor.listening;
    const told = await Promise.all(Array.from({ length: ROUNDS }, async () => {
      const packet = encodeQuery(name, Qtype.A, { id: nextId() });
      return decode(await exchangeUdp(server, packet)).answers.map(({ data }) => data).join(" ");
    }));
    return new Set(told);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.supervisor.stop(0);
    await this.upstream.close();
    await new Promise((resolve) => setTimeout(resolve, CLOSING_MS));
  }
}

const UPSTREAM = "198.51.100.1";
const FAKE: FakePolicy = {
  lists: { ads: "||ads.example^\n", adult: "||adult.example^\n" },
  groups: {
    default: { lists: ["ads"] },
    kids: { lists: ["ads", "adult"] },
    free: { filtering: false },
  },
  clients: { tablet: { addresses: [TWO, ONE6], group: "kids" } },
  records: [
    "nas.example A 192.0.2.1",
    "*.wild.example A 192.0.2.2",
    "www.example CNAME cdn.test",
    "alias.example CNAME nas.example",
  ],
};

Deno.test({
  name: "clients get what their group says, from the first query on",
  permissions: PERMISSIONS,
  ignore: IGNORE,
  sanitizeResources: false,
  fn: async (t) => {
    await using running = await Running.start(FAKE);
    const rows = [
      [ONE, "ads.example", "0.0.0.0"],
      [TWO, "ads.example", "0.0.0.0"],
      [ONE, "adult.example", UPSTREAM],
      [TWO, "adult.example", "0.0.0.0"],
      [TWO, "+tcp adult.example", "0.0.0.0"],
      [ONE, "+tcp adult.example", UPSTREAM],
      [ONE, "nas.example", "192.0.2.1"],
      [ONE, "nas.example AAAA", ""],
      [TWO, "a.b.wild.example", "192.0.2.2"],
      [ONE, "alias.example", "nas.example. 192.0.2.1"],
      [ONE, "www.example", `cdn.test. ${UPSTREAM}`],
      [TWO, "www.example", `cdn.test. ${UPSTREAM}`],
      ...HAS_IPV6
        ? [[ONE6, "adult.example", "0.0.0.0"], [ONE6, "+tcp adult.example", "0.0.0.0"]]
        : [],
    ] as const;
    for (const [from, question, want] of rows) {
      await t.step(`${question} from ${from}`, async () => {
        assert.equal(await running.dig(from, question), want);
      });
    }
  },
});

Deno.test({
  name: "a change holds on every isolate once it is answered",
  permissions: PERMISSIONS,
  ignore: IGNORE,
  sanitizeResources: false,
  fn: async (t) => {
    await using running = await Running.start(FAKE);
    const { policy } = running;
    const group = (name: string) => ({
      ...FAKE,
      clients: { me: { addresses: [ONE], group: name } },
    });
    const steps: readonly (readonly [string, FakePolicy, name: string, want: string])[] = [
      ["a client comes to be", group("kids"), "adult.example", "0.0.0.0"],
      ["it changes its group", group("free"), "adult.example", UPSTREAM],
      ["it goes", { ...FAKE, clients: {} }, "ads.example", "0.0.0.0"],
      ["a custom exception", { ...FAKE, rules: ["@@||ads.example^"] }, "ads.example", UPSTREAM],
      ["a custom rule", { ...FAKE, rules: ["||cdn.test^"] }, "cdn.test", "0.0.0.0"],
      ["a list is turned off", { ...FAKE, disabledLists: ["ads"] }, "ads.example", UPSTREAM],
      ["a record", { ...FAKE, records: ["ads.example A 192.0.2.9"] }, "ads.example", "192.0.2.9"],
      ["a setting", { ...FAKE, settings: { protection: false } }, "ads.example", UPSTREAM],
      ["as at first", FAKE, "ads.example", "0.0.0.0"],
    ];
    for (const [what, fake, name, want] of steps) {
      await t.step(what, async () => {
        await policy.update(policyState(fake));
        assert.deepEqual(await running.askOften(name), new Set([want]));
      });
    }
    await t.step("a pause, and its end by the clock", async () => {
      await policy.pause(Date.now() + 1_500);
      assert.deepEqual(await running.askOften("ads.example"), new Set([UPSTREAM]));
      const isOver = async () => await running.dig(ONE, "ads.example") === "0.0.0.0";
      await until("the end of the pause", isOver);
      assert.ok(Date.now() >= policy.pausedUntilMs, "not before its time");
    });
    assert.equal(running.supervisor.crashes, 0);
  },
});

Deno.test({
  name: "a schedule switches at its minute without a word from the main isolate",
  permissions: PERMISSIONS,
  ignore: IGNORE,
  sanitizeResources: false,
  fn: async () => {
    // A window that ends with the minute in which this starts, or with the next.
    const nowMs = Date.now();
    const endMs = Math.ceil((nowMs + 3_000) / 60_000) * 60_000;
    const end = new Date(endMs).toISOString().slice(11, 16);
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
    const isMidnight = end === "00:00";
    const earlier = isMidnight ? ["12:00", "24:00"] : ["00:00", end];
    const later = isMidnight ? ["00:00", "12:00"] : [end, "24:00"];
    const window = ([start, until]: readonly string[]) => ({
      time_zone: "UTC",
      windows: [{ days: [...days], start, end: until }],
    });
    await using running = await Running.start({
      lists: { before: "||before.example^\n", after: "||after.example^\n" },
      groups: { default: { lists: ["before@before", "after@after"] } },
      schedules: { before: window(earlier), after: window(later) },
    });
    const first = [
      await running.dig(ONE, "before.example"),
      await running.dig(ONE, "after.example"),
    ];
    if (Date.now() < endMs) assert.deepEqual(first, ["0.0.0.0", UPSTREAM]);
    const { generation } = running.policy.data;
    await until("the minute of the switch", () => Date.now() >= endMs - POLL_MS, 90_000);
    await until("the switch", async () => {
      await pause(POLL_MS);
      const hasSwitched = await running.dig(ONE, "after.example") === "0.0.0.0";
      if (hasSwitched) assert.ok(Date.now() >= endMs, "not before its minute");
      return hasSwitched;
    });
    assert.deepEqual(await running.askOften("after.example"), new Set(["0.0.0.0"]));
    assert.deepEqual(await running.askOften("before.example"), new Set([UPSTREAM]));
    assert.equal(running.policy.data.generation, generation, "nothing was built");
  },
});

Deno.test({
  name: "an edit of one client among ten thousand in a thousand groups holds for the next query",
  permissions: PERMISSIONS,
  ignore: IGNORE,
  sanitizeResources: false,
  fn: async () => {
    const groups = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`group ${i}`, { lists: ["ads"] }]),
    );
    const clients = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, i) => [`client ${i}`, {
        addresses: [`10.${i >> 8}.${i & 255}.1`],
        group: `group ${i % 1_000}`,
      }]),
    );
    const fake: FakePolicy = { ...FAKE, groups: { ...FAKE.groups, ...groups }, clients };
    await using running = await Running.start(fake);
    const state = policyState(fake);
    const edited = (group: string) => {
      const one = policyState({ ...FAKE, clients: { me: { addresses: [ONE], group } } });
      const all = new Map([...state.collections.clients, ...one.collections.clients]);
      return { ...state, collections: { ...state.collections, clients: all } };
    };
    for (let i = 0; i < 10; i++) {
      await running.policy.update(edited(i % 2 === 0 ? "free" : "kids"));
      const want = i % 2 === 0 ? UPSTREAM : "0.0.0.0";
      assert.deepEqual(await running.askOften("adult.example"), new Set([want]));
    }
  },
});
