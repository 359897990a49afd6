// Goal: the answers of an independent engine hold for single rules, as a client and the API see them.
// Method: each case's rules go in over the API, or into files of the service's lists; the answer
// comes over UDP, the upstream says what the case has, and `explain` must say what was answered.

import assert from "node:assert/strict";
import { parseIp } from "../../src/addr/mod.ts";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "../e2e/api.ts";
import { type Answer, Asker, brief } from "../e2e/asker.ts";
import {
  answer,
  FakeUpstream,
  type RecordSpec,
  type Seen,
  wireName,
} from "../e2e/fake_upstream.ts";
import { PERMISSIONS, Service, sharedFile } from "../e2e/harness.ts";

interface Case {
  readonly id: string;
  readonly rules?: readonly string[];
  readonly lists?: readonly (readonly string[])[];
  readonly query: { readonly name: string; readonly type: "A" | "AAAA" | "TXT" | "HTTPS" };
  readonly expect: {
    readonly outcome: "pass" | "blocked" | "answer" | "rcode";
    readonly answer?: readonly string[];
    readonly rcode?: string;
    readonly rule?: string;
  };
  /** Owner name, type and value of each record of the upstream's response. */
  readonly upstream?: readonly (readonly [string, "A" | "AAAA" | "CNAME", string])[];
  readonly settings?: Readonly<Record<string, unknown>>;
  /** `silent`: the specification says nothing; to be told, not to fail. */
  readonly status: "firm" | "spec-wins" | "silent";
}

/**
 * Cases that `decisions.md` answers otherwise: regular expressions and wildcards within names are
 * rules, and names of the host itself in hosts lines are left alone.
 */
const OPEN = ["m011", "m140", "m176", "m178", "m179", "m180"];

/** Settings as the cases spell them, and as the API does. */
const SPELLINGS: Readonly<Record<string, string>> = {
  "null address": "null_ip",
  REFUSED: "refused",
};
const SETTINGS = {
  protection: true,
  block_response: "null_ip",
  blocking_ipv4: null,
  blocking_ipv6: null,
};
const EDE_BLOCKED = 15;
/** Lists of one case at most. */
const LISTS = 2;
/** What the upstream says of a name that the case has nothing about. */
const PLAIN = { A: "198.51.100.77", AAAA: "2001:db8::77" };

/** The upstream's records for a query: those of the case, from the asked name on. */
function upstreamRecords({ upstream }: Case, name: string, type: number): RecordSpec[] {
  if (upstream === undefined) {
    if (type === Qtype.A) return [{ type, ttl: 300, data: PLAIN.A }];
    return type === Qtype.AAAA ? [{ type, ttl: 300, data: PLAIN.AAAA }] : [];
  }
  assert.equal(upstream[0][0].toLowerCase(), name.toLowerCase());
  return upstream.map(([owner, kind, value]) => ({
    name: owner,
    type: Qtype[kind],
    ttl: 300,
    data: kind === "CNAME" ? wireName(value) : parseIp(value)!,
  }));
}

/** What a case expects, as `brief` tells it, but for the rule. */
function wanted(test: Case): string {
  const { query: { type }, expect: { outcome, answer: addresses, rcode }, settings = {} } = test;
  if (outcome === "answer") return negativeOr(addresses!.map((ip) => `${type} ${ip}`));
  if (outcome === "rcode") return rcode === "REFUSED" ? "REFUSED" : `${rcode}; SOA 10`;
  if (outcome === "pass") {
    const records = test.upstream?.map(([, kind, value]) =>
      kind === "CNAME" ? `CNAME ${value.toLowerCase()}` : `${kind} ${value}`
    );
    if (records !== undefined) return ["NOERROR", ...records].join("; ");
    return type === "A" || type === "AAAA" ? `NOERROR; ${type} ${PLAIN[type]}` : "NOERROR";
  }
  const ede = `; EDE ${EDE_BLOCKED}`;
  if (settings.block_response === "REFUSED") return `REFUSED${ede}`;
  const nullAddress = { A: "0.0.0.0", AAAA: "::" }[type as string];
  const own = type === "A" ? settings.blocking_ipv4 : undefined;
  return negativeOr(nullAddress === undefined ? [] : [`${type} ${own ?? nullAddress}`]) + ede;
}

function negativeOr(records: readonly string[]): string {
  return ["NOERROR", ...records.length === 0 ? ["SOA 10"] : records].join("; ");
}

/** What was answered, without the rule that the extended error names and in lower-case names. */
function told(got: Answer): string {
  return brief({
    ...got,
    text: "",
    records: got.records.map((r) =>
      r.startsWith("CNAME") ? `CNAME ${r.slice(6).toLowerCase()}` : r
    ),
  });
}

/** The service, and what of it a case sets. */
class Bench {
  #rules: readonly string[] = [];
  readonly #ids: string[] = [];
  #lists = "[]";
  #settings = JSON.stringify(SETTINGS);

  constructor(readonly api: Api, readonly directory: string) {}

