// Goal: a root that is rolled is believed after a month, over restarts and without anybody's help,
// and a clock that is worth nothing is told. Method: a zone whose keys are made here, and a clock of
// the test's own.
import assert from "node:assert/strict";
import { MessageWriter, Qtype } from "../dns/mod.ts";
import { FakeKey } from "../dnssec/fakes.ts";
import type { DnsTrust } from "../isolate/mod.ts";
import { handLogLines } from "../log.ts";
import { TrustKeeper, type TrustKeeperPorts } from "./trust_keeper.ts";

const none = { permissions: "none" } as const;
const START_S = 1_800_000_000;
const DAY_S = 86_400;

class Bench implements TrustKeeperPorts {
  nowS = START_S;
  isBelieved = true;
  kept: string | null = null;
  isDiskFull = false;
  /** The zone's keys, the first of which signs; none: it does not answer. */
  keys: FakeKey[];
  fetched = 0;
  readonly published: DnsTrust[] = [];
  work: () => void = () => {};

  constructor(...keys: FakeKey[]) {
    this.keys = keys;
  }

  /** As it is at the moment of each look. */
  get clock(): TrustKeeperPorts["clock"] {
    return { nowMs: () => this.nowS * 1_000, isBelieved: this.isBelieved };
  }

  read = () => Promise.resolve(this.kept);
  write = (text: string) => {
    if (this.isDiskFull) return Promise.reject(new Error("no space left on device"));
    this.kept = text;
    return Promise.resolve();
  };
  publish = (trust: DnsTrust) => void this.published.push(trust);
  every = (_: number, work: () => void) => {
    this.work = work;
    return () => {};
  };
  fetchKeys = (zone: Uint8Array) => {
    this.fetched++;
    const [signer, ...others] = this.keys;
    if (signer === undefined) return Promise.resolve(null);
    const times = { inception: this.nowS - DAY_S, expiration: this.nowS + 9 * DAY_S };
    const { rdatas, signatures, ttl } = signer.dnskeys(others.map(({ rdata }) => rdata), times);
    const target = new Uint8Array(2_048);
    const writer = new MessageWriter();
    writer.start(target, 0, target.length, 0, 0x8180);
    writer.question(zone, Qtype.DNSKEY);
    for (const rdata of rdatas) writer.record(0, zone, Qtype.DNSKEY, 1, ttl, rdata);
    for (const rdata of signatures) writer.record(0, zone, Qtype.RRSIG, 1, ttl, rdata);
    return Promise.resolve(target.slice(0, writer.lengthBytes));
  };

  open(configured: FakeKey): Promise<TrustKeeper> {
    return TrustKeeper.open([configured.anchor()], [], this);
  }
}

const inForce = ({ trust }: TrustKeeper) => trust.anchors.map(({ rdata }) => rdata);

Deno.test("TrustKeeper believes a new key after a month, over restarts", none, async () => {
  const [first, second] = [new FakeKey("test"), new FakeKey("test")];
  const bench = new Bench(first);
  let keeper = await bench.open(first);
  await keeper.look();
  assert.deepEqual(inForce(keeper), [first.rdata]);
  assert.equal(bench.published.length, 0, "nothing has changed");
  const probes = bench.fetched;
  await keeper.look();
  assert.equal(bench.fetched, probes, "not before it is due");
  bench.keys = [first, second];
  handLogLines(() => {});
  try {
    for (let day = 1; day < 33; day++) {
      bench.nowS += DAY_S;
      if (day % 9 === 0) keeper = await bench.open(first); // The node was started again.
      await keeper.look();
      const isOver = inForce(keeper).length === 2;
      if (day < 30) assert.equal(isOver, false, `${day}`);
    }
  } finally {
    handLogLines(null);
  }
  assert.deepEqual(inForce(keeper), [first.rdata, second.rdata]);
  assert.deepEqual(bench.published.at(-1)?.anchors.map(({ rdata }) => rdata), inForce(keeper));
  // The old one goes; a node that was down meanwhile goes on with what it has seen.
  bench.keys = [second];
  bench.nowS += 20 * DAY_S;
  keeper = await bench.open(first);
  await keeper.look();
  assert.deepEqual(inForce(keeper), [first.rdata, second.rdata]);
  assert.deepEqual(keeper.problems, []);
});

Deno.test(
  "TrustKeeper begins anew with other anchors, or where its file is broken",
  none,
  async () => {
    const [first, other] = [new FakeKey("test"), new FakeKey("test")];
    const bench = new Bench(first);
    await (await bench.open(first)).look();
    const kept = bench.kept;
    assert.deepEqual(inForce(await bench.open(other)), [other.rdata]);
    const lines: string[] = [];
    handLogLines(({ message }) => void lines.push(message));
    try {
      for (const broken of ["", "{", "[]", '{"zones":[{"zone":"test"}]}', kept!.slice(0, 40)]) {
        bench.kept = broken;
        assert.deepEqual(inForce(await bench.open(first)), [first.rdata], broken);
      }
    } finally {
      handLogLines(null);
    }
    assert.ok(lines.length > 0);
  },
);

Deno.test(
  "TrustKeeper goes on where nobody answers, and where nothing can be kept",
  none,
  async () => {
    const key = new FakeKey("test");
    const bench = new Bench();
    const keeper = await bench.open(key);
    await keeper.look();
    assert.deepEqual(inForce(keeper), [key.rdata]);
    bench.keys = [key];
    bench.isDiskFull = true;
    bench.nowS += DAY_S;
    await keeper.look();
    assert.match(keeper.problems.join(), /can't be kept: no space left/);
    bench.isDiskFull = false;
    bench.nowS += 16 * DAY_S;
    await keeper.look();
    assert.deepEqual(keeper.problems, []);
  },
);

Deno.test(
  "TrustKeeper tells of a clock that is not believed, and looks at no key",
  none,
  async () => {
    const key = new FakeKey("test");
    const bench = new Bench(key);
    bench.isBelieved = false;
    const keeper = await bench.open(key);
    assert.equal(keeper.trust.pastS, START_S);
    assert.match(
      keeper.problems.join(),
      /signed later than the system's clock says is not validated/,
    );
    await keeper.look();
    assert.equal(bench.fetched, 0);
    bench.isBelieved = true;
    await keeper.look();
    assert.deepEqual(bench.published.map(({ pastS }) => pastS), [null]);
    assert.deepEqual(keeper.problems, []);
    assert.equal(bench.fetched, 1);
  },
);
