import assert from "node:assert/strict";
import { Qtype } from "../dns/mod.ts";
import { until } from "../../tests/e2e/harness.ts";
import { compile } from "../filter/mod.ts";
import { RECENT_MAX, type SnapshotData } from "../snapshot/mod.ts";
import { baseOf, type FakePolicy, policyState } from "../snapshot/fakes.ts";
import { Policy, type PolicyOptions } from "./policy.ts";
import type { Draft } from "./policy_draft.ts";

const none = { permissions: "none" } as const;
const SEED = 21;

/** A policy whose snapshots are published when the test says so. */
class Bench {
  readonly published: SnapshotData[] = [];
  /** Ends each publication, in order; `null` ends them at once. */
  waiting: (() => void)[] | null = null;
  failure: Error | null = null;
  /** So often were all custom rules merged beside the changes. */
  merges = 0;
  mergeFailure: Error | null = null;
  /** How far the clock that pauses are given by is ahead of the system's. */
  aheadMs = 0;
  readonly policy: Policy;

  constructor(
    fake: FakePolicy,
    options: Pick<PolicyOptions, "clock" | "pausedUntilMs"> = {},
  ) {
    this.policy = new Policy({
      seed: SEED,
      state: policyState(fake),
      base: baseOf(fake, SEED),
      clock: { nowMs: () => Date.now() + this.aheadMs },
      ...options,
      compile: (input) => {
        this.merges++;
        if (this.mergeFailure !== null) return Promise.reject(this.mergeFailure);
        const { rules, stats } = compile(input);
        return Promise.resolve({ rules, stats });
      },
      publish: (data) => {
        this.published.push(data);
        if (this.failure !== null) return Promise.reject(this.failure);
        return this.waiting === null
          ? Promise.resolve()
          : new Promise((resolve) => this.waiting?.push(resolve));
      },
    });
  }

  async decides(name: string, client: string | null = null): Promise<string> {
    const told = await this.policy.explain({ name, qtype: Qtype.A, client });
    return `${told?.outcome} by ${told?.rule} in ${told?.group.name}`;
  }
}

const RULE = {
  enabled: true,
  comment: "",
  managed_by: "api",
  expires_at: null,
  groups: [],
  clients: [],
};

const FAKE: FakePolicy = {
  lists: { ads: "||ads.example^\n||both.example^\n" },
  rules: ["||custom.example^"],
};

Deno.test("Policy.update() has a change hold, and compiles no rule for others", none, async () => {
  const bench = new Bench(FAKE);
  const { rules, overlay } = bench.policy.data;
  await bench.policy.update(policyState({
    ...FAKE,
    groups: { free: { filtering: false } },
    clients: { server: { addresses: ["192.0.2.1"], group: "free" } },
  }));
  const [first] = bench.published;
  assert.equal(first, bench.policy.data);
  assert.deepEqual([first.generation, first.rules], [2, rules]);
  assert.equal(first.overlay.custom, overlay.custom, "the same memory");
  assert.equal(first.overlay.custom.memory, overlay.custom.memory);
  assert.notEqual(first.overlay.clients.networks.memory, overlay.clients.networks.memory);
  assert.equal(await bench.decides("ads.example"), "blocked by ||ads.example^ in default");
  assert.equal(await bench.decides("ads.example", "192.0.2.1"), "forwarded by null in free");
  const rule = "@@||ads.example^";
  await bench.policy.update(policyState({ ...FAKE, rules: [rule] }));
  assert.notEqual(bench.policy.data.overlay.custom, overlay.custom);
  assert.equal(bench.policy.data.rules, rules, "the lists' rules stay");
  assert.equal(await bench.decides("ads.example"), `forwarded by ${rule} in default`);
});

Deno.test(
  "Policy.rebase() takes other lists, whose badfilters concern custom rules",
  none,
  async () => {
    const bench = new Bench(FAKE);
    assert.equal(await bench.decides("custom.example"), "blocked by ||custom.example^ in default");
    const other = { lists: { ads: "||other.example^\n||custom.example^$badfilter\n" } };
    await bench.policy.rebase(baseOf(other, SEED));
    assert.equal(await bench.decides("custom.example"), "forwarded by null in default");
    assert.equal(await bench.decides("other.example"), "blocked by ||other.example^ in default");
    assert.equal(await bench.decides("ads.example"), "forwarded by null in default");
  },
);

Deno.test("Policy.pause() filters nothing until it ends", none, async () => {
  const bench = new Bench(FAKE);
  await bench.policy.pause(Date.now() + 60_000);
  assert.equal(await bench.decides("ads.example"), "forwarded by null in default");
  assert.equal(bench.policy.data.pausedUntilMs, bench.policy.pausedUntilMs);
  await bench.policy.pause(0);
  assert.equal(await bench.decides("ads.example"), "blocked by ||ads.example^ in default");
});

