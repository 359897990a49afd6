// Goal: the file built for ARM64 works there: layouts of the C library's structures, SQLite, Argon2, and
// the service as a whole. Method: it is built here, and what it carries runs under emulation, by the unit
// tests of the modules that touch the machine and as a service that is asked; alone on two cores that
// takes about a minute. What emulation can't do: the script before the archive, which is the same for
// every machine, asks for a kernel of its own; the program can't execute itself, and sandbox filters know
// another processor's calls. So the service begins as what its first stage would execute.
import assert from "node:assert/strict";
import { NOTHING_LEFT } from "../../scripts/benchmark/start_runs.ts";
import { Build } from "./build.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import {
  HAS_IPV6,
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  ROOT,
  runProgram,
  toml,
  until,
} from "./harness.ts";

const TARGET = "aarch64-unknown-linux-gnu";
/** Debian's libraries for that processor. */
const LIBRARIES = "/usr/aarch64-linux-gnu";
const EMULATOR = ["qemu-aarch64-static", "-L", LIBRARIES];
/** What differs from one processor to the next, and what each native part does first. */
const FILES = [
  "src/native/native_test.ts",
  "src/auth/passwords_test.ts",
  "src/querylog/query_log_test.ts",
];
const FIRST = [
  "UdpBatch answers",
  "UdpEphemeral hears",
  "openServer",
  "EventQueue",
  "hashPassword\\(\\) makes",
  "QueryLogStore answers",
];
/** How many tests that is, where there is IPv6. */
const FIRST_COUNT = HAS_IPV6 ? 9 : 7;
const WAIT_MS_MAX = 300_000;

function hasLibraries(): boolean {
  try {
    return Deno.statSync(`${LIBRARIES}/lib/libc.so.6`).isFile;
  } catch {
    console.log(`skipped: there are no libraries for ARM64 in ${LIBRARIES}`);
    return false;
  }
}

async function succeed(command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, ...args);
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** What the built file carries, below `directory`. */
async function unpack(directory: string): Promise<string> {
  await using build = await Build.of(TARGET);
  const root = `${directory}/root`;
  await Deno.mkdir(root);
  const script = `offset=$(sed -n 's/^payload_offset=//p;/^payload_files=/q' "$1")
    tail -c "+$offset" <"$1" | tar -xz -C "$2" && cd "$2" && sha256sum --quiet -c manifest`;
  await succeed("sh", "-c", script, "sh", build.file, root);
  return root;
}

/** Has the program take for slow what it takes for hung elsewhere. */
async function haveItWait(program: string): Promise<void> {
  const limits = /\b(startMsMax|silenceMsMax):1e4\b/g;
  const files = await succeed(
    "grep",
    "-rlE",
    "--include=*.js",
    "(startMsMax|silenceMsMax):1e4",
    program,
  );
  for (const file of files.trim().split("\n")) {
    const text = await Deno.readTextFile(file);
    await Deno.writeTextFile(file, text.replace(limits, "$1:2e5"));
  }
}

/** Deno's flags behind its command, for what was unpacked. */
function flagsOf(config: string): string[] {
  const found = ["--quiet", "--no-prompt", "--no-remote", "--cached-only", "--no-lock"];
  return [...found, "--config", config];
}

