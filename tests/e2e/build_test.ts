// Goal: the one file that `scripts/build` makes runs anywhere and never runs something else than what
// it carries. Method: a small program of the same shape as svc (a worker, an npm package, an add-on, a
// file read beside the source) is built self-extracting and started under each trouble in turn.

import assert from "node:assert/strict";
import { Build } from "./build.ts";
import { OwnDirectory } from "./harness.ts";

const ROOT = `${import.meta.dirname}/../../`;
const CONFIG = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
const AS_ROOT = Deno.uid() === 0;
const FILE_NAME = `svc-${Deno.build.target}`;
/** Covers Deno and the program, 107 MiB, and what Deno caches beside them. */
const ROOMY_MIB = 160;
const TIGHT_MIB = 20;
const NOBODY = 65_534;

const PERMISSIONS = {
  run: true,
  read: true,
  write: true,
  env: true,
  sys: ["uid"],
} as const satisfies Deno.PermissionOptions;

/** Add-ons are tried once the project has one: packages come from its own lock file alone. */
const ADD_ON = "@node-rs/argon2";
const HAS_ADD_ON = ADD_ON in CONFIG.imports;

const PROGRAM: Readonly<Record<string, string>> = {
  "main.ts": `import { main } from "./src/cli/mod.ts";
    Deno.exitCode = await main(Deno.args);`,
  "src/cli/run_main.ts": `const CLI = new URL("./mod.ts", import.meta.url).href;
    const { main } = await import(CLI);
    Deno.exitCode = await main(Deno.args);`,
  "src/cli/mod.ts": `export async function main(args: readonly string[]): Promise<number> {
      const { state } = await Deno.permissions.query({ name: "read" });
      if (args[0] === "run") await (await import("./run.ts")).run();
      console.log(args.join("|"), "read", state === "granted");
      return args.length === 3 ? 2 : 0;
    }`,
  "src/cli/run.ts": `import { z } from "zod";
    ${HAS_ADD_ON ? `import { hash } from "${ADD_ON}";` : "const hash = () => '$argon2';"}
    export async function run(): Promise<void> {
      console.log(z.string().parse("package"));
      console.log((await hash("secret")).slice(0, 7));
      console.log(await Deno.readTextFile(new URL("./beside.txt", import.meta.url)));
      (await Deno.openKv(":memory:")).close();
      const url = new URL("../isolate/echo_worker.ts", import.meta.url);
      const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
      await new Promise<void>((resolve) => {
        worker.onmessage = ({ data }) => resolve(console.log(data));
      });
      worker.terminate();
    }`,
  "src/cli/beside.txt": "file",
  "src/cli/mod_test.ts": "throw new Error('tests are not part of the program');",
  "src/isolate/echo_worker.ts": `import { z } from "zod";
    const text: string = z.string().parse("worker");
    self.postMessage(text);`,
};

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function start(
  command: string,
  args: readonly string[],
  options: Deno.CommandOptions = {},
): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    stdin: "null",
    ...options,
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

async function succeed(command: string, ...args: string[]): Promise<string> {
  const ended = await start(command, args);
  assert.equal(ended.code, 0, `${command} ${args.join(" ")}: ${ended.stderr}`);
  return ended.stdout;
}

/** Writes the small program into `directory`. */
async function writeProgram(directory: string): Promise<void> {
  for (const [path, text] of Object.entries(PROGRAM)) {
    await Deno.mkdir(`${directory}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${directory}/${path}`, text);
  }
  await Deno.writeTextFile(`${directory}/deno.json`, JSON.stringify(CONFIG));
  await Deno.copyFile(`${ROOT}deno.lock`, `${directory}/deno.lock`);
}

async function namesIn(directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of Deno.readDir(directory)) names.push(name);
  return names;
}

/** Whether this machine lets the test mount a file system of its own. */
async function canMount(directory: string): Promise<boolean> {
  if (!AS_ROOT) return false;
  const { code } = await start("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", directory]);
  if (code === 0) await succeed("umount", directory);
  return code === 0;
}

