import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { compile } from "../filter/mod.ts";
import { keepRules, type KeptRules, readKeptRules } from "./kept_rules.ts";

// The folder of each test is made below the system's own for temporary files.
const disk = { permissions: { read: true, write: true } } as const;
const KEY = new Uint8Array(32).fill(7);

function withHash(kept: KeptRules): KeptRules & { rulesSha256: Uint8Array } {
  const bytes = new Uint8Array(kept.rules).slice();
  return { ...kept, rulesSha256: createHash("sha256").update(bytes).digest() };
}

function rulesOf(text: string, seed: number) {
  const { rules, stats, badfilters } = compile({
    seed,
    sources: [{ bytes: new TextEncoder().encode(text) }],
  });
  return withHash({ seed, rules, stats, badfilters });
}

async function withFile(use: (path: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await use(`${dir}/rules.bin`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** Runs without the log's lines, and counts them. */
async function loglessly(run: () => Promise<void>): Promise<number> {
  const write = Deno.stderr.writeSync;
  let lines = 0;
  Deno.stderr.writeSync = (bytes) => {
    lines++;
    return bytes.length;
  };
  try {
    await run();
  } finally {
    Deno.stderr.writeSync = write;
  }
  return lines;
}

Deno.test("readKeptRules() reads what keepRules() wrote", disk, () =>
  withFile(async (path) => {
    for (const seed of [-5, 0, 0x7fffffff]) {
      const kept = rulesOf("||ads.example^\n".repeat(3) + "||x.example^$badfilter\n", seed);
      await keepRules(path, KEY, kept); // Also over the one before.
      const read = await readKeptRules(path, KEY);
      assert.ok(read !== null);
      assert.equal(read.seed, seed);
      assert.deepEqual([read.stats, read.badfilters], [kept.stats, [{
        source: 0,
        text: "||x.example^$badfilter",
      }]]);
      assert.deepEqual(new Uint8Array(read.rules), new Uint8Array(kept.rules));
    }
    const files = Array.from(Deno.readDirSync(path.replace("/rules.bin", "")), ({ name }) => name);
    assert.deepEqual(files, ["rules.bin"]);
    assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  }));

Deno.test("readKeptRules() reads rules larger than a piece", disk, () =>
  withFile(async (path) => {
    const rules = new SharedArrayBuffer(3 * 1024 * 1024 + 5);
    crypto.getRandomValues(new Uint8Array(65_536)).forEach((b, i) =>
      new Uint8Array(rules)[i * 40] = b
    );
    await keepRules(path, KEY, withHash({ seed: 1, rules, stats: [], badfilters: [] }));
    const read = await readKeptRules(path, KEY);
    assert.deepEqual(new Uint8Array(read!.rules), new Uint8Array(rules));
  }));

Deno.test(
  "readKeptRules() takes nothing that is absent, of other texts or not whole",
  disk,
  () =>
    withFile(async (path) => {
      const none = async () => assert.equal(await readKeptRules(path, KEY), null);
      await none();
      const kept = rulesOf("||ads.example^\n", 1);
      await keepRules(path, KEY, kept);
      const other = KEY.with(31, 8);
      assert.equal(await readKeptRules(path, other), null);
      const whole = await Deno.readFile(path);
      await loglessly(async () => {
        for (const length of [0, 3, 11, 12, 75, 76, 80, whole.length - 1]) {
          await Deno.writeFile(path, whole.subarray(0, length));
          await none();
        }
        await Deno.writeFile(path, Uint8Array.of(...whole, 0));
        await none();
      });
      await Deno.writeFile(path, whole);
      assert.ok(await readKeptRules(path, KEY) !== null);
    }),
);

Deno.test("readKeptRules() sees one damaged bit anywhere", disk, () =>
  withFile(async (path) => {
    await keepRules(path, KEY, rulesOf("||ads.example^\n", 1));
    const whole = await Deno.readFile(path);
    await loglessly(async () => {
      // Every byte of the head and of what follows at once, then some of the many zeros.
      for (let at = 0; at < whole.length; at += at < 400 ? 1 : 97) {
        const damaged = whole.with(at, whole[at] ^ (1 << (at & 7)));
        await Deno.writeFile(path, damaged);
        assert.equal(await readKeptRules(path, KEY), null, `byte ${at}`);
      }
    });
  }));

Deno.test(
  "keepRules() and readKeptRules() go on where the disk does not",
  disk,
  () =>
    withFile(async (path) => {
      const lines = await loglessly(async () => {
        await keepRules(`${path}/no/such/folder`, KEY, rulesOf("", 1));
        await Deno.mkdir(path);
        assert.equal(await readKeptRules(path, KEY), null);
      });
      assert.ok(lines >= 1);
    }),
);
