import assert from "node:assert/strict";
import { emptyState } from "../model/mod.ts";
import { FakeClock, FakeUsers } from "./fakes.ts";
import { FAILURE_REFILL_MS, FAILURES_TOLD, SignInLog } from "./sign_in_log.ts";

const none = { permissions: "none" } as const;
const DAY_MS = 86_400_000;

function world() {
  const clock = new FakeClock();
  const users = new FakeUsers(clock);
  users.state = emptyState();
  const later: { readonly atMs: number; readonly work: () => void }[] = [];
  const log = new SignInLog(users, clock, (ms, work) => {
    later.push({ atMs: clock.ms + ms, work });
  });
  const passTo = async (ms: number) => {
    clock.ms = ms;
    for (const due of later.filter(({ atMs }) => atMs <= ms)) {
      later.splice(later.indexOf(due), 1);
      due.work();
    }
    await Promise.resolve();
  };
  return { clock, users, log, later, passTo };
}

Deno.test("SignInLog tells the first failures one by one and counts the rest", none, async () => {
  const { users, log, later, passTo } = world();
  for (let i = 0; i < FAILURES_TOLD + 1_000; i++) await log.failed(null, `192.0.2.${i % 256}`);
  assert.equal(users.audit.length, FAILURES_TOLD);
  assert.equal(later.length, 1);
  await passTo(later[0].atMs);
  const { action, actor, after } = users.audit[FAILURES_TOLD];
  assert.equal(action, "sign_in_failed");
  assert.equal(actor.kind, "system");
  assert.deepEqual(after, { count: 1_000, since: "2026-01-02T03:04:05.000Z" });
  await log.failed(null, "192.0.2.1");
  assert.equal(users.audit.at(-1)?.actor.address, "192.0.2.1", "an hour later they are told again");
});

Deno.test(
  "SignInLog writes no more in a month of guesses than a tenth of the log",
  none,
  async () => {
    const { clock, users, log, passTo } = world();
    const endMs = clock.ms + 30 * DAY_MS;
    while (clock.ms < endMs) {
      await passTo(clock.ms + 30_000);
      await log.failed(null, "192.0.2.1");
    }
    const most = FAILURES_TOLD + 30 * (DAY_MS / FAILURE_REFILL_MS + 24);
    assert.ok(users.audit.length <= most, `${users.audit.length}`);
    assert.ok(most < 10_000);
    const counted = users.audit.reduce(
      (sum, { after }) => sum + ((after as { count?: number } | null)?.count ?? 1),
      0,
    );
    assert.ok(counted >= 30 * DAY_MS / 30_000 - 120, "but for those of the last hour all are told");
  },
);

Deno.test("SignInLog takes a clock that is set back", none, async () => {
  const { clock, users, log } = world();
  for (let i = 0; i < FAILURES_TOLD; i++) await log.failed(null, null);
  clock.ms -= 30 * DAY_MS;
  await log.failed(null, null);
  assert.equal(users.audit.length, FAILURES_TOLD);
  clock.ms += FAILURE_REFILL_MS;
  await log.failed(null, null);
  assert.equal(users.audit.length, FAILURES_TOLD + 1);
});