Deno.test("scripts/build makes a self-extracting file", { permissions: PERMISSIONS }, async (t) => {
  const work = await Deno.makeTempDir({ prefix: "svc-build-test-" });
  const file = `${work}/bin/${FILE_NAME}`;
  const mounts: string[] = [];
  let caches = 0;
  const newCache = () => `${work}/cache${++caches}`;
  // An empty environment: no PATH, no HOME, no Deno.
  const startIn = (cache: string, args: readonly string[], command = file): Promise<Ended> =>
    start(command, args, {
      clearEnv: true,
      env: { SVC_CACHE_DIR: cache },
      cwd: `${work}/elsewhere`,
    });
  const mount = async (options: string): Promise<string> => {
    const directory = newCache();
    await Deno.mkdir(directory);
    await succeed("mount", "-t", "tmpfs", "-o", `mode=0700,${options}`, "tmpfs", directory);
    mounts.push(directory);
    return directory;
  };
  /** `version` as the small program answers it, with nothing on standard error. */
  const assertStarts = async (cache: string, command = file): Promise<void> => {
    const ended = await startIn(cache, ["version"], command);
    assert.deepEqual(ended, { code: 0, stdout: "version read false\n", stderr: "" });
  };
  const assertRefused = (ended: Ended, reason: RegExp): void => {
    assert.equal(ended.code, 1);
    assert.equal(ended.stdout, "");
    assert.match(ended.stderr, reason);
    assert.equal(ended.stderr.trimEnd().split("\n").length, 1, "one line");
  };

  try {
    await writeProgram(`${work}/program`);
    await Deno.mkdir(`${work}/elsewhere`);
    // Another project's files in the working directory are none of the program's.
    await Deno.writeTextFile(`${work}/elsewhere/deno.json`, "not JSON");
    const mountable = await canMount(`${work}/elsewhere`);

    await t.step("and says so", async () => {
      const built = await start(`${ROOT}scripts/build`, [
        ...["--kind", "self-extracting", "--program", `${work}/program`],
        ...["--output", `${work}/bin`],
      ]);
      assert.equal(built.code, 0, built.stderr);
      assert.match(built.stdout, /self-extracting/);
      assert.deepEqual(await namesIn(`${work}/bin`), [FILE_NAME]);
    });

    const cache = newCache();
    await t.step("that starts with an empty environment", () => assertStarts(cache));

    await t.step("that loads workers, packages, add-ons and files", async () => {
      const ended = await startIn(cache, ["run"]);
      const lines = ["package", "$argon2", "file", "worker", "run read true"];
      assert.deepEqual(ended, { code: 0, stdout: lines.join("\n") + "\n", stderr: "" });
    });

    await t.step("that carries no test", async () => {
      const found = await succeed("find", cache, "-name", "*_test.ts");
      assert.equal(found, "");
    });

    await t.step("that hands on arguments and the exit code", async () => {
      const ended = await startIn(cache, ["a b", "", "$HOME"]);
      assert.deepEqual(ended, { code: 2, stdout: "a b||$HOME read false\n", stderr: "" });
    });

    await t.step("that may be renamed", async () => {
      await Deno.mkdir(`${work}/other place`);
      await Deno.link(file, `${work}/other place/-s v c`);
      await assertStarts(cache, `${work}/other place/-s v c`);
      assert.equal((await namesIn(cache)).length, 1, "extracted once");
    });

    await t.step("that takes two first starts at once", async () => {
      const fresh = newCache();
      await Promise.all([assertStarts(fresh), assertStarts(fresh)]);
      assert.equal((await namesIn(fresh)).length, 1);
    });

    await t.step(
      "that extracts below XDG_CACHE_HOME, else HOME, into a private directory",
      async () => {
        const home = newCache();
        const ended = await start(file, ["version"], { clearEnv: true, env: { HOME: home } });
        assert.equal(ended.code, 0, ended.stderr);
        assert.equal((await namesIn(`${home}/.cache/svc`)).length, 1);
        // Who root becomes reads there as well.
        const mode = Deno.uid() === 0 ? 0o755 : 0o700;
        assert.equal((await Deno.stat(`${home}/.cache/svc`)).mode! & 0o777, mode);
        // XDG_CACHE_HOME comes first: the extraction is found there, and the other HOME stays unmade.
        const env = { HOME: `${work}/elsewhere/home`, XDG_CACHE_HOME: `${home}/.cache` };
        const again = await start(file, ["version"], { clearEnv: true, env });
        assert.equal(again.code, 0, again.stderr);
        assert.deepEqual(await namesIn(`${work}/elsewhere`), ["deno.json"]);
        await Deno.remove(home, { recursive: true });
      },
    );

    const [name] = await namesIn(cache);
    const changes: readonly (readonly [string, (directory: string) => Promise<void>])[] = [
      ["a changed program", async (directory) => {
        await Deno.writeTextFile(`${directory}/program/main.js`, "console.log('forged');");
      }],
      ["a cut-off runtime", (directory) => Deno.truncate(`${directory}/deno`, 1_000)],
      ["a removed file", (directory) => Deno.remove(`${directory}/program/src/cli/beside.txt`)],
    ];
    for (const [what, change] of changes) {
      await t.step(`that replaces an extraction with ${what}`, async () => {
        await change(`${cache}/${name}`);
        const ended = await startIn(cache, ["version"]);
        assert.equal(ended.code, 0, ended.stderr);
        assert.equal(ended.stdout, "version read false\n");
        assert.match(ended.stderr, /was changed since it was extracted/);
        await assertStarts(cache);
        assert.deepEqual(await namesIn(cache), [name]);
      });
    }

    await t.step("that refuses to start when it is damaged", async () => {
      const damaged = `${work}/damaged`;
      const bytes = await Deno.readFile(file);
      const fresh = newCache();
      bytes[bytes.length >> 1] ^= 1;
      await Deno.writeFile(damaged, bytes, { mode: 0o755 });
      assertRefused(await startIn(fresh, ["version"], damaged), /damaged.* SHA-256/);
      bytes[bytes.length >> 1] ^= 1;
      await Deno.writeFile(damaged, bytes.subarray(0, -1));
      assertRefused(await startIn(fresh, ["version"], damaged), /damaged.* SHA-256/);
      assert.deepEqual(await namesIn(fresh), []);
    });

    await t.step("that refuses a cache directory which others may write", async () => {
      const open = newCache();
      await Deno.mkdir(open);
      await Deno.chmod(open, 0o777);
      assertRefused(await startIn(open, ["version"]), /others may write.*SVC_CACHE_DIR/);
    });

    await t.step({
      name: "that refuses a cache directory of somebody else (needs root)",
      ignore: !AS_ROOT,
      fn: async () => {
        const foreign = newCache();
        await Deno.mkdir(foreign);
        await Deno.chown(foreign, NOBODY, NOBODY);
        assertRefused(await startIn(foreign, ["version"]), /belongs to user 65534, not 0/);
      },
    });

    await t.step({
      name: "that names a full cache directory (needs the right to mount)",
      ignore: !mountable,
      fn: async () => {
        const full = await mount(`size=${TIGHT_MIB}m`);
        assertRefused(await startIn(full, ["version"]), /cannot extract.*free \d+ MiB/);
        assert.deepEqual(await namesIn(full), []);
      },
    });

    await t.step({
      name: "that names a read-only cache directory, and uses one (needs the right to mount)",
      ignore: !mountable,
      fn: async () => {
        const fixed = await mount(`size=${ROOMY_MIB}m`);
        await succeed("mount", "-o", "remount,ro", fixed);
        assertRefused(await startIn(fixed, ["version"]), /cannot write to the cache directory/);
        await succeed("mount", "-o", "remount,rw", fixed);
        await assertStarts(fixed);
        await succeed("mount", "-o", "remount,ro", fixed);
        await assertStarts(fixed);
      },
    });

    await t.step({
      name: "that names a cache directory mounted noexec (needs the right to mount)",
      ignore: !mountable,
      fn: async () => {
        const inert = await mount(`noexec,size=${ROOMY_MIB}m`);
        assertRefused(await startIn(inert, ["version"]), /mounted noexec/);
      },
    });
  } finally {
    for (const directory of mounts) await start("umount", [directory]);
    await Deno.remove(work, { recursive: true });
  }
});

