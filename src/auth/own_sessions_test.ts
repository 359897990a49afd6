import assert from "node:assert/strict";
import type { StoredUser } from "../model/mod.ts";
import type { Identity } from "./access.ts";
import { UserAccounts } from "./accounts.ts";
import { fakeAuth } from "./fakes.ts";
import { sessionFor, sessionId } from "./sessions.ts";

const none = { permissions: "none" } as const;

Deno.test("UserAccounts lists and ends one's own sessions, and nobody else's", none, async () => {
  const auth = fakeAuth();
  const user = (id: string, epoch = 0) =>
    ({ id, name: id, role: "viewer", disabled: false, session_epoch: epoch }) as StoredUser;
  const [ann, bob] = [user("us_1", 1), user("us_2")];
  const nowMs = auth.clock.nowMs();
  const made = async (of: StoredUser, address?: string) => {
    const { session } = sessionFor(of, nowMs, address);
    await auth.sessions.putSession(session);
    return session;
  };
  const first = await made(ann, "192.0.2.1");
  const second = await made(ann, "192.0.2.2");
  const ended = await made({ ...ann, session_epoch: 0 });
  const other = await made(bob);
  const actor = { kind: "user", name: "ann", address: "192.0.2.1" } as const;
  const caller: Identity = { actor, role: "viewer", user: ann, session: first, token: null };
  const accounts = new UserAccounts(auth);
  const own = async () => (await accounts.sessions(caller)).map(({ address }) => address);
  assert.deepEqual(await own(), ["192.0.2.1", "192.0.2.2"], "without the one that has ended");
  for (const id of [sessionId(other), sessionId(ended), first.sha256, "", "se_x"]) {
    await assert.rejects(accounts.endSession(caller, id), { code: "not_found" });
  }
  assert.notEqual(sessionId(first), sessionId(second));
  assert.ok(!first.sha256.includes(sessionId(first).slice(3)), "it tells nothing of the hash");
  await accounts.endSession(caller, sessionId(second));
  assert.deepEqual(await own(), ["192.0.2.1"]);
  await made(ann, "192.0.2.3");
  await made(ann, "192.0.2.4");
  await accounts.endOtherSessions(caller);
  assert.deepEqual(await own(), ["192.0.2.1"]);
  assert.ok(await auth.sessions.session(other.sha256) !== null);
  const token: Identity = { ...caller, user: null, session: null };
  await assert.rejects(accounts.sessions(token), { code: "forbidden" });
});
