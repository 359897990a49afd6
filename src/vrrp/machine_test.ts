import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import {
  type Effect,
  type Event,
  initialState,
  masterDownMs,
  nextDueMs,
  step,
  type VrrpOptions,
  type VrrpState,
} from "./mod.ts";

const none = { permissions: "none" } as const;
const OWN = parseIp("192.0.2.1")!;
const PEER = parseIp("192.0.2.2")!;

function effectText(effect: Effect): string {
  return effect.type === "announce" ? `announce ${effect.priority}` : effect.type;
}

/** One node, events at the times they are given. */
class Node {
  readonly options: VrrpOptions;
  state: VrrpState;
  nowMs = 0;

  constructor(options: Partial<VrrpOptions> = {}) {
    this.options = { priority: 100, preempt: true, intervalMs: 1_000, peer: PEER, ...options };
    this.state = initialState(0);
  }

  /** Hands over an event; the effects in one text. */
  on(event: Event): string {
    const { state, effects } = step(this.options, this.state, event, this.nowMs);
    this.state = state;
    return effects.map(effectText).join(", ");
  }

  hear(priority: number, intervalMs = 1_000): string {
    return this.on({ type: "advertisement", advertisement: { priority, intervalMs } });
  }

  check(...results: boolean[]): string {
    return results.map((isGood) => this.on({ type: "health", isGood })).join("");
  }

  link(own: Uint8Array | null, hasFloating = this.state.role === "holder"): string {
    return this.on({ type: "interface", own, hasFloating });
  }

  /** Goes on to the next due time, which must be there, and ticks. */
  tick(): string {
    this.nowMs = nextDueMs(this.options, this.state);
    assert.ok(Number.isFinite(this.nowMs), "something is due");
    return this.on({ type: "tick" });
  }

  /** A healthy backup, at time 0. */
  static backup(options: Partial<VrrpOptions> = {}): Node {
    const node = new Node(options);
    assert.equal(node.link(OWN), "");
    assert.equal(node.check(true, true), "");
    return node;
  }

  /** A holder, since a peer was silent. */
  static holder(options: Partial<VrrpOptions> = {}): Node {
    const node = Node.backup(options);
    assert.equal(node.tick(), `hold, claim, announce ${node.options.priority}`);
    assert.equal(node.state.role, "holder");
    return node;
  }
}

Deno.test("a backup takes over when the peer was silent for long enough", none, async (t) => {
  // Three intervals and (256 - priority) / 256 of one.
  const cases = [[100, 1_000, 3_609.375], [150, 1_000, 3_414.0625], [254, 1_000, 3_007.8125], [
    1,
    100,
    399.609375,
  ]] as const;
  for (const [priority, intervalMs, wantMs] of cases) {
    await t.step(`priority ${priority}, every ${intervalMs} ms`, () => {
      const node = Node.backup({ priority, intervalMs });
      assert.equal(masterDownMs(node.options, node.state), wantMs);
      node.tick();
      assert.deepEqual([node.nowMs, node.state.reason], [wantMs, "the peer is silent"]);
    });
  }
});

Deno.test("a backup waits three intervals of the peer's, not of its own", none, () => {
  const node = Node.backup();
  node.hear(150, 200);
  assert.equal(nextDueMs(node.options, node.state), 600 + 200 * 156 / 256);
});

Deno.test("a holder announces and reminds in steps of the interval, late or not", none, () => {
  const node = Node.holder();
  const startMs = node.nowMs;
  for (let i = 1; i <= 5; i++) {
    node.nowMs = startMs + i * 1_000 + i; // Each tick a bit later.
    assert.equal(node.on({ type: "tick" }), "remind, announce 100");
  }
  assert.equal(nextDueMs(node.options, node.state), startMs + 6_000);
  node.nowMs += 30_000;
  assert.equal(node.on({ type: "tick" }), "remind, announce 100");
  assert.equal(nextDueMs(node.options, node.state), node.nowMs + 1_000, "none is made up for");
});

