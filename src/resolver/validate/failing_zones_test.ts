// Goal: a zone whose signatures fail and fail costs no more than a question now and then, one that is
// in order is never left alone for long, and nobody can be blamed for another's zone.
import assert from "node:assert/strict";
import { HEADER_BYTES } from "../../dns/mod.ts";
import { wire } from "../fakes.ts";
import { keptQuery, type Query } from "../query.ts";
import {
  FAILED_CHECKS_MAX,
  FAILING_S_MAX,
  FAILING_S_MIN,
  FAILING_ZONES_MAX,
  FailingZones,
  FORGOTTEN_S,
  PROBE_S,
} from "./failing_zones.ts";

const none = { permissions: "none" } as const;
const ZONE = wire("evil.test");

/** Questions are told apart by their key alone. */
function question(key: number, client = 1): Query {
  const query = keptQuery();
  query.address.aim(Uint8Array.of(192, 0, 2, client), 0, 4);
  query.packet.fill(0, 0, HEADER_BYTES);
  query.keyHash = key;
  return query;
}

class Bench {
  nowS = 1_000;
  readonly zones = new FailingZones(() => 1_000 * this.nowS);
  #last = 0;

  /** A further question of a client; `null`: it is not admitted. */
  asks(zone = ZONE, client = 1): Query | null {
    const query = question(++this.#last, client);
    return this.zones.admit(zone, query) === null ? query : null;
  }

  /** Has a zone failing by answers of four checks. */
  fail(zone = ZONE): void {
    for (let failed = 0; failed <= FAILED_CHECKS_MAX; failed += 4) {
      this.zones.failed(zone, this.asks(zone)!, 4);
    }
  }
}

Deno.test(
  "FailingZones leaves a zone alone, longer each time, and asks one question then",
  none,
  () => {
    const bench = new Bench();
    const early = bench.asks()!;
    bench.fail();
    assert.match(
      bench.zones.refusal(ZONE, early)?.text ?? "",
      /^too many signatures of evil\.test do not fit, .* 2 s \(FAILED_CHECKS_MAX\)$/,
    );
    const waits = [];
    for (let i = 0; i < 6; i++) {
      const startS = bench.nowS;
      let probe = bench.asks();
      for (; probe === null; probe = bench.asks()) bench.nowS++;
      waits.push(bench.nowS - startS);
      assert.equal(bench.zones.refusal(ZONE, probe), null, "it may show that all is well");
      assert.equal(bench.asks(), null, "and nobody else");
      bench.zones.failed(ZONE, early, 100); // Of what was asked before nothing comes.
      bench.zones.failed(ZONE, probe, 1);
    }
    assert.deepEqual(waits, [FAILING_S_MIN, 4, 8, 16, FAILING_S_MAX, FAILING_S_MAX]);
  },
);

Deno.test("FailingZones goes on with a zone once an answer holds", none, () => {
  const bench = new Bench();
  const early = bench.asks()!;
  bench.fail();
  bench.zones.held(ZONE, early, 9);
  assert.equal(bench.asks(), null, "it was asked before");
  bench.nowS += FAILING_S_MIN;
  const silent = bench.asks();
  assert.ok(silent !== null && bench.asks() === null);
  bench.nowS += PROBE_S;
  const probe = bench.asks();
  assert.ok(probe !== null, "where nothing came of one, the next is asked");
  bench.zones.held(ZONE, probe, 0);
  for (let i = 0; i < 9; i++) assert.ok(bench.asks() !== null);
  // It takes as much again, and then longer.
  bench.fail();
  bench.nowS += FAILING_S_MIN;
  assert.equal(bench.asks(), null);
  bench.nowS += FORGOTTEN_S;
  bench.zones.held(ZONE, bench.asks()!, 1);
  bench.fail();
  bench.nowS += FAILING_S_MIN;
  assert.ok(bench.asks() !== null, "what was long ago is forgotten");
});

Deno.test("FailingZones takes a zone for sound that has some names which are not", none, () => {
  const bench = new Bench();
  for (let i = 0; i < 1_000; i++) {
    bench.zones.failed(ZONE, bench.asks()!, 2);
    bench.zones.held(ZONE, bench.asks()!, 2);
  }
  for (let i = 0; i < 1_000; i++) {
    bench.zones.failed(ZONE, bench.asks()!, 2);
    bench.nowS += 2;
  }
  for (let i = 0; i < 1_000; i++) bench.zones.failed(ZONE, bench.asks()!, 0);
  assert.ok(bench.asks() !== null);
});

Deno.test(
  "FailingZones is about the zone itself, never the root or a top-level domain",
  none,
  () => {
    const bench = new Bench();
    for (const name of [".", "test"]) {
      for (let i = 0; i < 100; i++) bench.zones.failed(wire(name), bench.asks()!, 4);
      assert.ok(bench.asks(wire(name)) !== null);
    }
    assert.equal(bench.zones.size, 0);
    bench.fail();
    assert.equal(bench.asks(wire("EVIL.test")), null);
    const others = Array.from({ length: 50 }, (_, i) => bench.asks(ZONE, 2 + i));
    assert.ok(
      others.filter((query) => query === null).length < 5,
      "for who has asked, not for all",
    );
    for (const other of ["test", "good.test", "good.evil.test"]) {
      assert.ok(bench.asks(wire(other)) !== null, other);
    }
  },
);

Deno.test("FailingZones has room for so many, those of late", none, () => {
  const bench = new Bench();
  for (let i = 0; i <= FAILING_ZONES_MAX; i++) bench.fail(wire(`z${i}.test`));
  assert.equal(bench.zones.size, FAILING_ZONES_MAX);
  assert.ok(bench.asks(wire("z0.test")) !== null);
  assert.equal(bench.asks(wire("z1.test")), null);
  bench.zones.clear();
  assert.ok(bench.asks(wire("z1.test")) !== null);
});