Deno.test("Policy.pause() ends though the system's clock was set back", none, async () => {
  const bench = new Bench(FAKE);
  bench.aheadMs = 86_400_000;
  await bench.policy.pause(Date.now() + bench.aheadMs + 20);
  assert.equal(await bench.decides("ads.example"), "forwarded by null in default");
  const endsAtMs = performance.now() + 20_000;
  while (bench.policy.data.pausedUntilMs > 0 && performance.now() < endsAtMs) {
    await new Promise((wait) => setTimeout(wait, 5));
  }
  assert.equal(await bench.decides("ads.example"), "blocked by ||ads.example^ in default");
  await bench.policy.pause(Date.now() + 60_000);
  bench.policy.stop(); // Or its timer would be left.
});

Deno.test(
  "Policy.pause() lasts as long as it was to last, whatever the clock says",
  none,
  async () => {
    // The system's clock is an hour behind what is known; so is one that was set back by as much.
    const clock = { nowMs: () => Date.now() + 3_600_000 };
    const bench = new Bench(FAKE, { clock });
    await bench.policy.pause(clock.nowMs() + 50);
    assert.equal(await bench.decides("ads.example"), "forwarded by null in default");
    await until("the end of the pause", () => bench.published.length === 2);
    assert.equal(await bench.decides("ads.example"), "blocked by ||ads.example^ in default");
    assert.equal(bench.policy.pausedUntilMs, 0);
  },
);

Deno.test("Policy goes on with a former pause as long as that has left", none, async () => {
  const clock = { nowMs: () => Date.now() + 3_600_000 };
  const bench = new Bench(FAKE, { clock, pausedUntilMs: clock.nowMs() + 50 });
  assert.equal(await bench.decides("ads.example"), "forwarded by null in default");
  await until("the end of the pause", () => bench.published.length === 1);
  assert.equal(await bench.decides("ads.example"), "blocked by ||ads.example^ in default");
});

Deno.test(
  "Policy sends changes that come together in one snapshot, behind the one on its way",
  none,
  async () => {
    const bench = new Bench({});
    bench.waiting = [];
    const held: string[] = [];
    const change = (name: string, fake: FakePolicy) =>
      bench.policy.update(policyState(fake)).then(() => void held.push(name));
    const first = change("first", { rules: ["||a.example^"] });
    const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
    await settled();
    const others = [
      change("second", { rules: ["||b.example^"] }),
      change("third", { rules: ["||c.example^"] }),
    ];
    await settled();
    assert.equal(bench.published.length, 1, "one at a time");
    assert.deepEqual(held, []);
    bench.waiting.shift()?.();
    await first;
    await settled();
    assert.equal(bench.published.length, 2, "both in one");
    assert.deepEqual(held, ["first"], "not before every isolate has it");
    assert.equal(await bench.decides("c.example"), "blocked by ||c.example^ in default");
    bench.waiting.shift()?.();
    await Promise.all(others);
    assert.deepEqual(bench.published.map(({ generation }) => generation), [2, 3]);
  },
);

Deno.test("Policy goes on after a publication that failed", none, async () => {
  const bench = new Bench({});
  bench.failure = new Error("refused on purpose");
  await assert.rejects(bench.policy.update(policyState({ rules: ["||a.example^"] })), /on purpose/);
  bench.failure = null;
  await bench.policy.update(policyState({ rules: ["||b.example^"] }));
  assert.equal(await bench.decides("b.example"), "blocked by ||b.example^ in default");
  assert.equal(await bench.decides("a.example"), "forwarded by null in default");
});

/** So many rules that they are not compiled here. */
const MANY: FakePolicy = { rules: Array.from({ length: 5_000 }, (_, n) => `||n${n}.example^`) };

