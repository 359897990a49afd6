import assert from "node:assert/strict";
import type { Actor, StoredUser } from "../model/mod.ts";
import { authenticate, type Identity } from "./access.ts";
import { UserAccounts } from "./accounts.ts";
import { userById } from "./change_user.ts";
import { addOn, fakeAuth } from "./fakes.ts";
import { SvcError } from "../errors.ts";
import { beginOtp, changePassword, confirmOtp, removeOtp } from "./own_account.ts";
import { isSessionValid } from "./sessions.ts";
import { login, logout, recovery, redeemReset } from "./sign_in.ts";
import { otpCode } from "./totp.ts";
import {
  changeUser,
  createUser,
  disableOtp,
  issueReset,
  removeUser,
  shownUser,
} from "./user_admin.ts";

type World = ReturnType<typeof fakeAuth>;
const ADMIN: Actor = { kind: "token", name: null, address: "192.0.2.9" };
const address = "192.0.2.1";
const password = "correct horse";
const unauthorized = { code: "unauthorized" };

/** An admin, who is always there, and a viewer: `ann`. */
async function world(): Promise<{ auth: World; ann: StoredUser }> {
  const auth = fakeAuth();
  const common = { disabled: false, password };
  await createUser(auth, { ...common, name: "root", role: "admin" }, ADMIN);
  const ann = await createUser(auth, { ...common, name: "ann", role: "viewer" }, ADMIN);
  return { auth, ann };
}

/** Turns on the second factor of `ann`; the clock then stands at a step that is not used. */
async function withOtp() {
  const { auth, ann } = await world();
  const { secret } = await beginOtp(auth, { user: ann, address, password });
  const code = otpCode(secret, auth.clock.ms);
  const codes = await confirmOtp(auth, { user: ann, address, code });
  auth.clock.ms += 30_000;
  return { auth, ann: userById(auth.users, ann.id), secret, codes };
}

/** Says which of a user's sessions still hold. */
function validSessions({ sessions, users, clock }: World): number {
  return [...sessions.kept.values()].filter((session) =>
    isSessionValid(session, users.state.users.get(session.userId) ?? null, clock.ms)
  ).length;
}

const signIn = (auth: World, name = "ann") => login(auth, { name, password, address });

Deno.test("login() makes a session for the right password", addOn, async () => {
  const { auth, ann } = await world();
  const { user, session, value } = await signIn(auth);
  assert.equal(user.id, ann.id);
  assert.deepEqual([...auth.sessions.kept.values()], [session]);
  assert.equal(session.expiresAtMs - auth.clock.ms, 12 * 3_600_000);
  const request = {
    authorization: null,
    cookie: `svc_session=${value}`,
    host: "localhost:8053",
    origin: null,
    remoteAddress: "127.0.0.1",
  };
  const config = { tokenSha256: null, isSecure: false };
  const identity = await authenticate(auth, config, request, "viewer");
  assert.equal(identity.role, "viewer");
  await logout(auth, session, user, { kind: "user", name: "ann", address });
  await assert.rejects(() => authenticate(auth, config, request, "viewer"), unauthorized);
});

Deno.test("login() refuses alike whatever is wrong", addOn, async (t) => {
  const { auth } = await world();
  const messages = new Set<string>();
  const rows = [
    ["a wrong password", "ann", "wrong password"],
    ["an unknown name", "nobody", password],
    ["a password too short to be one", "root", ""],
    ["a password too long to be one", "root", "a".repeat(300)],
  ];
  for (const [what, name, typed] of rows) {
    await t.step(
      what,
      () =>
        assert.rejects(() => login(auth, { name, password: typed, address }), (error: Error) => {
          messages.add(error.message);
          return "code" in error && error.code === "unauthorized";
        }),
    );
  }
  assert.equal(messages.size, 1);
  assert.equal(auth.sessions.kept.size, 0);
});

