import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { formatRestored, restore } from "./backup.ts";

const none = { permissions: "none" } as const;
const KEPT = { added: 0, changed: 0, removed: 0, kept: 3, left_out: 0 };

Deno.test("formatRestored() tells what differs, without anything a terminal acts on", none, () => {
  const restored = {
    done: false,
    counts: { rules: { ...KEPT, added: 2 }, users: { ...KEPT, kept: 0, left_out: 1 } },
    items: [
      { type: "rule", id: "ru_1", name: "||a\u001b[31m^", kind: "added" },
      { type: "settings", id: null, name: "", kind: "changed" },
      { type: "user", id: "us_1", name: "ann", kind: "left_out" },
    ],
  };
  assert.deepEqual(formatRestored(restored).split("\n"), [
    "rules: 2 added, 0 changed, 0 removed, 3 kept",
    "users: 0 added, 0 changed, 0 removed, 0 kept, 1 left out: what is secret of them needs the passphrase",
    "  added rule ru_1 ||a�[31m^",
    "  changed settings",
    "  left out user us_1 ann",
    "nothing was changed",
  ]);
  assert.match(formatRestored({ ...restored, items: [] }), /^ {2}and 3 more$/m);
});

Deno.test("restore() reads no file that is none, and asks nobody then", {
  permissions: { read: true, write: true },
}, async (t) => {
  const path = await Deno.makeTempFile({ prefix: "svc-restore-" });
  const refused = async (message: RegExp) => {
    await assert.rejects(restore([path]), (error) => {
      assert.ok(error instanceof SvcError);
      assert.ok(error.message.startsWith(path));
      assert.match(error.message, message);
      return true;
    });
  };
  await t.step("cut short", async () => {
    await Deno.writeTextFile(path, '{"format":"svc backup","ver');
    await refused(/it is no whole JSON text: take another copy of it$/);
  });
  await t.step("too large", async () => {
    await Deno.truncate(path, 1 << 30);
    await refused(/it is larger than 33554432 bytes$/);
  });
  await Deno.remove(path);
  await t.step("not there", () => refused(/can't be read/));
});
