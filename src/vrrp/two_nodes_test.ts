// Goal: two nodes come to one holder after any faults, the neighbours know which, and two hold at
// once for no longer than they can't hear each other and one announcement more. Method: the state
// machine twice, on a clock, a network, interfaces and DNS servers drawn from one seed.
import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import { Prng } from "../../tests/prng.ts";
import {
  type Effect,
  type Event,
  initialState,
  isFit,
  nextDueMs,
  step,
  type VrrpOptions,
  type VrrpState,
} from "./mod.ts";

const STEP_MS = 5;
const CHECK_MS = 1_000;
const DELAY_STEPS_MAX = 4;
const FAULTS_MS = 120_000;
/** Everything is well from then on: three intervals, the skew, two checks, and one interval more. */
const SETTLED_MS = 12_000;
/** An announcement is heard within an interval; the answer to it waits for its turn. */
const BOTH_MS_MAX = 1_000 + 100 + 10 * DELAY_STEPS_MAX * STEP_MS;

interface Packet {
  readonly to: number;
  readonly atMs: number;
  readonly priority: number;
}

class SimNode {
  state: VrrpState;
  hasFloating = false;
  isDnsGood = true;
  hasLink = true;
  isRunning = true;
  checkAtMs: number;

  constructor(
    readonly options: VrrpOptions,
    readonly own: Uint8Array,
    nowMs: number,
    phase: number,
  ) {
    this.state = initialState(nowMs);
    this.checkAtMs = nowMs + phase;
  }
}

class Sim {
  nowMs = 0;
  isSplit = false;
  lossRatio = 0;
  readonly nodes: SimNode[];
  /** What the neighbours believe. */
  believed = -1;
  #packets: Packet[] = [];
  /** Since when both hold the address though they can hear each other. */
  bothSinceMs: number | null = null;
  /** Since when the network has been whole and without loss. */
  wholeSinceMs = 0;

  constructor(readonly prng: Prng, priorities: readonly number[], readonly preempt: boolean) {
    const addresses = [parseIp("192.0.2.1")!, parseIp("192.0.2.2")!];
    this.nodes = priorities.map((priority, i) =>
      new SimNode(
        { priority, preempt, intervalMs: 1_000, peer: addresses[1 - i] },
        addresses[i],
        0,
        prng.int(CHECK_MS),
      )
    );
  }