  async set({ rules = [], lists = [], settings = {} }: Case): Promise<void> {
    await this.#setRules(rules);
    const text = JSON.stringify(lists);
    if (text !== this.#lists) {
      this.#lists = text;
      await this.write(lists);
      assert.equal((await this.api.call("POST", "lists/refresh")).finished, true);
    }
    const spelt = Object.entries(settings).map(([key, value]) =>
      [key, SPELLINGS[value as string] ?? value] as const
    );
    const all = { ...SETTINGS, ...Object.fromEntries(spelt) };
    if (JSON.stringify(all) === this.#settings) return;
    this.#settings = JSON.stringify(all);
    await this.api.set(all);
  }

  async write(lists: readonly (readonly string[])[]): Promise<void> {
    assert(lists.length <= LISTS);
    for (let i = 0; i < LISTS; i++) {
      // A list that has lost all its rules is taken for damaged: one stays, about nothing asked.
      const lines = ["||unasked.example^", ...lists[i] ?? []];
      await Deno.writeTextFile(`${this.directory}/lists/${i}.txt`, lines.join("\n") + "\n");
    }
  }

  async #setRules(rules: readonly string[]): Promise<void> {
    if (rules.join("\n") === this.#rules.join("\n")) return;
    this.#rules = rules;
    await Promise.all(this.#ids.map((id) => this.api.call("DELETE", `rules/${id}`)));
    // One after the other: they are in this order in the case.
    this.#ids.length = 0;
    for (const rule of rules) {
      const { id, status } = await this.api.call("POST", "rules", { rule });
      // What can't be read is refused rather than left out in silence.
      if (id === undefined) assert.equal(status, 422, rule);
      else this.#ids.push(id);
    }
  }
}

const OUTCOMES = { pass: "forwarded", blocked: "blocked", answer: "rewritten", rcode: "rewritten" };

/** Compares what `explain` says about a case with what was answered. */
async function checkExplained(api: Api, test: Case, got: Answer, blocking: string): Promise<void> {
  const { query: { name, type }, expect } = test;
  const { outcome, rule, records, matches } = await api.call(
    "GET",
    `explain?name=${encodeURIComponent(name)}&type=${type}`,
  );
  const about = `explain ${name} ${type}`;
  assert.equal(outcome, OUTCOMES[expect.outcome], about);
  if (expect.rule !== undefined) assert.equal(rule, expect.rule, about);
  if (expect.outcome === "blocked") assert.equal(rule, blocking, about);
  if (expect.outcome === "answer" || got.rcode === "NOERROR" && outcome === "blocked") {
    assert.deepEqual(
      records.filter((record: string) => record !== "NOERROR").toSorted(),
      got.records.map((record) => record.split(" ")[1]).toSorted(),
      about,
    );
  }
  if (expect.outcome === "rcode") assert.deepEqual(records, [expect.rcode], about);
  for (const match of matches) assert.equal(typeof match.list_name, "string", about);
}

const VECTORS = sharedFile("vectors/filter.json");

Deno.test("svc run answers every case of filter.json as the case says", {
  permissions: PERMISSIONS,
  ignore: VECTORS === null,
}, async (t) => {
  const cases: Case[] = JSON.parse(await Deno.readTextFile(VECTORS!)).cases;
  assert(cases.length > 250, `only ${cases.length} cases`);
  let current = cases[0];
  await using upstream = await FakeUpstream.start((query: Seen) =>
    answer(query, { answers: upstreamRecords(current, query.name, query.type) })
  );
  await using directory = new AsyncDisposableStack();
  const path = await Deno.makeTempDir({ prefix: "svc-conformance-" });
  directory.defer(() => Deno.remove(path, { recursive: true }));
  await Deno.mkdir(`${path}/lists`);
  const lists = Array.from(
    { length: LISTS },
    (_, i) => ({ name: `L${i}`, path: `lists/${i}.txt` }),
  );
  await new Bench(null as never, path).write([]);
  await using service = await Service.start({
    directory: path,
    config: { upstream: [{ address: upstream.text }], filter: { lists } },
  });
  const api = await Api.of(service);
  const bench = new Bench(api, path);
  using asker = await Asker.open(service.address);
  const counts = { firm: 0, "spec-wins": 0, silent: 0 };
  const otherwise: string[] = [];

  const check = async (test: Case) => {
    await bench.set(test);
    await api.call("POST", "cache/flush");
    const before = upstream.seen.length;
    const got = await asker.ask(test.query.name, test.query.type);
    assert.equal(told(got), wanted(test), JSON.stringify(test));
    const asked = upstream.seen.length - before;
    const mustAsk = test.expect.outcome === "pass" || test.upstream !== undefined;
    assert.equal(asked, mustAsk ? 1 : 0, `${asked} queries went upstream: ${JSON.stringify(test)}`);
    // The name of the rule's list, which stands in brackets, comes last.
    const rule = got.text.slice(0, got.text.lastIndexOf(" ("));
    if (test.expect.outcome === "blocked" && test.expect.rule !== undefined) {
      assert.equal(rule, test.expect.rule);
    }
    // What decides about a response is no matter of the asked name.
    if (test.upstream === undefined) await checkExplained(api, test, got, rule);
  };
  // Cases with the same rules stand together, which saves changes.
  const key = ({ rules, lists, settings }: Case) => JSON.stringify([lists, settings, rules]);
  for (const test of cases.toSorted((a, b) => key(a) < key(b) ? -1 : 1)) {
    current = test;
    const name = `${test.id} ${test.query.name} ${test.query.type}: ${test.expect.outcome}`;
    if (test.status === "silent" || OPEN.includes(test.id)) {
      await check(test).catch((error) => otherwise.push(`${test.id}: ${error.message}`));
    } else await t.step(name, () => check(test));
    counts[test.status]++;
  }
  for (const line of otherwise) console.log(`answered otherwise, which is open: ${line}`);
  assert.deepEqual(otherwise.map((line) => line.slice(0, 4)).sort(), OPEN);
  assert.deepEqual(counts, { firm: 228, "spec-wins": 29, silent: 16 });
  service.assertCalm();
});
