import assert from "node:assert/strict";
import { encodeBase64 } from "../bytes/mod.ts";
import { FakeKey, TIMES } from "./fakes.ts";
import {
  anchorsInForce,
  describeAnchors,
  isDue,
  observe,
  readRolloverState,
  type RolloverState,
  startRollover,
  stepRollover,
  TrustAnchors,
  verifySignature,
} from "./mod.ts";
import { REVOKE_FLAG } from "./records.ts";
import type { RrSet } from "./rrset.ts";
import { ADD_HOLD_DOWN_S, REMOVE_HOLD_DOWN_S } from "./rollover.ts";

const none = { permissions: "none" } as const;
const DAY_S = 86_400;

/** A zone that rolls its keys, and who watches it. */
class Watch {
  state: RolloverState;
  nowS = TIMES.nowS;

  constructor(readonly configured: readonly FakeKey[]) {
    this.state = startRollover(".", describeAnchors(this.anchors), null);
  }

  get anchors() {
    return this.configured.map((key) => key.anchor());
  }

  get inForce(): readonly string[] {
    return anchorsInForce(this.state, this.anchors).map(({ rdata }) => encodeBase64(rdata)).sort();
  }

  /** A look at keys, the first of which signs, `days` after the last. */
  async look(
    days: number,
    keys: readonly Uint8Array[],
    signers: readonly FakeKey[],
  ): Promise<void> {
    this.nowS += days * DAY_S;
    const times = { inception: this.nowS - DAY_S, expiration: this.nowS + 10 * DAY_S };
    const bare: RrSet = { ...signers[0].dnskeys(), rdatas: keys, signatures: [] };
    const signatures = signers.map((key) => {
      const isRevoked = keys.some((rdata) => tagOfRevoked(key, rdata));
      return key.sign(bare, isRevoked ? { ...times, tag: revoked(key).tag } : times);
    });
    await this.see({ ...bare, signatures });
  }

  async see(rrset: RrSet | null): Promise<void> {
    const point = new TrustAnchors(anchorsInForce(this.state, this.anchors)).closest(
      Uint8Array.of(0),
    );
    assert(point?.kind === "anchor");
    const check = (signature: Parameters<typeof verifySignature>[0]) =>
      Promise.resolve(verifySignature(signature));
    const context = { nowS: this.nowS, check };
    const sighting = await observe(this.state, point.trust, rrset, context);
    this.state = stepRollover(this.state, sighting);
    // What is kept is JSON.
    const kept = readRolloverState(JSON.parse(JSON.stringify(this.state)));
    assert.deepEqual(kept, this.state);
  }

  phases(...keys: readonly FakeKey[]): (string | undefined)[] {
    return keys.map((key) =>
      this.state.keys.find(({ dnskey }) => dnskey === encodeBase64(key.rdata))?.phase
    );
  }
}

/** A key's RDATA with the flag of revocation, and the tag it has with it. */
function revoked(key: FakeKey): { readonly rdata: Uint8Array; readonly tag: number } {
  const rdata = key.rdata.slice();
  rdata[1] |= REVOKE_FLAG;
  let sum = 0;
  for (const [i, byte] of rdata.entries()) sum += i & 1 ? byte : byte << 8;
  return { rdata, tag: (sum + (sum >>> 16)) & 0xffff };
}

function tagOfRevoked(key: FakeKey, rdata: Uint8Array): boolean {
  return encodeBase64(revoked(key).rdata) === encodeBase64(rdata);
}

const texts = (...keys: readonly FakeKey[]) => keys.map((key) => encodeBase64(key.rdata)).sort();