Deno.test("scripts/build makes svc", { permissions: PERMISSIONS }, async (t) => {
  await using build = await Build.of();
  await using work = await OwnDirectory.make("svc-build-test-");
  const cache = `${work.path}/cache`;
  const options = { clearEnv: true, env: { SVC_CACHE_DIR: cache }, cwd: work.path };
  await t.step("that tells its version", async () => {
    const ended = await start(build.file, ["version"], options);
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(ended.stdout.includes(CONFIG.version), ended.stdout);
    assert.ok(ended.stdout.includes(Deno.version.deno), ended.stdout);
  });
  await t.step("that finds the quick start in order", async () => {
    const args = ["check-config", "--config", `${ROOT}dist/quickstart.toml`];
    const ended = await start(build.file, args, options);
    assert.equal(ended.code, 0, ended.stderr);
  });
  await t.step("that carries the licences of the packages in it", async () => {
    const [extracted] = await namesIn(cache);
    const names = await namesIn(`${cache}/${extracted}/program/licences`);
    for (const name of ["preact", "zod"]) {
      assert.ok(names.some((one) => one.startsWith(`${name}@`)), names.join());
    }
  });
});

/** The flags of each command; what a compiled file gets for all of them is what `run` gets. */
async function permissionsOf(command: string): Promise<string[]> {
  const script = '. "$0" && permissions_of "$1" && printf %s "$permissions"';
  const flags = await succeed("sh", "-c", script, `${ROOT}scripts/permissions.sh`, command);
  return flags.split(" ").filter((flag) => flag !== "");
}

Deno.test("permissions_of() gives no command more than run", {
  permissions: PERMISSIONS,
}, async (t) => {
  const all = await permissionsOf("run");
  assert.notDeepEqual(all, []);
  for (const command of ["check-config", "version", "no-such-command", ""]) {
    await t.step(command, async () => {
      for (const flag of await permissionsOf(command)) assert.ok(all.includes(flag), flag);
    });
  }
  await t.step("version needs nothing", async () => {
    assert.deepEqual(await permissionsOf("version"), []);
  });
});

Deno.test("scripts/build refuses what it can't build", { permissions: PERMISSIONS }, async (t) => {
  const cases = [
    [["--target", "riscv64gc-unknown-linux-gnu"], 1, /no build for riscv64gc.* x86_64-unknown-/],
    [["--kind", "zip"], 1, /no kind zip: --kind takes compiled or self-extracting/],
    [["--fast"], 2, /Unknown option '--fast'/],
  ] as const;
  for (const [args, code, message] of cases) {
    await t.step(args.join(" "), async () => {
      const ended = await start(`${ROOT}scripts/build`, args);
      assert.equal(ended.code, code);
      assert.match(ended.stderr, message);
    });
  }
});
