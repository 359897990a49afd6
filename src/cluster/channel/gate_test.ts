import assert from "node:assert/strict";
import { Gate } from "./gate.ts";
import {
  MEMBER_HANDSHAKES_MAX,
  SOURCE_HANDSHAKE_BURST,
  SOURCE_HANDSHAKES_MAX,
  STRANGER_HANDSHAKE_BURST,
  STRANGER_HANDSHAKES_MAX,
} from "./limits.ts";

const alone = { permissions: "none" } as const;
const MEMBER = "192.0.2.1";

/** A gate with a clock that stands, and who has been ended, by number. */
function makeGate() {
  const clock = { nowMs: 0 };
  const gate = new Gate(new Set([MEMBER]), () => clock.nowMs);
  const ended: number[] = [];
  let count = 0;
  const enter = (source: string) => {
    const number = count++;
    const one = {
      end: () => {
        ended.push(number);
        gate.leave(source, one);
      },
    };
    return gate.enter(source, one) ? one : null;
  };
  return { gate, clock, ended, enter };
}

Deno.test("Gate has who holds a handshake open for longest go first", alone, () => {
  const { gate, ended, enter } = makeGate();
  for (let i = 0; i < SOURCE_HANDSHAKES_MAX + 2; i++) assert.ok(enter("192.0.2.9"));
  assert.deepEqual(ended, [0, 1]);
  assert.equal(gate.size, SOURCE_HANDSHAKES_MAX);
});

Deno.test("Gate bounds what all strangers hold, and how often they begin", alone, () => {
  const { gate, clock, enter } = makeGate();
  let taken = 0;
  for (let i = 0; i < 4_096; i++) if (enter(`198.51.${i >> 8}.${i & 255}`) !== null) taken++;
  assert.equal(taken, STRANGER_HANDSHAKE_BURST);
  assert.equal(gate.size, STRANGER_HANDSHAKES_MAX);
  clock.nowMs += 1_000;
  assert.ok(enter("203.0.113.1") !== null);
});

Deno.test("Gate bounds how often one stranger begins", alone, () => {
  const { clock, enter } = makeGate();
  const tries = () => Array.from({ length: 50 }, () => enter("192.0.2.9")).filter((one) => one);
  assert.equal(tries().length, SOURCE_HANDSHAKE_BURST);
  clock.nowMs += 1_000;
  assert.equal(tries().length, 10);
});

Deno.test("Gate lets members in whatever strangers do", alone, () => {
  const { ended, enter } = makeGate();
  const mine = enter(MEMBER);
  for (let i = 0; i < 4_096; i++) enter(`198.51.${i >> 8}.${i & 255}`);
  assert.ok(mine !== null && !ended.includes(0));
  for (let i = 0; i < 2 * MEMBER_HANDSHAKES_MAX; i++) assert.ok(enter(MEMBER) !== null);
  assert.ok(ended.includes(0), "its own flood pushes it out in the end");
});
