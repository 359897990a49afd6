import assert from "node:assert/strict";
import { FakeClock } from "./fakes.ts";
import { LockedError, Lockout } from "./lockout.ts";

const none = { permissions: "none" } as const;
const MINUTE_MS = 60_000;
const ANN = "ann";
const HERE = "192.0.2.1";

function make(entriesMax?: number) {
  const clock = new FakeClock();
  return { clock, lockout: new Lockout(clock, entriesMax) };
}

function fail(lockout: Lockout, address: string | null, name: string | null, times = 1): void {
  for (let i = 0; i < times; i++) lockout.begin(address, name).fail();
}

/** Seconds to wait, 0 where an attempt may begin; it is dropped. */
function waitOf(lockout: Lockout, address: string | null, name: string | null): number {
  try {
    lockout.begin(address, name).drop();
    return 0;
  } catch (error) {
    assert.ok(error instanceof LockedError);
    assert.equal(error.code, "too_many_requests");
    return error.retryAfterSeconds;
  }
}

Deno.test("Lockout locks after five failures in five minutes, for five minutes", none, () => {
  const { clock, lockout } = make();
  fail(lockout, HERE, ANN, 4);
  assert.equal(waitOf(lockout, HERE, ANN), 0);
  fail(lockout, HERE, ANN);
  assert.equal(waitOf(lockout, HERE, ANN), 300);
  clock.ms += 4 * MINUTE_MS + 30_500;
  assert.equal(waitOf(lockout, HERE, ANN), 30, "rounded up");
  clock.ms += 29_499;
  assert.equal(waitOf(lockout, HERE, ANN), 1);
  clock.ms += 1;
  assert.equal(waitOf(lockout, HERE, ANN), 0);
  fail(lockout, HERE, ANN, 4);
  assert.equal(waitOf(lockout, HERE, ANN), 0, "counted from the start again");
});

Deno.test("Lockout forgets failures older than five minutes", none, () => {
  const { clock, lockout } = make();
  for (let i = 0; i < 20; i++) {
    fail(lockout, HERE, ANN);
    clock.ms += 75_001; // Four and a bit of these fill the window.
  }
  assert.equal(waitOf(lockout, HERE, ANN), 0);
  fail(lockout, HERE, ANN);
  assert.equal(waitOf(lockout, HERE, ANN), 0);
  fail(lockout, HERE, ANN);
  assert.ok(waitOf(lockout, HERE, ANN) > 0);
});

Deno.test("Lockout counts what belongs together", none, async (t) => {
  const rows: [string, [string | null, string | null], [string | null, string | null], boolean][] =
    [
      ["the same address with another name", [HERE, "ann"], [HERE, "bob"], true],
      ["the same name from another address", [HERE, "ann"], ["192.0.2.2", "ann"], true],
      ["neither of them", [HERE, "ann"], ["192.0.2.2", "bob"], false],
      ["a name in other letters", [null, "Ann"], [null, "aNN"], true],
      ["a name in another composition", [null, "Zo\u00eb"], [null, "Zoe\u0308"], true],
      ["one IPv6 network of 64 bits", ["2001:db8::1", null], ["2001:db8::ffff:2", null], true],
      ["another IPv6 network", ["2001:db8::1", null], ["2001:db8:0:1::1", null], false],
      ["IPv4 in IPv6", ["192.0.2.1", null], ["::ffff:192.0.2.1", null], true],
      ["IPv4 that is mapped in one network", ["::ffff:192.0.2.1", null], [
        "::ffff:192.0.2.2",
        null,
      ], false],
      ["a link-local address with its zone", ["fe80::1%eth0", null], ["fe80::1", null], true],
    ];
  for (const [name, failed, asked, isLocked] of rows) {
    await t.step(name, () => {
      const { lockout } = make();
      fail(lockout, ...failed, 5);
      assert.equal(waitOf(lockout, ...asked), isLocked ? 300 : 0);
    });
  }
});

Deno.test("Lockout clears the name only after a success", none, () => {
  const { lockout } = make();
  fail(lockout, HERE, ANN, 4);
  lockout.begin(HERE, ANN).succeed();
  fail(lockout, "192.0.2.2", ANN, 4);
  assert.equal(waitOf(lockout, null, ANN), 0);
  fail(lockout, HERE, "bob");
  assert.equal(waitOf(lockout, HERE, null), 300, "four failures from here, and one");
});

Deno.test("Lockout counts an attempt from its beginning", none, () => {
  const { lockout } = make();
  const attempts = Array.from({ length: 5 }, () => lockout.begin(HERE, ANN));
  assert.equal(waitOf(lockout, HERE, ANN), 1, "a sixth at once may not");
  attempts[0].drop();
  assert.equal(waitOf(lockout, HERE, ANN), 0);
  attempts[0].fail();
  assert.equal(waitOf(lockout, HERE, ANN), 0, "it had ended");
  for (const attempt of attempts.slice(1)) attempt.fail();
  assert.equal(waitOf(lockout, HERE, ANN), 0);
  const last = [lockout.begin(HERE, ANN)];
  last[0].fail();
  assert.equal(waitOf(lockout, HERE, ANN), 300);
});

Deno.test("Lockout keeps the locked and the nearly locked when a flood needs room", none, () => {
  const { clock, lockout } = make(8);
  fail(lockout, null, "locked", 5);
  fail(lockout, null, "nearly", 4);
  for (let i = 0; i < 1_000; i++) fail(lockout, null, `flood ${i}`);
  assert.equal(waitOf(lockout, null, "locked"), 300);
  fail(lockout, null, "nearly");
  assert.equal(waitOf(lockout, null, "nearly"), 300);
  clock.ms += 5 * MINUTE_MS;
  for (let i = 0; i < 8; i++) fail(lockout, null, `next ${i}`, 4);
  for (let i = 0; i < 8; i++) fail(lockout, null, `next ${i}`);
  for (let i = 0; i < 8; i++) assert.equal(waitOf(lockout, null, `next ${i}`), 300, "room again");
});

Deno.test("Lockout locks nobody for longer where the clock was ahead and is set", none, () => {
  const { clock, lockout } = make();
  const rightMs = clock.ms;
  clock.ms += 80 * 365 * 24 * 60 * MINUTE_MS;
  fail(lockout, null, "locked", 5);
  fail(lockout, null, "nearly", 4);
  assert.equal(waitOf(lockout, null, "locked"), 300);
  clock.ms = rightMs;
  assert.equal(waitOf(lockout, null, "locked"), 0);
  fail(lockout, null, "nearly");
  assert.equal(waitOf(lockout, null, "nearly"), 0, "what failed then is forgotten");
  fail(lockout, null, "locked", 5);
  assert.equal(waitOf(lockout, null, "locked"), 300);
});
