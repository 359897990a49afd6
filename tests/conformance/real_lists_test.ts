// Goal: whole lists of the public filter as an independent engine says, each for its own group, and
// the services of a real catalogue can be blocked. Method: one service loads them all by path; each
// list has a group with one client, which asks from an address of its own.

import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../prng.ts";
import { Api, DEFAULT_GROUP } from "../e2e/api.ts";
import { Asker, type Question } from "../e2e/asker.ts";
import { FakeUpstream } from "../e2e/fake_upstream.ts";
import { PERMISSIONS, Service, sharedFile } from "../e2e/harness.ts";

const EDE_BLOCKED = 15;
/** How far two engines may differ in what they count as a rule of a list. */
const COUNTS_DIFFER_MAX = 0.01;
/** Rules of all services of the catalogue, roughly. */
const SERVICE_RULES_MAX = 5_000;
/** Verdicts of each list that are also held against `explain`. */
const EXPLAINED = 25;

interface Verdicts {
  readonly supported_rules?: number;
  readonly unsupported_lines?: number;
  readonly queries: readonly {
    readonly name: string;
    readonly outcome: "pass" | "blocked";
    readonly rule?: string;
    readonly kind: string;
  }[];
}

interface ListItem {
  readonly spec: { readonly name: string };
  readonly status: { readonly rules: number };
}

interface ServiceItem {
  readonly id: string;
  readonly name: string;
  readonly rules: readonly string[];
}

const VERDICTS = sharedFile("vectors/filter-lists.json");
const SERVICES = sharedFile("lists/services.json");
const IGNORE = VERDICTS === null || SERVICES === null;

async function unpack(from: URL, to: string): Promise<void> {
  const { readable } = await Deno.open(from);
  await readable.pipeThrough(new DecompressionStream("gzip")).pipeTo(
    (await Deno.create(to)).writable,
  );
}

