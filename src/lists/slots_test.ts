import assert from "node:assert/strict";
import { Slots } from "./slots.ts";

const none = { permissions: "none" } as const;

Deno.test(
  "Slots.run() lets urgent work go first, and who gives up waits no longer",
  none,
  async () => {
    const slots = new Slots(1);
    const gate = Promise.withResolvers<void>();
    const order: string[] = [];
    const work = (name: string) => () => Promise.resolve(void order.push(name));
    const first = slots.run(() => gate.promise);
    const stop = new AbortController();
    const gone = new Error("gone");
    const given = slots.run(work("given up"), { signal: stop.signal });
    const others = [
      slots.run(work("b")),
      slots.run(work("urgent a"), { isUrgent: true }),
      slots.run(work("urgent b"), { isUrgent: true }),
      slots.run(work("c")),
    ];
    stop.abort(gone);
    await assert.rejects(given, gone);
    await assert.rejects(slots.run(work("late"), { signal: AbortSignal.abort(gone) }), gone);
    assert.deepEqual(order, []);
    gate.resolve();
    await Promise.all([first, ...others]);
    assert.deepEqual(order, ["urgent a", "urgent b", "b", "c"]);
  },
);

Deno.test("Slots.run() hands a place on, however work ends", none, async () => {
  const slots = new Slots(2);
  const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  let running = 0;
  const runs = gates.map(({ promise }) =>
    slots.run(() => {
      running++;
      return promise.finally(() => running--);
    })
  );
  assert.equal(running, 2);
  gates[0].reject(new Error("failed"));
  await assert.rejects(runs[0], /failed/);
  assert.equal(running, 2);
  gates[1].resolve();
  gates[2].resolve();
  await Promise.all(runs.slice(1));
  await assert.rejects(slots.run(() => Promise.resolve(), { signal: AbortSignal.abort() }));
  await Promise.all([slots.run(() => Promise.resolve()), slots.run(() => Promise.resolve())]);
});
