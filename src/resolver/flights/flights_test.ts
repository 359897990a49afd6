import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { Cache } from "../../cache/mod.ts";
import { CounterBlock, COUNTERS_BYTES } from "../../telemetry/mod.ts";
import { ResolveFailure } from "../failure.ts";
import { a, response, wire } from "../fakes.ts";
import { Outcome } from "../outcome.ts";
import { keptQuery, KEY_DO, type Query } from "../query.ts";
import { ClientWaits } from "./client_waits.ts";
import type { Flight } from "./flight.ts";
import { CHILDREN_MAX, DEPTH_MAX, Flights } from "./flights.ts";
import { HELD_MAX, HOLD_MS } from "./held.ts";
import type { Judge, Share, Source, Task } from "./source.ts";
import type { Taker, Waiter } from "./waiter.ts";

const none = { permissions: "none" } as const;
const GONE = new ResolveFailure("timeout", "nobody answered");

/** Admits no question of the zones of a test's source. */
const REFUSING = {
  take: () => false,
  deduce: () => null,
  admit: () => GONE,
  refusal: () => GONE,
};

/** A question whose name says its hash as well: `n7`. */
function queryOf(name: string): Query {
  const query = keptQuery();
  query.qtype = query.qclass = 1;
  query.rename(wire(name));
  query.keyHash = Number(name.slice(1)) || 0;
  return query;
}

function nameOf({ packet, qname, qnameLength }: Query): string {
  return new TextDecoder().decode(packet.subarray(qname + 1, qname + qnameLength - 1));
}

/** What a test's source does about a flight: it notes what it is told. */
class FakeTask implements Task {
  readonly failure = GONE;
  readonly told: string[] = [];
  ended = 0;
  /** Called with each child that has ended. */
  then: () => void = () => {};

  constructor(readonly flight: Flight) {}

  tick(): void {}
  end(): void {
    this.ended++;
  }
  echo(): null {
    return null;
  }
  onChild({ query, failure }: Waiter, entry: number): void {
    this.told.push(`${nameOf(query)} ${failure === null ? entry >= 0 : failure.text}`);
    this.then();
  }
}

/** Flights whose source is the test. */
class Bench implements Source, Taker {
  readonly flights: Flights;
  /** By name. */
  readonly tasks = new Map<string, FakeTask>();
  readonly share: Share = { flights: 0, flightMs: 5_000, flightsMax: Infinity };
  /** What clients were told. */
  readonly told: string[] = [];
  nowMs = 0;
  onBegin: (task: FakeTask) => void = () => {};

  constructor(judge: Judge | null = null) {
    this.flights = new Flights({
      source: this,
      cache: new Cache({ sizeBytes: 1024 * 1024, serveStale: 0 }),
      counters: new CounterBlock(new ArrayBuffer(COUNTERS_BYTES)),
      judge,
      rebinding: null,
      serveStale: 0,
      nowSeconds: () => 1_800_000_000,
      clients: new ClientWaits([], 1),
      senderBytes: 0,
      nowMs: () => this.nowMs,
      ticking: () => {},
    });
  }

  shareOf(): Share {
    return this.share;
  }
  left(): number {
    return Infinity;
  }
  full(): ResolveFailure {
    return GONE;
  }
  begin(flight: Flight): void {
    const task = new FakeTask(flight);
    flight.task = task;
    this.tasks.set(nameOf(flight.query), task);
    this.onBegin(task);
  }
  tick(): boolean {
    return false;
  }
  close(): void {}

  onAnswer({ query }: Waiter): void {
    this.told.push(`${nameOf(query)} of ${query.source} by ${query.upstream}`);
  }
  onFailure({ query }: Waiter, { text }: ResolveFailure): void {
    this.told.push(`${nameOf(query)} ${text}`);
  }

  /** A client asks. */
  ask(name: string): FakeTask {
    this.put(name);
    return this.task(name);
  }

  put(name: string): void {
    const waiter = this.flights.takeWaiter()!;
    waiter.query.keep(queryOf(name));
    waiter.taker = this;
    this.flights.resolve(waiter);
  }

  task(name: string): FakeTask {
    const task = this.tasks.get(name);
    assert.ok(task !== undefined, name);
    return task;
  }

  /** A flight has a question asked. */
  askFor(parent: string, child: string): boolean {
    return this.task(parent).flight.ask(queryOf(child));
  }