  #on(i: number, event: Event): void {
    const node = this.nodes[i];
    const { state, effects } = step(node.options, node.state, event, this.nowMs);
    node.state = state;
    for (const effect of effects) this.#do(i, effect);
  }

  #do(i: number, effect: Effect): void {
    const node = this.nodes[i];
    switch (effect.type) {
      case "hold":
      case "release":
        node.hasFloating = effect.type === "hold";
        break;
      case "announce": {
        const { prng } = this;
        if (!node.hasLink || this.isSplit || prng.chance(this.lossRatio)) break;
        const atMs = this.nowMs + STEP_MS * (1 + prng.int(DELAY_STEPS_MAX));
        this.#packets.push({ to: 1 - i, atMs, priority: effect.priority });
        break;
      }
      default:
        // The neighbours are on the second node's side of a split.
        if (node.hasLink && (!this.isSplit || i === 1)) this.believed = i;
    }
  }

  /** A crash leaves the address behind; the next start takes it away. */
  crash(i: number): void {
    this.nodes[i].isRunning = false;
  }

  restart(i: number): void {
    const { options, own, isDnsGood, hasLink, hasFloating } = this.nodes[i];
    const node = new SimNode(options, own, this.nowMs, this.prng.int(CHECK_MS));
    this.nodes[i] = Object.assign(node, { isDnsGood, hasLink, hasFloating });
  }

  advance(): void {
    this.nowMs += STEP_MS;
    const arrived = this.#packets.filter(({ atMs }) => atMs <= this.nowMs);
    this.#packets = this.#packets.filter(({ atMs }) => atMs > this.nowMs);
    for (const { to, priority } of arrived) {
      const node = this.nodes[to];
      if (!node.isRunning || !node.hasLink) continue;
      this.#on(to, { type: "advertisement", advertisement: { priority, intervalMs: 1_000 } });
    }
    for (const [i, node] of this.nodes.entries()) {
      if (!node.isRunning) continue;
      const own = node.hasLink ? node.own : null;
      this.#on(i, { type: "interface", own, hasFloating: node.hasFloating });
      if (this.nowMs >= node.checkAtMs) {
        node.checkAtMs += CHECK_MS;
        this.#on(i, { type: "health", isGood: node.isDnsGood });
      }
      if (this.nowMs >= nextDueMs(node.options, node.state)) this.#on(i, { type: "tick" });
    }
    this.#checkBoth();
  }

  get #isWhole(): boolean {
    return !this.isSplit && this.lossRatio === 0 &&
      this.nodes.every(({ hasLink, isRunning }) => hasLink && isRunning);
  }

  #checkBoth(): void {
    if (!this.#isWhole) this.wholeSinceMs = this.nowMs;
    const both = this.nodes.every(({ hasFloating }) => hasFloating);
    if (!both || !this.#isWhole) this.bothSinceMs = null;
    else this.bothSinceMs ??= this.nowMs;
    const forMs = this.nowMs - (this.bothSinceMs ?? this.nowMs);
    assert.ok(forMs <= BOTH_MS_MAX, `at ${this.nowMs}: two hold the address for ${forMs} ms`);
  }

  fault(): void {
    const { prng } = this;
    const i = prng.int(2);
    const node = this.nodes[i];
    switch (prng.int(6)) {
      case 0:
        this.isSplit = !this.isSplit;
        break;
      case 1:
        this.lossRatio = prng.pick([0, 0, 0.05, 0.3, 0.9]);
        break;
      case 2:
        node.isDnsGood = !node.isDnsGood;
        break;
      case 3:
        node.hasLink = !node.hasLink;
        break;
      case 4:
        if (node.isRunning) this.crash(i);
        else this.restart(i);
        break;
      case 5:
        // By hand: what is there goes, what is not there comes.
        node.hasFloating = !node.hasFloating;
    }
  }

  heal(): void {
    this.isSplit = false;
    this.lossRatio = 0;
    for (const [i, node] of this.nodes.entries()) {
      node.isDnsGood = node.hasLink = true;
      if (!node.isRunning) this.restart(i);
    }
  }

  run(forMs: number): void {
    for (const endMs = this.nowMs + forMs; this.nowMs < endMs;) this.advance();
  }

  checkSettled(): void {
    const holders = this.nodes.flatMap((node, i) => node.state.role === "holder" ? [i] : []);
    const having = this.nodes.flatMap((node, i) => node.hasFloating ? [i] : []);
    assert.equal(holders.length, 1, `at ${this.nowMs}: holders ${holders}`);
    assert.deepEqual(having, holders, "the holder has the address, and nobody else");
    assert.equal(this.believed, holders[0], "the neighbours know the holder");
    assert.ok(this.nodes.every(({ state }) => isFit(state)));
    const [a, b] = this.nodes.map(({ options }) => options.priority);
    if (this.preempt && a !== b) assert.equal(holders[0], a > b ? 0 : 1, "the higher one holds");
  }
}

const SEEDS = 60;

Deno.test("two nodes come to one holder after any faults", { permissions: "none" }, async (t) => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    await t.step(`seed ${seed}`, () => {
      const prng = new Prng(seed);
      const priorities = [prng.pick([100, 150, 254]), prng.pick([50, 100, 200])];
      const sim = new Sim(prng, priorities, prng.chance(0.6));
      while (sim.nowMs < FAULTS_MS) {
        sim.run(prng.int(8_000));
        sim.fault();
      }
      sim.heal();
      sim.run(SETTLED_MS);
      sim.checkSettled();
      const [holder] = sim.nodes.flatMap(({ state }, i) => state.role === "holder" ? [i] : []);
      sim.run(SETTLED_MS);
      sim.checkSettled();
      assert.equal(sim.nodes[holder].state.role, "holder", "and stay with it");
    });
  }
});

Deno.test("a holder that fails, stops or is cut off is followed", { permissions: "none" }, () => {
  const settled = () => {
    const sim = new Sim(new Prng(7), [150, 100], true);
    sim.run(SETTLED_MS);
    sim.checkSettled();
    return sim;
  };
  const followed = (sim: Sim) => {
    const fromMs = sim.nowMs;
    while (!sim.nodes[1].hasFloating) {
      sim.advance();
      assert.ok(sim.nowMs - fromMs < 10_000, "nobody follows");
    }
    return sim.nowMs - fromMs;
  };
  const dead = settled();
  dead.nodes[0].isRunning = false;
  assert.ok(followed(dead) <= 3_700);
  const cut = settled();
  cut.isSplit = true;
  assert.ok(followed(cut) <= 3_700);
  const sick = settled();
  sick.nodes[0].isDnsGood = false;
  // Three checks, and the skew.
  assert.ok(followed(sick) <= 3_000 + 700);
});
