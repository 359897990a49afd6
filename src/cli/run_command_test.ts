import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { runCommand } from "./run_command.ts";

/** What a command prints to standard error that throws this. */
async function said(thrown: unknown): Promise<string[]> {
  const lines: string[] = [];
  const { error } = console;
  console.error = (text: string) => void lines.push(...text.split("\n"));
  try {
    assert.equal(await runCommand("try", () => Promise.reject(thrown)), 1);
    return lines;
  } finally {
    console.error = error;
  }
}

Deno.test("runCommand() says in one line what failed", {
  permissions: { read: true, write: true },
}, async () => {
  const refused = new SvcError("conflict", "store.path: /x is in use");
  assert.deepEqual(await said(refused), ["svc try: store.path: /x is in use"]);
  const folder = await Deno.makeTempDir();
  const ofSystem = await Deno.readTextFile(folder).catch((error) => error);
  const [text, ...more] = await said(ofSystem);
  assert.match(text, /^svc try: Is a directory \(os error 21\)/);
  assert.deepEqual(more, []);
  await Deno.remove(folder);
  const [line, ...stack] = await said(new TypeError("a mistake of ours"));
  assert.equal(line, "svc try: a mistake of ours");
  assert.ok(stack.length > 0, "a stack tells where");
});