  answer(name: string): void {
    const message = response({ name, type: 1, records: [a(name, 300)] });
    const ttlOffsets = Uint16Array.of(message.length - 10);
    const brought = { message, length: message.length, ttl: 300, ttlOffsets, ttlCount: 1 };
    this.task(name).flight.answer(brought, new Uint8Array(0));
  }

  checkIdle(): void {
    const { inFlight, waiting } = this.flights;
    assert.deepEqual({ inFlight, waiting, flights: this.share.flights }, {
      inFlight: 0,
      waiting: 0,
      flights: 0,
    });
  }
}

Deno.test("Flight.ask() has a question asked, and tells the task of its end", none, () => {
  const bench = new Bench();
  const parent = bench.ask("n1");
  assert.ok(bench.askFor("n1", "n2") && bench.askFor("n1", "n3"));
  assert.deepEqual([bench.flights.inFlight, bench.task("n2").flight.depth], [3, 1]);
  bench.answer("n2");
  bench.task("n3").flight.fail(GONE);
  assert.deepEqual(parent.told, ["n2 true", "n3 nobody answered"]);
  // What is kept is told at once, a failure that is remembered among it.
  assert.ok(bench.askFor("n1", "n2") && bench.askFor("n1", "n3"));
  assert.deepEqual(parent.told.splice(2), ["n2 true", "n3 true"]);
  assert.deepEqual(bench.told, []);
  bench.answer("n1");
  assert.deepEqual(bench.told, [`n1 of ${Outcome.Forwarded} by -1`]);
  assert.deepEqual([parent.ended, bench.task("n2").ended], [1, 1]);
  bench.checkIdle();
});

Deno.test("Flight.ask() joins a question that a client has asked, and the other way", none, () => {
  const bench = new Bench();
  bench.ask("n2");
  const parent = bench.ask("n1");
  assert.ok(bench.askFor("n1", "n2"));
  assert.ok(bench.askFor("n1", "n3"));
  bench.ask("n3");
  assert.equal(bench.flights.inFlight, 3, "each is asked once");
  bench.answer("n2");
  bench.answer("n3");
  assert.deepEqual(parent.told, ["n2 true", "n3 true"]);
  assert.deepEqual(bench.told.map((line) => line.slice(0, 2)), ["n2", "n3"]);
  bench.answer("n1");
  bench.checkIdle();
});

Deno.test("Flight.ask() refuses what waits for the flight itself", none, () => {
  const bench = new Bench();
  bench.ask("n1");
  assert.ok(!bench.askFor("n1", "n1"));
  assert.ok(bench.askFor("n1", "n2") && bench.askFor("n2", "n3"));
  assert.ok(!bench.askFor("n3", "n1") && !bench.askFor("n3", "n2"), "n1 > n2 > n3");
  // A circle that is made of flights of two clients.
  bench.ask("n4");
  assert.ok(bench.askFor("n4", "n5") && bench.askFor("n3", "n4"));
  assert.ok(!bench.askFor("n5", "n1"));
  // With other bits it is another question.
  const other = queryOf("n1");
  other.keyBits = KEY_DO;
  assert.ok(bench.task("n3").flight.ask(other));
  bench.flights.close();
  bench.checkIdle();
});

Deno.test("Flight.ask() bounds children and depth", none, () => {
  const bench = new Bench();
  bench.ask("n0");
  for (let i = 0; i < DEPTH_MAX; i++) assert.ok(bench.askFor(`n${i}`, `n${i + 1}`));
  assert.ok(!bench.askFor(`n${DEPTH_MAX}`, "n99"));
  bench.ask("n100");
  for (let i = 1; i <= CHILDREN_MAX; i++) {
    assert.ok(bench.askFor("n100", `n${100 + i}`));
    bench.answer(`n${100 + i}`);
  }
  assert.ok(!bench.askFor("n100", "n999"), "all told, not at a time");
  bench.flights.close();
  assert.ok(!bench.askFor("n100", "n999"), "it is done");
  bench.checkIdle();
});

Deno.test("A flight that ends waits for no child, whose answer is kept all the same", none, () => {
  const bench = new Bench();
  const parent = bench.ask("n1");
  bench.askFor("n1", "n2");
  bench.askFor("n1", "n2");
  bench.askFor("n1", "n3");
  bench.ask("n3");
  bench.answer("n1");
  assert.deepEqual([bench.flights.inFlight, bench.flights.waiting], [2, 1]);
  bench.answer("n2");
  bench.answer("n3");
  assert.deepEqual(parent.told, []);
  bench.checkIdle();
  const other = bench.ask("n5");
  bench.askFor("n5", "n2");
  assert.deepEqual(other.told, ["n2 true"]);
  // Nobody was told of a failure, and nobody is held to it.
  bench.askFor("n5", "n6");
  bench.answer("n5");
  bench.task("n6").flight.fail(GONE);
  bench.ask("n6");
  assert.equal(bench.flights.inFlight, 1);
});

