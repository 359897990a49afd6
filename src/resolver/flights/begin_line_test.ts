// Goal: one client's flood of questions delays those of others by one of its own, and nothing that
// waits is lost or held. Method: a source that notes what it is asked to begin with.
import assert from "node:assert/strict";
import { TOO_MANY_WAIT } from "../failure.ts";
import { BeginLine } from "./begin_line.ts";
import { Flight, type FlightOwner } from "./flight.ts";
import type { Share, Source, Task } from "./source.ts";

const none = { permissions: "none" } as const;
const SHARE: Share = { flights: 0, flightMs: 4_800, flightsMax: 100 };
const BEGUN: Task = {
  failure: TOO_MANY_WAIT,
  tick() {},
  end() {},
  echo: () => null,
  onChild() {},
};

class Bench {
  readonly begun: Flight[] = [];
  isBusy = false;
  readonly refused: number[] = [];
  readonly failed: Flight[] = [];
  /** What flights had for tasks as they were begun. */
  readonly former: (Task | null)[] = [];
  readonly line = new BeginLine(
    {
      begin: (flight: Flight) => {
        this.former.push(flight.task);
        flight.task = BEGUN;
        this.begun.push(flight);
      },
      tick: () => false,
    } as unknown as Source,
    () => this.isBusy,
    ({ qtype }) => this.refused.includes(qtype) ? TOO_MANY_WAIT : null,
  );

  begin(client: number, depth = 0, attempt = 0, task: Task | null = null): Flight {
    const fail = (flight: Flight) => void this.failed.push(flight);
    const flight = new Flight({ fail } as unknown as FlightOwner);
    flight.task = task;
    flight.query.address.aim(Uint8Array.of(192, 0, 2, client), 0, 4);
    flight.depth = depth;
    flight.attempt = attempt;
    this.line.begin(flight, SHARE);
    return flight;
  }
}

Deno.test("BeginLine begins at once while there is little to do", none, () => {
  const bench = new Bench();
  const flight = bench.begin(1);
  assert.deepEqual(bench.begun, [flight]);
  assert.equal(bench.line.waiting, 0);
  assert.equal(bench.line.next(), false);
});

Deno.test("BeginLine gives each client its turn, and goes on with what was begun", none, () => {
  const bench = new Bench();
  bench.isBusy = true;
  const many = Array.from({ length: 50 }, () => bench.begin(1));
  const one = bench.begin(2);
  const further = [bench.begin(1, 1), bench.begin(1, 0, 1)];
  assert.deepEqual(bench.begun, further);
  assert.equal(bench.line.waiting, 51);
  assert.ok(bench.line.next() && bench.line.next());
  assert.deepEqual(new Set(bench.begun.slice(2)), new Set([many[0], one]));
  // Whoever comes later waits behind them, however little there is to do by then.
  bench.isBusy = false;
  const last = bench.begin(1);
  while (bench.line.next());
  assert.deepEqual(bench.begun.slice(4), [...many.slice(1), last]);
  assert.equal(bench.line.waiting, 0);
});

Deno.test("BeginLine asks nothing more of who is refused by then", none, () => {
  const bench = new Bench();
  bench.isBusy = true;
  const [first, second] = [bench.begin(1), bench.begin(1)];
  first.query.qtype = 28;
  bench.refused.push(28);
  while (bench.line.next());
  assert.deepEqual([bench.begun, bench.failed], [[second], [first]]);
});

Deno.test("BeginLine hands a source its former task of a flight that is used again", none, () => {
  const bench = new Bench();
  bench.isBusy = true;
  bench.begin(1, 0, 0, BEGUN);
  bench.line.next();
  assert.deepEqual(bench.former, [BEGUN]);
});

Deno.test("BeginLine lets go of a question whose time is over", none, () => {
  const bench = new Bench();
  bench.isBusy = true;
  const flights = [1, 1, 1].map((client) => bench.begin(client));
  flights[1].task?.end();
  flights[1].task?.end(); // No harm.
  assert.equal(bench.line.waiting, 2);
  assert.equal(flights[0].task?.failure, TOO_MANY_WAIT);
  while (bench.line.next());
  assert.deepEqual(bench.begun, [flights[0], flights[2]]);
});