Deno.test("a tick before its time does nothing", none, () => {
  const node = Node.backup();
  node.nowMs = nextDueMs(node.options, node.state) - 0.1;
  assert.equal(node.on({ type: "tick" }), "");
  assert.equal(node.state.role, "backup");
});

Deno.test("a backup takes over after the skew when the peer gives up", none, () => {
  const node = Node.backup();
  node.nowMs = 700;
  node.hear(150);
  node.nowMs = 900;
  node.hear(0);
  assert.equal(node.tick(), "hold, claim, announce 100");
  assert.deepEqual([node.nowMs, node.state.reason], [900 + 609.375, "the peer gave it up"]);
});

const MEETINGS = [
  ["backup, lower peer, preempt", "backup", true, 50, "takes over"],
  ["backup, lower peer, no preempt", "backup", false, 50, "waits"],
  ["backup, equal peer", "backup", true, 100, "waits"],
  ["backup, higher peer", "backup", true, 150, "waits"],
  ["backup, higher peer, no preempt", "backup", false, 150, "waits"],
  ["holder, lower peer", "holder", true, 50, "claim, announce 100"],
  ["holder, lower peer, no preempt", "holder", false, 50, "claim, announce 100"],
  ["holder, peer that gives up", "holder", true, 0, "claim, announce 100"],
  ["holder, higher peer", "holder", true, 150, "announce 100, release"],
  ["holder, higher peer, no preempt", "holder", false, 150, "announce 100, release"],
  ["holder, equal peer of greater address", "holder", true, 100, "announce 100, release"],
] as const;

Deno.test("two nodes that hear each other agree on the holder", none, async (t) => {
  for (const [what, role, preempt, priority, want] of MEETINGS) {
    await t.step(what, () => {
      const node = Node[role]({ preempt });
      node.nowMs += 800;
      const effects = node.hear(priority);
      if (want === "waits" || want === "takes over") {
        const dueMs = nextDueMs(node.options, node.state);
        assert.equal(effects, "");
        assert.equal(dueMs > 3_700 ? "waits" : "takes over", want);
      } else {
        assert.equal(effects, want);
        assert.equal(node.state.role, want.startsWith("claim") ? "holder" : "backup");
      }
    });
  }
});

Deno.test("between equal priorities the smaller address gives way", none, () => {
  const node = Node.holder({ peer: parseIp("192.0.1.255")! });
  node.nowMs += 800;
  assert.equal(node.hear(100), "claim, announce 100");
});

Deno.test("a holder answers a flood of lower announcements at a pace of its own", none, () => {
  const node = Node.holder();
  node.nowMs += 500;
  let answers = 0;
  for (let i = 0; i < 1_000; i++, node.nowMs += 1) {
    if (node.hear(50) !== "") answers++;
    if (nextDueMs(node.options, node.state) <= node.nowMs && node.on({ type: "tick" }) !== "") {
      answers++;
    }
  }
  assert.ok(answers >= 5 && answers <= 11, `${answers} answers`);
});

Deno.test("the third failed check in a row hands over, the second good one allows it", none, () => {
  const node = Node.holder();
  assert.equal(node.check(false, false, true, false, false), "");
  assert.equal(node.state.role, "holder");
  assert.equal(node.check(false), "release, announce 0");
  assert.deepEqual(
    [node.state.role, node.state.reason],
    ["backup", "DNS does not answer on this node"],
  );
  assert.equal(nextDueMs(node.options, node.state), Infinity, "it may not take over");
  node.nowMs += 60_000;
  assert.equal(node.on({ type: "tick" }), "");
  assert.equal(node.check(true, false, true), "");
  assert.equal(nextDueMs(node.options, node.state), Infinity);
  node.check(true);
  assert.equal(node.tick(), "hold, claim, announce 100", "nobody else was heard for long");
});