Deno.test("a new key is trusted once it was there for 30 days", none, async () => {
  const [old, next] = [new FakeKey("."), new FakeKey(".")];
  const watch = new Watch([old]);
  assert.deepEqual(watch.inForce, texts(old));
  await watch.look(0, [old.rdata], [old]);
  assert.deepEqual(watch.phases(old, next), ["valid", undefined]);
  await watch.look(1, [old.rdata, next.rdata], [old]);
  assert.deepEqual(watch.phases(old, next), ["valid", "pending"]);
  await watch.look(29, [old.rdata, next.rdata], [old]);
  assert.deepEqual(watch.phases(old, next), ["valid", "pending"]);
  assert.deepEqual(watch.inForce, texts(old));
  await watch.look(1, [old.rdata, next.rdata], [old]);
  assert.deepEqual(watch.phases(old, next), ["valid", "valid"]);
  assert.deepEqual(watch.inForce, texts(old, next));
  // From now on, the new key alone may sign.
  await watch.look(1, [next.rdata], [next]);
  assert.deepEqual(watch.phases(old, next), ["missing", "valid"]);
  await watch.look(1, [old.rdata, next.rdata], [next]);
  assert.deepEqual(watch.phases(old, next), ["valid", "valid"]);
  assert.equal(ADD_HOLD_DOWN_S, 30 * DAY_S);
});

Deno.test("a new key that goes away begins anew", none, async () => {
  const [old, next] = [new FakeKey("."), new FakeKey(".")];
  const watch = new Watch([old]);
  await watch.look(0, [old.rdata], [old]);
  await watch.look(1, [old.rdata, next.rdata], [old]);
  await watch.look(20, [old.rdata], [old]);
  assert.deepEqual(watch.phases(next), [undefined]);
  await watch.look(20, [old.rdata, next.rdata], [old]);
  await watch.look(20, [old.rdata, next.rdata], [old]);
  assert.deepEqual(watch.phases(next), ["pending"]);
});

Deno.test("a key that signs its revocation is never trusted again", none, async () => {
  const [old, next] = [new FakeKey("."), new FakeKey(".")];
  const watch = new Watch([old, next]);
  await watch.look(0, [old.rdata, next.rdata], [old]);
  assert.deepEqual(watch.phases(old, next), ["valid", "valid"]);
  // The flag alone is not enough: anybody with a valid key could set it.
  await watch.look(1, [revoked(old).rdata, next.rdata], [next]);
  assert.deepEqual(watch.phases(old, next), ["missing", "valid"]);
  await watch.look(1, [revoked(old).rdata, next.rdata], [next, old]);
  assert.deepEqual(watch.phases(old, next), ["revoked", "valid"]);
  assert.deepEqual(watch.inForce, texts(next));
  await watch.look(1, [old.rdata, next.rdata], [next]);
  assert.deepEqual(watch.phases(old, next), ["revoked", "valid"]);
  await watch.look(31, [next.rdata], [next]);
  assert.deepEqual(watch.phases(old, next), [undefined, "valid"]);
  assert.equal(REMOVE_HOLD_DOWN_S, 30 * DAY_S);
});

Deno.test("a key that is signed by itself alone is not to be added", none, async () => {
  const [old, evil] = [new FakeKey("."), new FakeKey(".")];
  const watch = new Watch([old]);
  await watch.look(0, [old.rdata], [old]);
  const before = watch.state.keys;
  await watch.look(1, [evil.rdata, old.rdata], [evil]);
  assert.deepEqual(watch.state.keys, before);
  await watch.see(null);
  assert.deepEqual(watch.state.keys, before);
  assert.equal(watch.state.nextProbeS, watch.nowS + 3_600, "soon again");
});

Deno.test("a zone that revokes its last key stays anchored, and so is bogus", none, async () => {
  const old = new FakeKey(".");
  const watch = new Watch([old]);
  await watch.look(0, [old.rdata], [old]);
  await watch.look(1, [revoked(old).rdata], [old]);
  assert.deepEqual(watch.phases(old), ["revoked"]);
  assert.deepEqual(watch.inForce, [encodeBase64(revoked(old).rdata)]);
  // Nor is it trusted where the flag is gone, however long it was remembered.
  for (const days of [1, 31, 1]) {
    await watch.look(days, [old.rdata], [old]);
    assert.deepEqual(watch.phases(old), ["revoked"]);
    assert.equal(watch.state.nextProbeS, watch.nowS + 3_600, "not secure: soon again");
  }
});

