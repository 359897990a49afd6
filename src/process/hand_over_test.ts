import assert from "node:assert/strict";
import { until } from "../../tests/e2e/harness.ts";
import { openHandOver, openProcess } from "../native/system.ts";
import { exitCodeOf, GONE, killProcess, LATE, Line, Memory, startProgram } from "./mod.ts";

const [library, process] = [openHandOver(), openProcess()];
const options = { permissions: { ffi: true }, ignore: library === null } as const;

Deno.test("Line hands messages on, and tells when the other end is gone", options, async () => {
  const [one, other] = Line.pair(library!);
  one.tell({ type: "a" });
  one.tell({ type: "b", text: "line\nfeed" });
  assert.deepEqual(await other.hear(5_000), { type: "a" });
  assert.deepEqual(await other.hear(5_000), { type: "b", text: "line\nfeed" });
  assert.equal(await other.hear(0), LATE);
  one.tell({ type: "last" });
  one.close();
  assert.deepEqual(await other.hear(5_000), { type: "last" });
  assert.equal(await other.hear(5_000), GONE);
  other.tell("to nobody");
  other.close();
});

Deno.test("Line ends the wait of both ends when one is closed", options, async () => {
  const [one, other] = Line.pair(library!);
  const heard: unknown[] = [];
  for (const end of [one, other]) void end.hear(600_000).then((what) => heard.push(what));
  await new Promise((resolve) => setTimeout(resolve)); // Both are parked.
  one.close();
  await until("both waits end", () => heard.length === 2);
  assert.deepEqual(heard, [GONE, GONE]);
  other.close();
});

Deno.test("Memory gives back what was written, and no more", options, () => {
  const memory = Memory.make(library!);
  const bytes = new Uint8Array(3_000_001).map((_, i) => i * 7);
  memory.append(bytes.subarray(0, 5));
  memory.append(bytes.subarray(5));
  assert.equal(memory.length, bytes.length);
  const back = new Uint8Array(new SharedArrayBuffer(bytes.length - 5));
  assert.equal(memory.read(back, 5), true);
  assert.deepEqual(back.slice(), bytes.slice(5));
  assert.equal(memory.read(new Uint8Array(2), bytes.length - 1), false);
  memory.close();
});

Deno.test("startProgram() starts what there is, and says what there is not", options, async () => {
  const none = { descriptors: [], notes: null };
  const start = (...args: string[]) =>
    startProgram(process!, library!, { path: args[0], args }, none);
  assert.throws(() => start("/nowhere/at/all"), /cannot start \/nowhere\/at\/all/);
  const ended = async (pid: number) => {
    for (;;) {
      const code = exitCodeOf(library!, pid);
      if (code !== null) return code;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  assert.equal(await ended(start("/bin/sh", "-c", "exit 3")), 3);
  const told = ["/bin/sh", "-c", 'case $SVC_INHERITED in *"[]"*) exit 4 ;; esac'];
  assert.equal(await ended(start(...told)), 4, "it is told what it inherits");
  const pid = start("/bin/sleep", "100");
  killProcess(library!, pid);
  assert.equal(await ended(pid), 128 + 9);
});
