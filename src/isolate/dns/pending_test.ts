import assert from "node:assert/strict";
import { SvcError } from "../../errors.ts";
import { Pending, PENDING_MAX } from "./pending.ts";

const none = { permissions: "none" } as const;
const { signal } = new AbortController();

function isUnavailable(text: RegExp) {
  return (error: unknown) =>
    error instanceof SvcError && error.code === "unavailable" && text.test(error.message);
}

Deno.test("Pending.start() resolves with what the isolate answered to this one", none, async () => {
  const pending = new Pending<string>();
  const ids: number[] = [];
  const [one, other] = ["one", "other"].map((what) =>
    pending.start(what, signal, (id) => ids.push(id))
  );
  assert.equal(new Set(ids).size, 2);
  pending.end(ids[1], "second");
  pending.end(ids[0], "first");
  pending.end(4_711, "nobody's");
  assert.deepEqual([await one, await other], ["first", "second"]);
  assert.equal(pending.size, 0);
});

Deno.test("Pending.start() rejects with the reason", none, async () => {
  const pending = new Pending<string>();
  const crashed = pending.start("b.example can't be looked up", signal, () => {});
  pending.fail("the isolate ended");
  await assert.rejects(
    crashed,
    isUnavailable(/^b\.example can't be looked up: the isolate ended$/),
  );
  const abort = new AbortController();
  const aborted = pending.start("c.example", abort.signal, () => {});
  abort.abort();
  await assert.rejects(aborted, isUnavailable(/nobody waits/));
  await assert.rejects(
    pending.start("d.example", abort.signal, () => assert.fail("told in vain")),
    isUnavailable(/nobody waits/),
  );
  assert.equal(pending.size, 0);
});

Deno.test("Pending.start() bounds how many wait", none, async () => {
  const pending = new Pending<string>();
  const all = Array.from(
    { length: PENDING_MAX },
    (_, i) => pending.start(`n${i}.example`, signal, () => {}),
  );
  await assert.rejects(pending.start("x.example", signal, () => {}), isUnavailable(/too many/));
  pending.fail("the isolate ended");
  await Promise.all(all.map((one) => assert.rejects(one)));
});