Deno.test(
  "times that a wrong clock has set are no longer kept than it was wrong",
  none,
  async () => {
    const [old, next] = [new FakeKey("."), new FakeKey(".")];
    const watch = new Watch([old]);
    await watch.look(0, [old.rdata], [old]);
    assert.equal(isDue(watch.state, watch.nowS + 3_599), false);
    assert.equal(isDue(watch.state, watch.nowS + 3_600), true);
    await watch.look(3_650, [old.rdata, next.rdata], [old]);
    assert.deepEqual(watch.phases(old, next), ["valid", "pending"]);
    watch.nowS -= 3_650 * DAY_S;
    assert.equal(isDue(watch.state, watch.nowS), true, "not in ten years");
    await watch.look(0, [old.rdata, next.rdata], [old]);
    await watch.look(29, [old.rdata, next.rdata], [old]);
    assert.deepEqual(watch.phases(old, next), ["valid", "pending"]);
    await watch.look(1, [old.rdata, next.rdata], [old]);
    assert.deepEqual(watch.phases(old, next), ["valid", "valid"]);
  },
);

Deno.test("keys without the SEP flag are not watched", none, async () => {
  const [ksk, zsk] = [new FakeKey("."), new FakeKey(".", 256)];
  const watch = new Watch([ksk]);
  await watch.look(0, [ksk.rdata, zsk.rdata], [ksk]);
  assert.deepEqual(watch.phases(ksk, zsk), ["valid", undefined]);
});

Deno.test("the next look is between an hour and 15 days away", none, async () => {
  const key = new FakeKey(".");
  const watch = new Watch([key]);
  await watch.look(0, [key.rdata], [key]);
  assert.equal(watch.state.nextProbeS - watch.nowS, 3_600, "half of the TTL is less than that");
  const sighting = { nowS: watch.nowS, seen: [], revoked: [], vouched: [], ttl: 90 * DAY_S };
  assert.equal(stepRollover(watch.state, sighting).nextProbeS - watch.nowS, 15 * DAY_S);
  const state = stepRollover(watch.state, { ...sighting, ttl: 2 * DAY_S });
  assert.equal(state.nextProbeS - watch.nowS, DAY_S);
});

Deno.test("other anchors in the configuration begin anew", none, async () => {
  const [old, next] = [new FakeKey("."), new FakeKey(".")];
  const watch = new Watch([old]);
  await watch.look(0, [old.rdata], [old]);
  const configured = describeAnchors(watch.anchors);
  assert.equal(startRollover(".", configured, watch.state), watch.state);
  const other = describeAnchors([next.anchor()]);
  assert.deepEqual(startRollover(".", other, watch.state).keys, []);
});

Deno.test("readRolloverState() refuses what is none", none, async (t) => {
  const key = new FakeKey(".");
  const watch = new Watch([key]);
  await watch.look(0, [key.rdata], [key]);
  const { state } = watch;
  const bad: readonly (readonly [string, unknown])[] = [
    ["nothing", null],
    ["a list", []],
    ["no zone", { ...state, zone: "a..b" }],
    ["no time", { ...state, nextProbeS: "now" }],
    ["no keys", { ...state, keys: {} }],
    ["a broken key", { ...state, keys: [{ ...state.keys[0], dnskey: "!" }] }],
    ["another phase", { ...state, keys: [{ ...state.keys[0], phase: "trusted" }] }],
    ["too many", { ...state, keys: Array(17).fill(state.keys[0]) }],
  ];
  for (const [what, value] of bad) {
    await t.step(what, () => assert.equal(readRolloverState(value), null));
  }
});