Deno.test("a node whose DNS has never answered does not take over", none, () => {
  const node = new Node();
  node.link(OWN);
  node.check(true);
  assert.equal(nextDueMs(node.options, node.state), Infinity);
  node.nowMs = 1_000;
  node.check(true);
  node.tick();
  assert.equal(node.nowMs, 3_609.375, "listening counts from the start");
});

Deno.test("a recovered node takes the address back, or not, from a live peer", none, async (t) => {
  for (const preempt of [true, false]) {
    await t.step(`preempt = ${preempt}`, () => {
      const node = Node.holder({ preempt, priority: 150 });
      node.check(false, false, false);
      for (let i = 0; i < 12; i++) {
        node.nowMs += 500;
        node.hear(100);
      }
      node.check(true);
      node.nowMs += 1_000;
      node.check(true);
      const goodMs = node.nowMs;
      const dueMs = nextDueMs(node.options, node.state);
      node.nowMs += 900;
      node.hear(100);
      const delayMs = nextDueMs(node.options, node.state) - goodMs;
      assert.equal(dueMs - goodMs, 3_414.0625);
      assert.equal(delayMs, preempt ? 3_414.0625 : 900 + 3_414.0625);
    });
  }
});

Deno.test("a stopped holder gives the address up", none, () => {
  const node = Node.holder();
  assert.equal(node.on({ type: "stop" }), "release, announce 0");
  assert.equal(Node.backup().on({ type: "stop" }), "", "a backup has nothing to say");
});

Deno.test("a copy of the address that a crash left behind is removed", none, () => {
  const node = new Node();
  assert.equal(node.link(OWN, true), "release");
  assert.equal(node.link(OWN, false), "");
});

Deno.test("an address removed behind the holder's back is added again", none, () => {
  const node = Node.holder();
  assert.equal(node.link(OWN, false), "hold, claim, announce 100");
  assert.equal(node.link(OWN, true), "");
});

Deno.test("a short loss of the link costs no more than its time", none, () => {
  const node = Node.holder();
  assert.equal(node.link(null), "");
  node.nowMs += 2_000;
  assert.equal(node.on({ type: "tick" }), "", "nothing is announced to nobody");
  assert.equal(node.link(OWN), "claim, announce 100");
  assert.equal(node.state.role, "holder");
});

Deno.test("a holder without a link for long is a backup, since the peer took over", none, () => {
  const node = Node.holder();
  const lostMs = node.nowMs;
  node.link(null);
  assert.equal(node.tick(), "release, announce 0");
  assert.deepEqual([node.nowMs - lostMs, node.state.role], [4_000, "backup"]);
  assert.equal(nextDueMs(node.options, node.state), Infinity);
  node.nowMs += 60_000;
  node.link(OWN);
  const backMs = node.nowMs;
  node.tick();
  assert.equal(node.nowMs - backMs, 3_609.375, "it listens first");
});

Deno.test("a backup that heard nothing, as there was no link, listens first", none, () => {
  const node = Node.backup();
  node.nowMs = 3_000;
  node.link(null);
  node.nowMs = 10_000;
  node.link(OWN);
  node.tick();
  assert.equal(node.nowMs, 13_609.375);
});

Deno.test("a node that can't add the address leaves it to the peer for a while", none, () => {
  const node = Node.holder();
  assert.equal(node.on({ type: "refused" }), "release, announce 0");
  const refusedMs = node.nowMs;
  assert.equal(node.state.reason, "the address cannot be added");
  assert.equal(node.tick(), "hold, claim, announce 100");
  assert.equal(node.nowMs - refusedMs, 10_000);
});

Deno.test("a backup that was asleep does not take its own silence for the peer's", none, () => {
  const node = Node.backup();
  node.nowMs = nextDueMs(node.options, node.state) + 30_000;
  assert.equal(node.on({ type: "tick" }), "");
  const awakeMs = node.nowMs;
  assert.equal(node.tick(), "hold, claim, announce 100");
  assert.equal(node.nowMs - awakeMs, 1_609.375, "one announcement is waited for");
});