Deno.test("the file built for ARM64 works under emulation", {
  permissions: PERMISSIONS,
  ignore: Deno.env.get("SVC_PROGRAM") !== undefined || Deno.build.os !== "linux" ||
    Deno.build.arch !== "x86_64" || !hasProgram(EMULATOR[0]) || !hasLibraries(),
}, async (t) => {
  await using directory = await OwnDirectory.make("svc-arm64-");
  const root = await unpack(directory.path);
  const program = `${root}/program`;
  const [emulator, ...before] = [...EMULATOR, `${root}/deno`];
  const env = { DENO_DIR: `${directory.path}/deno_dir` };

  await t.step("carries add-ons for it, and no others", async () => {
    const addOns = await succeed("find", program, "-name", "*.node", "-printf", "%f\n");
    assert.equal(addOns, "argon2.linux-arm64-gnu.node\n");
  });

  await t.step("its native parts do what they do elsewhere", async () => {
    // Tests are no part of the program; they come beside it.
    await succeed("cp", "-r", `${ROOT}src`, program);
    await succeed(
      "sh",
      "-c",
      `mkdir "$2/tests" && cp "$1"tests/*.ts "$2/tests"`,
      "sh",
      ROOT,
      program,
    );
    // Their packages are in the bundle: here they are those of the checkout.
    const config = `${program}/tests.json`;
    const { unstable, imports } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
    const packages = { nodeModulesDir: "manual", unstable, imports };
    await Deno.writeTextFile(config, JSON.stringify(packages));
    await Deno.symlink(
      await Deno.realPath(`${ROOT}node_modules/zod`),
      `${program}/node_modules/zod`,
    );
    const filter = ["--filter", `/^(${FIRST.join("|")})/`];
    // As one file: under emulation each takes seconds to begin with.
    const file = `${program}/native_parts_test.ts`;
    await Deno.writeTextFile(file, FILES.map((one) => `import "./${one}";\n`).join(""));
    // Compiling TypeScript is the same work on either processor, and faster on this one.
    const compiled = await new Deno.Command(Deno.execPath(), {
      args: ["cache", "--quiet", "--no-lock", "--config", config, file],
      env,
      stdin: "null",
    }).output();
    assert.ok(compiled.success, new TextDecoder().decode(compiled.stderr));
    const command = new Deno.Command(emulator, {
      args: [...before, "test", "-A", "--no-check", ...flagsOf(config), ...filter, file],
      env,
      stdin: "null",
    });
    const { code, stdout, stderr } = await command.output();
    const told = new TextDecoder().decode(stdout);
    assert.equal(code, 0, told + new TextDecoder().decode(stderr));
    assert.ok(told.includes(`${FIRST_COUNT} passed`), told);
  });

  await t.step({
    name: "the service answers, blocks, and keeps what it is told",
    ignore: !hasProgram("kdig"),
    fn: async () => {
      await haveItWait(program);
      const authority = await makeAuthority();
      await writePair(directory.path, "server", await authority.issue({ names: ["dns.example"] }));
      await Deno.writeTextFile(
        `${directory.path}/svc.toml`,
        toml({
          server: { listen: ["127.0.0.1:0"], workers: 1 },
          "server.tls": { cert: "server.crt", key: "server.key", dot: ["127.0.0.1:0"] },
          filter: {
            ...{ default_lists: false, services: false, directory: false },
            rules: ["||blocked.example^"],
          },
          security: { sandbox: false },
          store: { path: "store" },
          api: { listen: ["127.0.0.1:0"] },
        }),
      );
      const file = ["--config", `${directory.path}/svc.toml`];
      const service = new Deno.Command(emulator, {
        args: [
          ...before,
          "run",
          "-A",
          ...flagsOf(`${program}/deno.json`),
          `${program}/src/cli/run_main.js`,
          "run",
          ...file,
        ],
        env: { ...env, SVC_INHERITED: NOTHING_LEFT },
        ...{ stdin: "null", stdout: "null", stderr: "piped" } as const,
      }).spawn();
      let logged = "";
      const collected = service.stderr.pipeThrough(new TextDecoderStream()).pipeTo(
        new WritableStream({ write: (piece) => void (logged += piece) }),
      );
      let hasEnded = false;
      const ended = service.status.then((status) => {
        hasEnded = true;
        return status;
      });
      const found = async (message: string): Promise<Record<string, string[]>> => {
        const line = () => logged.split("\n").find((one) => one.includes(`"message":"${message}"`));
        await until(message, () => line() !== undefined || hasEnded, WAIT_MS_MAX);
        return JSON.parse(line() ?? assert.fail(logged));
      };
      try {
        const { listen, dot } = await found("answering");
        const ask = async (place: string, ...question: string[]) => {
          const at = ["@127.0.0.1", "-p", place.replace(/.*:/, ""), "+short"];
          return (await succeed("kdig", ...at, "+timeout=30", ...question)).trim();
        };
        assert.equal(await ask(listen[0], "blocked.example"), "0.0.0.0");
        assert.equal(await ask(listen[0], "health.svc.test"), "127.0.0.1");
        assert.equal(await ask(listen[0], "+tcp", "health.svc.test"), "127.0.0.1");
        assert.equal(await ask(dot[0], "+tls", "blocked.example"), "0.0.0.0");
        const { listen: [address] } = await found("serving the API");
        const api = `http://${address}/api/v1`;
        const post = (path: string, body: unknown) =>
          fetch(`${api}/${path}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          });
        const user = { name: "anna", password: "correct horse" };
        const made = await post("users", { ...user, role: "admin" });
        assert.equal(made.status, 201, await made.text());
        const wrong = await post("auth/login", { ...user, password: "wrong horse" });
        assert.equal(wrong.status, 401, await wrong.text());
        const signedIn = await post("auth/login", user);
        assert.equal(signedIn.status, 200, await signedIn.text());
        const cookie = signedIn.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
        await until("both in SQLite", async () => {
          const entries = await fetch(`${api}/querylog?outcome=blocked`, { headers: { cookie } });
          return (await entries.json()).entries.length === 2;
        }, WAIT_MS_MAX);
        service.kill("SIGTERM");
        assert.equal((await ended).code, 0, logged);
      } finally {
        if (!hasEnded) service.kill("SIGKILL");
        await ended;
        await collected;
      }
    },
  });
});
