// Goal: what the compile isolate says is heard, and not only what it makes. Method: the real isolate,
// with fewer permissions than it wants.
import assert from "node:assert/strict";
import { handLogLines, type LogLine } from "../../log.ts";
import { compileRules } from "./compile.ts";

const SEED = 7;

function source(text: string) {
  return { bytes: new TextEncoder().encode(text), isService: false };
}

Deno.test({
  name: "compileRules() compiles, and hands the log lines of its isolate on",
  permissions: { read: true }, // None for the priority, which is no failure.
  // A worker that was ended is gone a little later.
  sanitizeResources: false,
  sanitizeOps: false,
}, async () => {
  const told: LogLine[] = [];
  handLogLines((line) => told.push(line));
  try {
    const { stats } = await compileRules({ seed: SEED, sources: [source("||ads.example^\n")] });
    assert.equal(stats[0].rules, 1);
  } finally {
    handLogLines(null);
  }
  assert.deepEqual(told.map(({ level, message }) => `${level}: ${message}`), [
    "warn: an isolate runs at the priority of those that answer",
  ]);
});