Deno.test("Policy merges what is new with all rules, behind whoever made it", none, async () => {
  const bench = new Bench(MANY);
  const state = policyState(MANY);
  const withRules = (count: number) => {
    const rules = new Map(state.collections.rules);
    const [, first] = [...rules][0];
    for (let n = 0; n < count; n++) {
      rules.set(`ru_x${n}`, {
        ...first,
        id: `ru_x${n}`,
        spec: { ...first.spec, rule: `||x${n}.example^` },
      });
    }
    return { ...state, collections: { ...state.collections, rules } };
  };
  await bench.policy.update(state);
  const [settled] = bench.policy.data.overlay.custom.levels;
  await bench.policy.update(withRules(RECENT_MAX));
  assert.equal(bench.policy.data.overlay.custom.levels.length, 2);
  assert.equal(bench.merges, 0);
  const published = bench.published.length;
  await bench.policy.update(withRules(RECENT_MAX + 1));
  assert.equal(await bench.decides("x512.example"), "blocked by ||x512.example^ in default");
  assert.equal(bench.merges, 0, "whoever made the change goes first");
  assert.equal(bench.policy.data.overlay.custom.levels[0], settled);
  const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
  while (bench.published.length < published + 2) await turn();
  assert.equal(bench.merges, 1);
  const { levels } = bench.policy.data.overlay.custom;
  assert.equal(levels.length, 1);
  assert.notEqual(levels[0], settled);
  assert.equal(await bench.decides("x512.example"), "blocked by ||x512.example^ in default");
  assert.equal(await bench.decides("n7.example"), "blocked by ||n7.example^ in default");
});

Deno.test("Policy goes on where rules can't be merged, and tries again", none, async () => {
  const bench = new Bench(MANY);
  bench.mergeFailure = new Error("no isolate");
  const more = (count: number): FakePolicy => ({
    rules: [
      ...MANY.rules!,
      ...Array.from({ length: count }, (_, n) => `||x${n}.example^`),
    ],
  });
  const turn = () => new Promise((resolve) => setTimeout(resolve, 0));
  await bench.policy.update(policyState(more(RECENT_MAX + 1)));
  while (bench.merges < 1) await turn();
  await turn();
  assert.equal(await bench.decides("x512.example"), "blocked by ||x512.example^ in default");
  bench.mergeFailure = null;
  const published = bench.published.length;
  await bench.policy.update(policyState(more(RECENT_MAX + 2)));
  while (bench.published.length < published + 2) await turn();
  assert.equal(bench.merges, 2);
  assert.equal(bench.policy.data.overlay.custom.levels.length, 1);
  assert.equal(await bench.decides("x513.example"), "blocked by ||x513.example^ in default");
});

Deno.test(
  "Policy.explain() tells what a draft would come to, and nobody decides by it",
  none,
  async () => {
    const bench = new Bench({
      ...FAKE,
      rules: ["||custom.example^", "||pc.example^ for @pc"],
      groups: { kids: { lists: ["ads"] } },
      clients: { pc: { addresses: ["192.0.2.1"] } },
    });
    const before = bench.policy.data;
    const rule = (text: string) => ({ ...RULE, rule: text });
    const told = async (name: string, draft: Draft, group: string | null = null) => {
      const question = { name, qtype: Qtype.A, client: "192.0.2.1", group, draft };
      const found = await bench.policy.explain(question);
      return `${found?.outcome} by ${found?.rule}`;
    };
    const none = { rules: [], without: [] };
    assert.equal(await told("ads.example", none), "blocked by ||ads.example^");
    const allow = { ...none, rules: [rule("@@||ads.example^")] };
    assert.equal(await told("ads.example", allow), "forwarded by @@||ads.example^");
    assert.equal(await told("ads.example", { ...none, without: ["li_ads"] }), "forwarded by null");
    assert.equal(await told("custom.example", { ...none, without: ["ru_0"] }), "forwarded by null");
    assert.equal(await told("pc.example", none), "blocked by ||pc.example^");
    assert.equal(await told("pc.example", none, "gr_kids"), "forwarded by null");
    assert.equal(await told("ads.example", none, "gr_kids"), "blocked by ||ads.example^");
    assert.equal(await told("x.example", none, "gr_none"), "undefined by undefined");
    const mine = { ...none, rules: [{ ...rule("||x.example^"), groups: ["gr_kids"] }] };
    assert.equal(await told("x.example", mine), "forwarded by null");
    assert.equal(await told("x.example", mine, "gr_kids"), "blocked by ||x.example^");
    assert.equal(bench.policy.data, before);
    assert.equal(await bench.decides("ads.example"), "blocked by ||ads.example^ in default");
    await bench.policy.update(policyState(FAKE));
    assert.equal(await bench.decides("x.example"), "forwarded by null in default");
    assert.equal(await bench.decides("pc.example", "192.0.2.1"), "forwarded by null in default");
  },
);

Deno.test("Policy.problems names custom rules that find no room", none, async () => {
  // Expressions without a text of their own, which every name is tried on.
  const rules = Array.from({ length: 33 }, (_, n) => `/^.{${n + 2}}$/`);
  const bench = new Bench({ rules });
  assert.match(bench.policy.problems.join(), /^filter: custom rules without effect: 1; /);
  await bench.policy.update(policyState({ rules: rules.slice(1) }));
  assert.deepEqual(bench.policy.problems, []);
});