Deno.test("login() refuses a disabled account, to whoever knows its password", addOn, async () => {
  const { auth, ann } = await world();
  await changeUser(auth, ann.id, { ...ann, disabled: true, password: null }, null, ADMIN);
  await assert.rejects(() => signIn(auth), { code: "forbidden" });
  await assert.rejects(
    () => login(auth, { name: "ann", password: "wrong password", address }),
    unauthorized,
  );
});

Deno.test("login() locks name and address after five failures", addOn, async () => {
  const { auth } = await world();
  for (let i = 0; i < 5; i++) {
    const wrong = { name: "ann", password: "wrong password", address: `192.0.2.${i}` };
    await assert.rejects(() => login(auth, wrong), unauthorized);
  }
  const locked = { code: "too_many_requests", retryAfterSeconds: 300 };
  await assert.rejects(() => signIn(auth), locked);
  await signIn(auth, "root");
  auth.clock.ms += 5 * 60_000;
  await signIn(auth);
});

Deno.test("login() lets no burst of guesses through", addOn, async () => {
  const { auth } = await world();
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, () => login(auth, { name: "ann", password: "wrong one", address })),
  );
  const codes = results.map((result) => result.status === "rejected" && result.reason.code);
  assert.equal(codes.filter((code) => code === "unauthorized").length, 5);
  assert.equal(codes.filter((code) => code === "too_many_requests").length, 15);
});

Deno.test("login() asks for the code, and takes each once", addOn, async () => {
  const { auth, secret } = await withOtp();
  for (let i = 0; i < 6; i++) {
    await assert.rejects(() => signIn(auth), { code: "otp_required" }, "which is no failure");
  }
  const code = otpCode(secret, auth.clock.ms);
  const withCode = () => login(auth, { name: "ann", password, code, address });
  await assert.rejects(() => login(auth, { name: "ann", password: "wrong one", code, address }), {
    ...unauthorized,
    message: "wrong name, password or code",
  });
  const first = await withCode();
  assert.equal(validSessions(auth), 1);
  assert.equal(first.user.otp?.last_step, Math.floor(auth.clock.ms / 30_000));
  await assert.rejects(withCode, unauthorized);
  auth.clock.ms += 30_000;
  await assert.rejects(withCode, unauthorized);
  const next = otpCode(secret, auth.clock.ms);
  await login(auth, { name: "ann", password, code: next, address });
});

Deno.test("login() takes a code once of two that come at the same time", addOn, async () => {
  const { auth, secret } = await withOtp();
  const code = otpCode(secret, auth.clock.ms);
  const results = await Promise.allSettled(
    [1, 2].map(() => login(auth, { name: "ann", password, code, address })),
  );
  assert.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});

Deno.test("login() goes on when somebody else changes the user meanwhile", addOn, async () => {
  const { auth, ann, secret } = await withOtp();
  auth.users.before = async () => {
    auth.users.before = () => Promise.resolve();
    await changeUser(auth, ann.id, { ...ann, name: "anna", password: null }, null, ADMIN);
  };
  const code = otpCode(secret, auth.clock.ms);
  const { user } = await login(auth, { name: "ann", password, code, address });
  assert.equal(user.name, "anna");
  assert.equal(validSessions(auth), 1);
});

Deno.test("login() is void when the password is changed meanwhile", addOn, async () => {
  const { auth, ann, secret } = await withOtp();
  auth.users.before = async () => {
    auth.users.before = () => Promise.resolve();
    await changeUser(auth, ann.id, { ...ann, password: "another horse" }, null, ADMIN);
  };
  const code = otpCode(secret, auth.clock.ms);
  await assert.rejects(() => login(auth, { name: "ann", password, code, address }), unauthorized);
  assert.equal(validSessions(auth), 0);
});

Deno.test("login() hashes a password anew that was hashed with less", addOn, async () => {
  const { auth, ann } = await world();
  const { hash } = await import("@node-rs/argon2");
  const weak = await hash(password, { memoryCost: 4_096, timeCost: 2, parallelism: 1 });
  await auth.users.propose({
    type: "user_change",
    id: ann.id,
    ifMatch: null,
    fields: { password_hash: weak },
    endSessions: false,
    action: "test",
  }, ADMIN);
  const { user } = await signIn(auth);
  assert.match(user.password_hash, /m=19456,t=2,p=1/);
  assert.equal(validSessions(auth), 1);
  await signIn(auth);
});