/** A service with the lists of `names` in its default group, each also in a group of its own. */
class Bench implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  private constructor(
    readonly service: Service,
    readonly api: Api,
    readonly upstream: FakeUpstream,
    /** The address whose client has this list alone. */
    readonly addresses: ReadonlyMap<string, string>,
  ) {}

  static async start(paths: readonly string[]): Promise<Bench> {
    await using stack = new AsyncDisposableStack();
    const directory = await Deno.makeTempDir({ prefix: "svc-conformance-" });
    stack.defer(() => Deno.remove(directory, { recursive: true }));
    await Deno.mkdir(`${directory}/lists`);
    const fileOf = (path: string) => path.replace(/^.*\//, "").replace(/\.gz$/, "");
    await Promise.all(paths.map((path) => {
      const from = sharedFile(path.replace(/^shared\//, ""));
      assert(from !== null, path);
      return unpack(from, `${directory}/lists/${fileOf(path)}`);
    }));
    await Deno.copyFile(SERVICES!, `${directory}/services.json`);
    const upstream = stack.use(await FakeUpstream.start());
    const lists = paths.map((path) => ({ name: path, path: `lists/${fileOf(path)}` }));
    const filter = { lists, services: true, services_file: "services.json" };
    const config = { upstream: [{ address: upstream.text }], filter };
    const service = stack.use(await Service.start({ directory, config }));
    const api = await Api.of(service);
    const addresses = new Map<string, string>();
    for (const { id, spec: { name } } of (await api.call("GET", "lists")).items) {
      const address = `127.0.2.${addresses.size + 1}`;
      const group = await api.create("groups", { name: `only ${name}`, lists: [{ list: id }] });
      await api.create("clients", { name, addresses: [address], group });
      addresses.set(name, address);
    }
    const bench = new Bench(service, api, upstream, addresses);
    bench.#stack.use(stack.move());
    return bench;
  }

  /** What was answered to a client of loopback: blocked, and by which rule, or not. */
  async ask(from: string, questions: readonly Question[]): Promise<(string | null)[]> {
    using asker = await Asker.open(this.service.address, from);
    return (await asker.askAll(questions)).map(({ name, rcode, ede, text, records }) => {
      assert.equal(rcode, "NOERROR", `${name}: ${text}`);
      assert.equal(records.includes("A 0.0.0.0"), ede === EDE_BLOCKED, `${records} ${text}`);
      return ede === EDE_BLOCKED ? text.slice(0, text.indexOf(" (")) : null;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Some of the elements, none twice. */
function sample<T>(all: readonly T[], count: number, prng: Prng): T[] {
  return all.map((element) => ({ element, at: prng.next() })).sort((a, b) => a.at - b.at)
    .slice(0, count).map(({ element }) => element);
}

Deno.test("svc run filters by real lists as an independent engine does", {
  permissions: PERMISSIONS,
  ignore: IGNORE,
}, async (t) => {
  const prng = new Prng(seedFromEnv());
  const verdicts: Readonly<Record<string, Verdicts>> =
    JSON.parse(await Deno.readTextFile(VERDICTS!)).lists;
  const paths = Object.keys(verdicts);
  assert(paths.length >= 6);
  await using bench = await Bench.start(paths);
  const { api, service, addresses } = bench;

  await t.step("the lists' status counts their rules", async () => {
    const { items } = await api.call("GET", "lists");
    assert.equal(items.length, paths.length);
    for (const { spec: { name }, status } of items) {
      assert.deepEqual([status.state, status.message], ["ok", null], name);
      assert.match(status.refreshed_at, /^\d{4}-.*Z$/);
      const { supported_rules, unsupported_lines = 0 } = verdicts[name];
      if (supported_rules === undefined) continue;
      // The verdicts count patterns as lines that are not read; what occurs twice is little.
      const least = supported_rules * (1 - COUNTS_DIFFER_MAX);
      const most = (supported_rules + unsupported_lines) * (1 + COUNTS_DIFFER_MAX);
      assert(
        status.rules > least && status.rules < most,
        `${name}: ${status.rules} of ${supported_rules} rules and ${unsupported_lines} lines`,
      );
      assert(status.unsupported <= unsupported_lines, `${name}: ${status.unsupported} unsupported`);
    }
    const { filter } = await api.call("GET", "status");
    const sum = items.reduce((sum: number, { status }: ListItem) => sum + status.rules, 0);
    assert(filter.rules >= sum && filter.rules < sum + SERVICE_RULES_MAX, `${filter.rules}`);
    assert(filter.memory_bytes > 0 && filter.generation > 0);
  });
  for (const [path, { queries }] of Object.entries(verdicts)) {
    await t.step(`${path}: ${queries.length} verdicts`, async () => {
      const got = await bench.ask(addresses.get(path)!, queries);
      const wrong = queries.flatMap(({ name, outcome, rule, kind }, i) => {
        const same = got[i] === null ? outcome === "pass" : outcome === "blocked";
        return same ? [] : [`${name} (${kind}): ${got[i]}, not ${outcome} by ${rule}`];
      });
      assert.deepEqual(wrong, []);
    });
    await t.step(`${path}: explain`, async () => {
      for (const { name, outcome } of sample(queries, EXPLAINED, prng)) {
        const from = addresses.get(path)!;
        const [rule] = await bench.ask(from, [{ name }]);
        const told = await api.call("GET", `explain?name=${name}&client=${from}`);
        assert.equal(told.outcome, outcome === "blocked" ? "blocked" : "forwarded", name);
        if (rule !== null) assert.equal(told.rule, rule, name);
      }
    });
  }
  service.assertCalm();
});

const BLOCKED = ["youtube", "tiktok", "whatsapp", "netflix", "playstation"];
/** What the catalogue holds and we do not read: wildcards, modifiers, regular expressions, blanks. */
const LEFT_OUT = /[*$ ]|^\/|^[^|]/;

/** Names that a rule of the catalogue covers, and names beside it. */
function namesOf(rule: string): { readonly covered: string[]; readonly beside: string[] } {
  const name = rule.replace(/^\|+/, "").replace(/\^$/, "");
  const below = `below.${name}`;
  const beside = [`x${name}`, `${name}.example`];
  return rule.startsWith("||")
    ? { covered: [name, below], beside }
    : { covered: [name], beside: [...beside, below] };
}

Deno.test("svc run blocks the services of a real catalogue", {
  permissions: PERMISSIONS,
  ignore: IGNORE,
}, async (t) => {
  await using bench = await Bench.start([]);
  const { api, service } = bench;
  const catalogue = JSON.parse(await Deno.readTextFile(SERVICES!)).blocked_services;
  const items: ServiceItem[] = (await api.call("GET", "services")).items;
  const byId = new Map(items.map((item) => [item.id, item]));

  await t.step("GET services lists those that have a rule we read", () => {
    for (const { id, rules } of catalogue as ServiceItem[]) {
      const readable = rules.filter((rule) => !LEFT_OUT.test(rule));
      assert.deepEqual(byId.get(id)?.rules ?? [], readable, id);
    }
    assert.equal(byId.has("icloud_private_relay"), false, "it has no blocking rule");
    assert(items.length > 130 && items.length <= catalogue.length);
  });
  const { spec: group } = await api.call("GET", `groups/${DEFAULT_GROUP}`);
  const block = async (ids: readonly string[]) => {
    const blocked_services = ids.map((service) => ({ service }));
    const put = await api.call("PUT", `groups/${DEFAULT_GROUP}`, { ...group, blocked_services });
    assert.equal(put.status, undefined, JSON.stringify(put));
  };
  const covered = BLOCKED.flatMap((id) => byId.get(id)!.rules.flatMap((r) => namesOf(r).covered));
  const ask = (names: readonly string[]) => bench.ask("127.0.0.1", names.map((name) => ({ name })));
  await t.step("none is blocked to begin with", async () => {
    assert.deepEqual((await ask(covered)).filter((rule) => rule !== null), []);
  });
  await t.step(`${BLOCKED.join(", ")} are blocked, and no other name`, async () => {
    await block([...BLOCKED, "unheard-of"]);
    const got = await ask(covered);
    assert.deepEqual(covered.filter((_, i) => got[i] === null), []);
    // Names beside one rule that another covers are none.
    const beside = BLOCKED.flatMap((id) => byId.get(id)!.rules.flatMap((r) => namesOf(r).beside))
      .filter((name) =>
        !covered.some((other) => name === other || name.endsWith(`.${other}`)) &&
        !name.startsWith("below.")
      );
    const others = [...byId.get("spotify")!.rules, ...byId.get("steam")!.rules];
    const free = [...beside, ...others.flatMap((rule) => namesOf(rule).covered)];
    const blocked = await ask(free);
    assert.deepEqual(free.filter((_, i) => blocked[i] !== null), []);
  });
  await t.step("explain names the service", async () => {
    for (const id of BLOCKED) {
      const [rule] = byId.get(id)!.rules;
      const told = await api.call("GET", `explain?name=${namesOf(rule).covered[0]}`);
      assert.deepEqual([told.outcome, told.rule, told.list], ["blocked", rule, `service:${id}`]);
    }
  });
  await t.step("each alone blocks its own names only", async () => {
    for (const id of BLOCKED) {
      await block([id]);
      const got = await ask(covered);
      const own = new Set(byId.get(id)!.rules.flatMap((rule) => namesOf(rule).covered));
      assert.deepEqual(
        covered.filter((_, i) => got[i] !== null),
        covered.filter((n) => own.has(n)),
      );
    }
  });
  service.assertCalm();
});

Deno.test("svc run shows 36 recommended lists and four presets", {
  permissions: PERMISSIONS,
  ignore: IGNORE,
}, async () => {
  await using bench = await Bench.start([]);
  const { items, presets } = await bench.api.call("GET", "lists/recommended");
  assert.equal(items.length, 36);
  assert.deepEqual(presets.map(({ name }: { name: string }) => name), [
    "Balanced",
    "Strict",
    "Family",
    "Don't break anything",
  ]);
  for (const { id } of presets) {
    assert(items.some((item: { presets: string[] }) => item.presets.includes(id)), id);
  }
  for (const { name, url, category } of items) {
    assert(name.length > 0 && url.startsWith("https://") && category.length > 0);
  }
});
