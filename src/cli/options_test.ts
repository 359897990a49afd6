import assert from "node:assert/strict";
import { readOptions } from "./options.ts";
import { VERSION } from "../version.ts";
import { version } from "./version.ts";

const none = { permissions: "none" } as const;

/** What a call prints, line by line, and returns. */
async function printed<T>(run: () => T | Promise<T>) {
  const [out, err]: [string[], string[]] = [[], []];
  const { log, error } = console;
  console.log = (line: string) => void out.push(line);
  console.error = (line: string) => void err.push(line);
  try {
    return { result: await run(), out, err };
  } finally {
    Object.assign(console, { log, error });
  }
}

Deno.test("readOptions() reads options, prints help and refuses the rest", none, async (t) => {
  const tells = "(svc try --help tells more)";
  const rows: [string[], unknown, string[], RegExp | null][] = [
    [[], {}, [], null],
    [["--config", "a.toml"], { config: "a.toml" }, [], null],
    [["--config=a.toml", "--dry"], { config: "a.toml", dry: true }, [], null],
    [["--help"], 0, ["HELP"], null],
    [["--dry", "--help"], 0, ["HELP"], null],
    [["--unknown"], 2, [], /^svc try: Unknown option '--unknown'/],
    [["stray"], 2, [], /^svc try: Unexpected argument 'stray'/],
    [["--config"], 2, [], /^svc try: Option '--config <value>' argument missing/],
    [["--dry=yes"], 2, [], /^svc try: /],
  ];
  for (const [args, want, out, err] of rows) {
    await t.step(args.join(" "), async () => {
      const options = { config: { type: "string" }, dry: { type: "boolean" } } as const;
      const got = await printed(() => readOptions("try", "HELP", args, options));
      assert.deepEqual(
        typeof got.result === "number" ? got.result : { ...got.result },
        want,
      );
      assert.deepEqual(got.out, out);
      assert.equal(got.err.length, err === null ? 0 : 1, "one line at most");
      if (err !== null) {
        assert.match(got.err[0], err);
        assert.ok(got.err[0].endsWith(tells) && !got.err[0].includes("\n"));
      }
    });
  }
});

Deno.test("version() prints what runs here", none, async () => {
  const { result, out } = await printed(() => version([]));
  assert.equal(result, 0);
  const { deno, v8 } = Deno.version;
  assert.deepEqual(out, [`svc ${VERSION} (Deno ${deno}, V8 ${v8}, ${Deno.build.target})`]);
  assert.equal((await printed(() => version(["--help"]))).result, 0);
  assert.equal((await printed(() => version(["more"]))).result, 2);
});
