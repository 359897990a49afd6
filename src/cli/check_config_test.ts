import assert from "node:assert/strict";
import { checkConfig } from "./check_config.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";

// The folder of each test is made below the system's own for temporary files.
const disk = { permissions: { read: true, write: true } } as const;

interface Ran {
  readonly code: number;
  readonly out: string[];
  readonly err: string[];
}

/** Runs the command and keeps what it prints. */
async function run(args: string[]): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []];
  const { log, error } = console;
  console.log = (line: string) => void out.push(line);
  console.error = (line: string) => void err.push(line);
  try {
    return { code: await checkConfig(args), out, err };
  } finally {
    Object.assign(console, { log, error });
  }
}

/** Runs the command on a file of its own; `DIR` stands for its folder. */
async function runOn(text: string, files: Record<string, string> = {}): Promise<Ran> {
  const dir = await Deno.realPath(await Deno.makeTempDir());
  try {
    const path = `${dir}/svc.toml`;
    await Deno.writeTextFile(path, text);
    for (const [name, content] of Object.entries(files)) {
      await Deno.mkdir(`${dir}/lists`, { recursive: true });
      await Deno.writeTextFile(`${dir}/${name}`, content);
    }
    const { code, out, err } = await run(["--config", path]);
    const show = (line: string) => line.replaceAll(dir, "DIR");
    return { code, out: out.map(show), err: err.map(show) };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("checkConfig() says ok and what the file comes to", disk, async () => {
  const text = `[server]\nlisten = ["127.0.0.1:1053"]\n[[upstream]]\naddress = "9.9.9.9"\n` +
    `[filter]\nlists = [{ name = "own", path = "lists/own.txt" }]\nrules = ["||ads.example^"]\n`;
  assert.deepEqual(await runOn(text, { "lists/own.txt": "||ads.example^\n" }), {
    code: 0,
    out: ["DIR/svc.toml: ok, 2 listeners, 1 upstream, 1 list, 1 rule"],
    err: [],
  });
});

Deno.test("checkConfig() prints problems of the text and of the files together", disk, async () => {
  const text = `[filter]\nlists = [\n  { name = "own", path = "lists/own.txt" },\n` +
    `  { name = "far", path = "/far.txt" },\n]\n[cache]\nsize = 3\n`;
  assert.deepEqual(await runOn(text), {
    code: 2,
    out: [],
    err: [
      'DIR/svc.toml:3: filter.lists[0].path: "DIR/lists/own.txt" is not there: make it or name another',
      "DIR/svc.toml:4: filter.lists[1].path: is outside of filter.local_lists_dir, so the list is " +
      'skipped: move the file into "DIR/lists"',
      'DIR/svc.toml:7: cache.size: is a number without a unit: write a size such as "32MiB"',
    ],
  });
});

Deno.test("checkConfig() says where TOML itself is broken", disk, async () => {
  const { code, err } = await runOn("[server]\nworkers = \n");
  assert.equal(code, 2);
  assert.equal(err.length, 1);
  assert.match(err[0], /^DIR\/svc\.toml:2: column \d+: is no valid TOML: /);
});

Deno.test("checkConfig() says how to mend a file that can't be read", disk, async () => {
  assert.deepEqual(await run(["--config", "/nonexistent/svc.toml"]), {
    code: 2,
    out: [],
    err: ["/nonexistent/svc.toml: is not there: make it, or name another with --config"],
  });
  const { code, err } = await run(["--config", "/"]);
  assert.equal(code, 2);
  assert.match(err.join(), /^\/: can't be read: /);
});

Deno.test("checkConfig() refuses wrong usage in one line", { permissions: "none" }, async (t) => {
  for (const args of [["--confg", "x"], ["extra"], ["--config"], ["--help=1"]]) {
    await t.step(args.join(" "), async () => {
      const { code, out, err } = await run(args);
      assert.deepEqual([code, out.length, err.length], [2, 0, 1]);
      assert.match(err[0], /^svc check-config: .*--help tells more\)$/);
    });
  }
});

Deno.test("checkConfig() has a --help", { permissions: "none" }, async () => {
  const { code, out, err } = await run(["--help"]);
  assert.deepEqual([code, err], [0, []]);
  assert.match(out.join("\n"), /--config FILE/);
});

Deno.test("loadConfig() falls back to the defaults only where nobody named a file", {
  permissions: { read: [DEFAULT_CONFIG_FILE] },
  ignore: await exists(DEFAULT_CONFIG_FILE),
}, async () => {
  const loaded = await loadConfig(undefined);
  assert.equal(loaded.fromDefaults, true);
  assert.equal(loaded.config?.filter.localListsDir, "/etc/svc/lists");
  assert.deepEqual(loaded.problems, []);
  const named = await loadConfig(DEFAULT_CONFIG_FILE);
  assert.deepEqual([named.fromDefaults, named.config], [false, null]);
  const witness = await loadConfig(undefined, "witness");
  assert.deepEqual([witness.fromDefaults, witness.config], [false, null]);
});

/** The machine's own configuration, if it has one, is not for tests. */
async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}
