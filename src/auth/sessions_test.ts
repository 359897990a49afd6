import assert from "node:assert/strict";
import type { StoredUser } from "../model/mod.ts";
import { sha256Hex } from "./secrets.ts";
import {
  endedSessionCookie,
  isSessionValid,
  readSessionCookies,
  sessionCookie,
  sessionFor,
} from "./sessions.ts";

const none = { permissions: "none" } as const;
const NOW_MS = Date.parse("2026-01-02T03:04:05Z");
const HOUR_MS = 3_600_000;

const ann: StoredUser = {
  id: "us_0000000000000001",
  revision: 3,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
  name: "ann",
  role: "viewer",
  disabled: false,
  password_hash: "",
  otp: null,
  reset: null,
  session_epoch: 7,
};

Deno.test("sessionFor() keeps the hash of the cookie's value only", none, () => {
  const { session, value } = sessionFor(ann, NOW_MS);
  assert.match(value, /^[\w-]{43}$/);
  assert.deepEqual(session, {
    sha256: sha256Hex(value),
    userId: ann.id,
    epoch: 7,
    expiresAtMs: NOW_MS + 12 * HOUR_MS,
  });
});

Deno.test("isSessionValid() holds for twelve hours and one epoch", none, async (t) => {
  const { session } = sessionFor(ann, NOW_MS);
  const rows: [string, StoredUser | null, number, boolean][] = [
    ["at once", ann, 0, true],
    ["to the last millisecond", ann, 12 * HOUR_MS - 1, true],
    ["not after twelve hours", ann, 12 * HOUR_MS, false],
    ["nor while the clock is back where it could not have been made", ann, -61_000, false],
    ["a clock that is set back a little ends nothing", ann, -60_000, true],
    ["not once the epoch has grown", { ...ann, session_epoch: 8 }, 0, false],
    ["nor where it is behind", { ...ann, session_epoch: 6 }, 0, false],
    ["not for a disabled user", { ...ann, disabled: true }, 0, false],
    ["not for another user", { ...ann, id: "us_0000000000000002" }, 0, false],
    ["not for a user who was removed", null, 0, false],
    ["whatever the revision", { ...ann, revision: 9, name: "anna" }, 0, true],
  ];
  for (const [name, user, afterMs, want] of rows) {
    await t.step(name, () => {
      assert.equal(isSessionValid(session, user, NOW_MS + afterMs), want);
    });
  }
});

Deno.test("sessionCookie() is HttpOnly, SameSite=Strict and Secure over TLS", none, () => {
  const common = "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict";
  assert.equal(sessionCookie("v", false), `svc_session=v; ${common}`);
  assert.equal(sessionCookie("v", true), `svc_session=v; ${common}; Secure`);
  assert.equal(
    endedSessionCookie(false),
    "svc_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
  );
});

Deno.test("readSessionCookies() finds what may be the value among others", none, async (t) => {
  const value = "A".repeat(42) + "-";
  const many = Array.from({ length: 8 }, (_, i) => "A".repeat(41) + (10 + i));
  const rows = [
    [null, []],
    ["", []],
    [`svc_session=${value}`, [value]],
    [`a=b; svc_session=${value}; c=d`, [value]],
    [`a=b;svc_session=${value}`, [value]],
    [`a=%ZZ; svc_session=${value}`, [value]],
    [`svc_session=${value}; svc_session=${"B".repeat(43)}`, [value, "B".repeat(43)]],
    [`svc_session=junk; svc_session=${value}; svc_session=${value}`, [value]],
    [
      Array.from({ length: 20 }, (_, i) => `svc_session=${"A".repeat(41)}${10 + i}`).join(";"),
      many,
    ],
    [`SVC_SESSION=${value}`, []],
    [`xsvc_session=${value}`, []],
    ["svc_session=", []],
    ["svc_session", []],
    [`svc_session="${value}"`, []],
    [`svc_session=${value}A`, []],
    [`${"a=b; ".repeat(5_000)}svc_session=${value}`, []],
  ] as const;
  for (const [header, want] of rows) {
    await t.step(String(header).slice(0, 40), () => {
      assert.deepEqual(readSessionCookies(header), want);
    });
  }
});