Deno.test(
  "recovery() takes each recovery code once, in place of the authenticator's",
  addOn,
  async () => {
    const { auth, codes } = await withOtp();
    assert.equal(codes.length, 10);
    const recover = (recoveryCode: string) =>
      recovery(auth, { name: "ann", password, recoveryCode, address });
    const { user } = await recover(codes[3]);
    assert.equal(user.otp?.recovery.length, 9);
    await assert.rejects(() => recover(codes[3]), unauthorized);
    await recover(codes[4].toUpperCase().replaceAll("-", " "));
    await assert.rejects(() => recover("00000-00000-00000"), unauthorized);
    await assert.rejects(
      () => recovery(auth, { name: "root", password, recoveryCode: codes[0], address }),
      unauthorized,
      "who has no second factor has no recovery codes",
    );
  },
);

Deno.test("a change of password, role, factor or state ends the sessions", addOn, async (t) => {
  const newPassword = "another horse";
  const rows: [string, (auth: World, ann: StoredUser) => Promise<unknown>, number][] = [
    [
      "one's own password",
      (auth, user) =>
        changePassword(auth, { user, address, current: password, password: newPassword }),
      0,
    ],
    [
      "a password an admin sets",
      (auth, ann) => changeUser(auth, ann.id, { ...ann, password: newPassword }, null, ADMIN),
      0,
    ],
    [
      "the role",
      (auth, ann) =>
        changeUser(auth, ann.id, { ...ann, role: "admin", password: null }, null, ADMIN),
      0,
    ],
    [
      "the state",
      (auth, ann) =>
        changeUser(auth, ann.id, { ...ann, disabled: true, password: null }, null, ADMIN),
      0,
    ],
    ["the removal", (auth, ann) => removeUser(auth, ann.id, null, ADMIN), 0],
    ["a factor that is on", async (auth, user) => {
      const { secret } = await beginOtp(auth, { user, address, password });
      assert.equal(validSessions(auth), 1, "not before it is confirmed");
      await confirmOtp(auth, { user, address, code: otpCode(secret, auth.clock.ms) });
    }, 0],
    ["a redeemed link", async (auth, ann) => {
      const { token } = await issueReset(auth, ann.id, ADMIN);
      assert.equal(validSessions(auth), 1, "not when it is made");
      await redeemReset(auth, { token, password: newPassword, address });
    }, 0],
    [
      "nothing: the name",
      (auth, ann) =>
        changeUser(auth, ann.id, { ...ann, name: "anna", password: null }, null, ADMIN),
      1,
    ],
    ["nothing: a factor that was not there", (auth, ann) => disableOtp(auth, ann.id, ADMIN), 1],
  ];
  for (const [name, change, want] of rows) {
    await t.step(name, async () => {
      const { auth, ann } = await world();
      await signIn(auth);
      await change(auth, ann);
      assert.equal(validSessions(auth), want);
    });
  }
  for (const by of ["an admin", "oneself"]) {
    await t.step(`a factor taken off by ${by}`, async () => {
      const { auth, ann, secret } = await withOtp();
      const code = () => otpCode(secret, auth.clock.ms);
      await login(auth, { name: "ann", password, code: code(), address });
      auth.clock.ms += 30_000;
      assert.equal(validSessions(auth), 1);
      if (by === "an admin") await disableOtp(auth, ann.id, ADMIN);
      else await removeOtp(auth, { user: ann, address, password, code: code() });
      assert.equal(validSessions(auth), 0);
      await signIn(auth);
    });
  }
});

