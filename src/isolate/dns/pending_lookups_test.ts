import assert from "node:assert/strict";
import { SvcError } from "../../errors.ts";
import type { ToDns } from "../messages.ts";
import { PENDING_MAX, PendingLookups } from "./pending_lookups.ts";

const none = { permissions: "none" } as const;
const { signal } = new AbortController();
const FOUND = { addresses: ["192.0.2.1"], ttl: 60, failure: null };

function isUnavailable(text: RegExp) {
  return (error: unknown) =>
    error instanceof SvcError && error.code === "unavailable" && text.test(error.message);
}

Deno.test(
  "PendingLookups.start() resolves with what the isolate found for this one",
  none,
  async () => {
    const pending = new PendingLookups();
    const told: ToDns[] = [];
    const [one, other] = ["one.example", "other.example"].map((name) =>
      pending.start(name, 1, signal, (message) => told.push(message))
    );
    const ids = told.map((message) => message.type === "lookup" ? message.id : -1);
    assert.equal(new Set(ids).size, 2);
    pending.end(ids[1], { ...FOUND, addresses: [] });
    pending.end(ids[0], FOUND);
    pending.end(4_711, FOUND); // One that nobody waits for.
    assert.deepEqual((await one).addresses, ["192.0.2.1"]);
    assert.deepEqual((await other).addresses, []);
    assert.equal(pending.size, 0);
  },
);

Deno.test("PendingLookups.start() rejects with the reason", none, async () => {
  const pending = new PendingLookups();
  const failing = pending.start("a.example", 1, signal, (message) => {
    if (message.type === "lookup") pending.end(message.id, { ...FOUND, failure: "no answer" });
  });
  await assert.rejects(failing, isUnavailable(/a\.example .* no answer/));
  const crashed = pending.start("b.example", 1, signal, () => {});
  pending.fail("the isolate ended");
  await assert.rejects(crashed, isUnavailable(/the isolate ended/));
  const abort = new AbortController();
  const aborted = pending.start("c.example", 1, abort.signal, () => {});
  abort.abort();
  await assert.rejects(aborted, isUnavailable(/nobody waits/));
  await assert.rejects(
    pending.start("d.example", 1, abort.signal, () => assert.fail("told in vain")),
    isUnavailable(/nobody waits/),
  );
  assert.equal(pending.size, 0);
});

Deno.test("PendingLookups.start() bounds how many wait", none, async () => {
  const pending = new PendingLookups();
  const all = Array.from(
    { length: PENDING_MAX },
    (_, i) => pending.start(`n${i}.example`, 1, signal, () => {}),
  );
  await assert.rejects(pending.start("x.example", 1, signal, () => {}), isUnavailable(/too many/));
  pending.fail("the isolate ended");
  await Promise.all(all.map((one) => assert.rejects(one)));
});