Deno.test("A flight may end when its first child does, whoever else waits", none, () => {
  const bench = new Bench();
  const parent = bench.ask("n1");
  bench.askFor("n1", "n2");
  bench.askFor("n1", "n2");
  bench.ask("n2");
  parent.then = () => bench.answer("n1");
  bench.answer("n2");
  assert.deepEqual(parent.told, ["n2 true"], "once: it is done by then");
  assert.deepEqual(bench.told.map((line) => line.slice(0, 2)).sort(), ["n1", "n2"]);
  bench.checkIdle();
});

Deno.test("Flights.close() leaves nothing that a task asks for when it hears of it", none, () => {
  const bench = new Bench();
  bench.ask("n2");
  const parent = bench.ask("n1");
  bench.askFor("n1", "n2");
  let isAsked = true;
  parent.then = () => isAsked = bench.askFor("n1", "n3");
  bench.flights.close();
  assert.deepEqual([parent.told, isAsked], [["n2 nobody answered"], false]);
  bench.checkIdle();
});

Deno.test("Flights end in time, children and all", none, () => {
  const bench = new Bench();
  const parent = bench.ask("n1");
  bench.nowMs = 3_000;
  bench.askFor("n1", "n2");
  bench.nowMs = 5_000;
  bench.flights.tick();
  assert.deepEqual([bench.told, parent.told], [["n1 nobody answered"], []]);
  assert.equal(bench.flights.inFlight, 1, "the child has its own time");
  bench.nowMs = 8_000;
  bench.flights.tick();
  bench.checkIdle();
});

Deno.test("Flights tell each waiter once, whatever flights ask for, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, () => {
  const seed = seedFromEnv();
  for (let run = 0; run < 30; run++) {
    const prng = new Prng(seed + run);
    const bench = new Bench();
    bench.onBegin = (task) => {
      // Some have a question of their own at once, some fail at once.
      if (prng.chance(0.3)) task.flight.ask(queryOf(`n${prng.int(40)}`));
      else if (prng.chance(0.1)) task.flight.fail(GONE);
    };
    let asked = 0;
    for (let step = 0; step < 500; step++) {
      const open = [...bench.tasks.values()].filter(({ flight, ended }) =>
        ended === 0 && !flight.done
      );
      const what = prng.int(10);
      if (what < 3 || open.length === 0) {
        asked++;
        bench.ask(`n${prng.int(40)}`);
      } else if (what < 6) {
        prng.pick(open).flight.ask(queryOf(`n${prng.int(40)}`));
      } else if (what < 8) {
        bench.answer(nameOf(prng.pick(open).flight.query));
      } else if (what === 8) {
        prng.pick(open).flight.fail(GONE);
      } else {
        bench.nowMs += 500;
        bench.flights.tick();
      }
      assert.equal(bench.flights.inFlight, bench.share.flights);
    }
    bench.nowMs += 5_000;
    bench.flights.tick();
    bench.nowMs += 5_000;
    bench.flights.tick();
    bench.checkIdle();
    assert.equal(bench.told.length, asked, `run ${run}`);
    assert.ok([...bench.tasks.values()].every(({ ended }) => ended === 1), `run ${run}`);
  }
});

Deno.test(
  "Flights holds a refusal back for a while, and no more of them than so many",
  none,
  () => {
    const bench = new Bench(REFUSING);
    bench.put("n1"); // Upstreams are nobody's zone.
    assert.equal(bench.tasks.size, 1);
    Object.assign(bench.share, { zone: wire("evil.test") });
    for (let i = 2; i < 2 + HELD_MAX; i++) bench.put(`n${i}`);
    assert.deepEqual(bench.told, []);
    bench.put("n1000");
    assert.deepEqual(bench.told, ["n1000 nobody answered"]);
    bench.nowMs = HOLD_MS - 1;
    bench.flights.tick();
    assert.equal(bench.told.length, 1);
    bench.nowMs = HOLD_MS;
    bench.flights.tick();
    assert.equal(bench.told.length, 1 + HELD_MAX);
    assert.equal(bench.tasks.size, 1, "none of them was asked");
    assert.equal(bench.flights.inFlight, 1);
    bench.put("n1001");
    assert.equal(bench.flights.inFlight, 2, "there is room again");
  },
);