Deno.test("changePassword() asks for the current one", addOn, async () => {
  const { auth, ann } = await world();
  const change = (current: string, next: string) =>
    changePassword(auth, { user: ann, address, current, password: next });
  await assert.rejects(() => change("wrong password", "another horse"), unauthorized);
  await assert.rejects(() => change(password, "short"), { code: "invalid" });
  await change(password, "another horse");
  await assert.rejects(() => signIn(auth), unauthorized);
  await login(auth, { name: "ann", password: "another horse", address });
});

Deno.test("beginOtp() to removeOtp() refuse what is out of turn", addOn, async () => {
  const { auth, ann } = await world();
  const own = { user: ann, address };
  const conflict = { code: "conflict" };
  await assert.rejects(() => confirmOtp(auth, { ...own, code: "000000" }), conflict);
  await assert.rejects(() => removeOtp(auth, { ...own, password, code: "000000" }), conflict);
  await assert.rejects(() => beginOtp(auth, { ...own, password: "wrong one" }), unauthorized);
  const first = await beginOtp(auth, { ...own, password });
  const { secret, uri } = await beginOtp(auth, { ...own, password });
  assert.notEqual(first.secret, secret, "begun anew");
  assert.ok(uri.includes(secret) && uri.startsWith("otpauth://totp/svc:ann?"));
  await signIn(auth); // It is not active yet.
  const code = () => otpCode(secret, auth.clock.ms);
  const old = otpCode(first.secret, auth.clock.ms);
  await assert.rejects(() => confirmOtp(auth, { ...own, code: old }), unauthorized);
  const codes = await confirmOtp(auth, { ...own, code: code() });
  await assert.rejects(() => confirmOtp(auth, { ...own, code: code() }), conflict);
  await assert.rejects(() => beginOtp(auth, { ...own, password }), conflict);
  const remove = (typed: string) => removeOtp(auth, { ...own, password, code: typed });
  await assert.rejects(() => remove(code()), unauthorized, "it confirmed the factor");
  await remove(codes[0]);
  assert.equal(userById(auth.users, ann.id).otp, null);
});

Deno.test("a reset link is good once, for an hour, until the next one", addOn, async (t) => {
  const redeem = (auth: World, token: string, next = "another horse") =>
    redeemReset(auth, { token, password: next, address });
  await t.step("once", async () => {
    const { auth, ann } = await world();
    const { token, path, expiresAt } = await issueReset(auth, ann.id, ADMIN);
    assert.match(token, /^[\w-]{43}$/);
    assert.equal(path, `/reset?token=${token}`);
    assert.equal(Date.parse(expiresAt) - auth.clock.ms, 3_600_000);
    await assert.rejects(() => redeem(auth, token, "short"), { code: "invalid" });
    await redeem(auth, token);
    await login(auth, { name: "ann", password: "another horse", address });
    await assert.rejects(() => redeem(auth, token, "a third horse"), unauthorized);
  });
  await t.step("once of two at the same time", async () => {
    const { auth, ann } = await world();
    const { token } = await issueReset(auth, ann.id, ADMIN);
    const results = await Promise.allSettled([redeem(auth, token), redeem(auth, token)]);
    assert.deepEqual(results.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  });
  await t.step("for an hour", async () => {
    const { auth, ann } = await world();
    const { token } = await issueReset(auth, ann.id, ADMIN);
    auth.clock.ms += 3_600_000;
    await assert.rejects(() => redeem(auth, token), unauthorized);
    auth.clock.ms -= 1;
    await redeem(auth, token);
  });
  await t.step("until the next one, or a new password", async () => {
    const { auth, ann } = await world();
    const { token } = await issueReset(auth, ann.id, ADMIN);
    const next = await issueReset(auth, ann.id, ADMIN);
    await assert.rejects(() => redeem(auth, token), unauthorized);
    await changeUser(auth, ann.id, { ...ann, password: "a third horse" }, null, ADMIN);
    await assert.rejects(() => redeem(auth, next.token), unauthorized);
  });
  await t.step("for nobody who is disabled", async () => {
    const { auth, ann } = await world();
    const { token } = await issueReset(auth, ann.id, ADMIN);
    await changeUser(auth, ann.id, { ...ann, disabled: true, password: null }, null, ADMIN);
    await assert.rejects(() => redeem(auth, token), { code: "forbidden" });
  });
  await t.step("and guessing locks the address", async () => {
    const { auth, ann } = await world();
    const { token } = await issueReset(auth, ann.id, ADMIN);
    for (let i = 0; i < 5; i++) {
      await assert.rejects(() => redeem(auth, "A".repeat(43)), unauthorized);
    }
    await assert.rejects(() => redeem(auth, token), { code: "too_many_requests" });
  });
});

Deno.test("createUser() and changeUser() refuse what is wrong", addOn, async (t) => {
  const { auth, ann } = await world();
  const common = { role: "viewer", disabled: false, password } as const;
  const names: [string, string][] = [
    ["", "invalid"],
    [" ann", "invalid"],
    ["a\nb", "invalid"],
    ["a\u200bb", "invalid"],
    ["a  b", "invalid"],
    ["a".repeat(129), "invalid"],
    ["a\u034fb", "invalid"],
    ["\u3164", "invalid"],
    ["a\u202eb", "invalid"],
    ["ANN", "conflict"],
    ["аnn", "conflict"], // Cyrillic а.
    ["ａｎｎ", "conflict"],
  ];
  for (const [name, code] of names) {
    await t.step(JSON.stringify(name).slice(0, 20), async () => {
      await assert.rejects(() => createUser(auth, { ...common, name }, ADMIN), { code });
      const root = [...auth.users.state.users.values()][0];
      const input = { ...root, name, password: null };
      await assert.rejects(() => changeUser(auth, root.id, input, null, ADMIN), { code });
    });
  }
  const input = { ...ann, password: null };
  const none = "us_ffffffffffffffff";
  const rows: [string, () => Promise<unknown>, string][] = [
    [
      "a short password",
      () => createUser(auth, { ...common, name: "bob", password: "short" }, ADMIN),
      "invalid",
    ],
    ["nobody to change", () => changeUser(auth, none, input, null, ADMIN), "not_found"],
    ["nobody to remove", () => removeUser(auth, none, null, ADMIN), "not_found"],
    ["nobody to reset", () => issueReset(auth, none, ADMIN), "not_found"],
    ["nobody to clear", () => disableOtp(auth, none, ADMIN), "not_found"],
    ["an old revision", () => changeUser(auth, ann.id, input, 9, ADMIN), "revision_mismatch"],
    ["an old revision to remove", () => removeUser(auth, ann.id, 9, ADMIN), "revision_mismatch"],
  ];
  for (const [name, run, code] of rows) await t.step(name, () => assert.rejects(run, { code }));
  const changed = await changeUser(auth, ann.id, { ...input, name: "Ann B." }, 1, ADMIN);
  assert.deepEqual(shownUser(changed), {
    name: "Ann B.",
    role: "viewer",
    disabled: false,
    otp: false,
  });
});

Deno.test("no secret gets into the audit log or a log line", addOn, async () => {
  const lines: string[] = [];
  const { writeSync } = Deno.stderr;
  Deno.stderr.writeSync = (bytes) => {
    lines.push(new TextDecoder().decode(bytes));
    return bytes.length;
  };
  const secrets: string[] = [password, "another horse", "wrong password"];
  let audit = "";
  try {
    const { auth, ann } = await world();
    const accounts = new UserAccounts(auth);
    const caller = (): Identity => ({
      actor: { kind: "user", name: "ann", address },
      role: "viewer",
      user: userById(auth.users, ann.id),
      session: null,
      token: null,
    });
    const { secret } = await accounts.beginOtp(caller(), password);
    const code = otpCode(secret, auth.clock.ms);
    const codes = await accounts.confirmOtp(caller(), code);
    const input = { name: "ann", password };
    const recovered = await accounts.recover({ ...input, recoveryCode: codes[0] }, address);
    // A password in the field of the name is a secret as well.
    const mistaken = { name: password, password: "wrong password", code: null };
    await assert.rejects(() => accounts.login(mistaken, address), unauthorized);
    await assert.rejects(
      () => accounts.recover({ ...input, recoveryCode: codes[0] }, address),
      unauthorized,
    );
    auth.clock.ms += 30_000;
    const next = otpCode(secret, auth.clock.ms);
    const { cookie } = await accounts.login({ ...input, code: next }, address);
    await accounts.removeOtp(caller(), password, codes[1]);
    const { token } = await accounts.issueReset(ann.id, ADMIN);
    await accounts.redeemReset(token, "another horse", address);
    await accounts.changePassword(caller(), "another horse", password);
    secrets.push(secret, ...codes, recovered.cookie, cookie, token);
    const { users } = auth.users.state;
    for (const user of users.values()) secrets.push(user.password_hash);
    await accounts.replace(ann.id, { ...ann, password: null }, null, ADMIN);
    await accounts.remove(ann.id, null, ADMIN);
    audit = JSON.stringify(auth.users.audit);
    assert.deepEqual(auth.users.audit.map(({ action }) => action), [
      ...["create", "create", "otp_begin", "otp_enable", "recovery", "sign_in_failed"],
      ...["sign_in_failed", "sign_in", "otp_disable"],
      ...["reset", "reset_redeem", "password", "update", "delete"],
    ]);
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
  const text = audit + lines.join("");
  assert.ok(lines.length >= 2 && text.includes("sign-in refused"));
  for (const secret of secrets) assert.ok(!text.includes(secret), secret);
  assert.doesNotMatch(text, /argon2|_hash|sha256|"secret|"recovery":|epoch/);
});

Deno.test("sign-ins, failed ones and sign-outs are in the audit log", addOn, async () => {
  const { auth, ann } = await world();
  await changeUser(auth, ann.id, { ...ann, disabled: true, password: null }, null, ADMIN);
  auth.users.audit.length = 0;
  const accounts = new UserAccounts(auth);
  const input = { name: "ROOT", password, code: null };
  const { cookie, user } = await accounts.login(input, address);
  await assert.rejects(() => accounts.login({ ...input, password: "wrong" }, address));
  await assert.rejects(() => accounts.login({ ...input, name: "hunter2" }, address), unauthorized);
  await assert.rejects(() => accounts.login({ ...input, name: "ann" }, address));
  const caller = await authenticate(
    auth,
    { tokenSha256: null, isSecure: false },
    {
      authorization: null,
      cookie: `svc_session=${cookie}`,
      host: "localhost",
      origin: null,
      remoteAddress: address,
    },
    "viewer",
  );
  await accounts.logout(caller);
  const nobody = { kind: "unauthenticated", name: null, address };
  const root = { kind: "user", name: "root", address };
  assert.deepEqual(
    auth.users.audit.map(({ action, actor, resource, after }) => ({
      action,
      actor,
      resource,
      after,
    })),
    [
      { action: "sign_in", actor: root, resource: { type: "user", id: user.id }, after: null },
      {
        action: "sign_in_failed",
        actor: nobody,
        resource: { type: "user", id: user.id },
        after: { name: "root" },
      },
      {
        action: "sign_in_failed",
        actor: nobody,
        resource: { type: "user", id: null },
        after: null,
      },
      {
        action: "sign_in_failed",
        actor: nobody,
        resource: { type: "user", id: ann.id },
        after: { name: "ann" },
      },
      { action: "sign_out", actor: root, resource: { type: "user", id: user.id }, after: null },
    ],
  );
});

Deno.test("a sign-in goes on where the audit log can't be written", addOn, async () => {
  const { auth, ann } = await world();
  auth.users.before = () => Promise.reject(new SvcError("unavailable", "store: no space"));
  const { user } = await signIn(auth);
  assert.equal(user.id, ann.id);
  await assert.rejects(() => login(auth, { name: "ann", password: "x", address }), unauthorized);
});
