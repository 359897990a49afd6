// Goal: what is built can be installed, found, upgraded and removed. Method: one build with a key of
// the tests' own, its Debian package looked at, and the file installed on a machine of the test's own,
// where the service runs as the unit has it. `debian_test.ts` has the package on machines with systemd.
import assert from "node:assert/strict";
import { createHash, sign } from "node:crypto";
import { signedText } from "../../src/update/release.ts";
import { Build } from "./build.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, ROOT, runProgram, until } from "./harness.ts";
import { OwnMachine } from "./machine.ts";

const TARGET = Deno.build.target;
const PROGRAM = "/usr/local/lib/svc/svc";
const IS_ROOT = Deno.uid() === 0;
const options = {
  permissions: PERMISSIONS,
  ignore: Deno.build.os !== "linux" || Deno.env.get("SVC_PROGRAM") !== undefined,
};

type Ran = Awaited<ReturnType<typeof runProgram>>;

async function succeed(command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, ...args);
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${stderr}`);
  return stdout;
}

function assertDone({ code, stdout, stderr }: Ran): string {
  assert.deepEqual([code, stderr], [0, ""], stdout);
  return stdout;
}

/** Lines of `tar -tv` as mode, owner and name. */
function entries(listing: string): Map<string, string> {
  return new Map(
    listing.trim().split("\n").map((line) => {
      const [mode, owner, , , , ...name] = line.split(/\s+/);
      return [name.join(" "), `${mode} ${owner}`];
    }),
  );
}

Deno.test("a build can be installed, updated and removed", options, async (t) => {
  await using directory = await OwnDirectory.make("svc-packages-");
  const work = directory.path;
  // Paths of this folder are those of the test alone, which others may not enter.
  await Deno.chmod(work, 0o755);
  await using build = await Build.of();
  const { file, deb } = build;
  const isDebian = deb !== null;

  await t.step({
    name: "its Debian package holds what it should (needs dpkg-deb)",
    ignore: !isDebian,
    fn: async () => {
      assert(deb !== null);
      const info = await succeed("dpkg-deb", "--info", deb);
      assert.match(info, /^ Package: svc$/m);
      assert.match(info, /^ Version: \d+\.\d+\.\d+-1$/m);
      assert.match(info, /^ Depends: .*libc6 \(>= 2\.\d+\)/m);
      const found = entries(await succeed("dpkg-deb", "--contents", deb));
      const wanted: readonly (readonly [string, string])[] = [
        ["./", "drwxr-xr-x root/root"],
        ["./usr/lib/svc/svc", "-rwxr-xr-x root/root"],
        ["./usr/bin/svc -> ../lib/svc/svc", "lrwxrwxrwx root/root"],
        ["./etc/svc/svc.toml", "-rw-r--r-- root/root"],
        ["./lib/systemd/system/svc.service", "-rw-r--r-- root/root"],
        ["./lib/systemd/system/svc-witness.service", "-rw-r--r-- root/root"],
        ["./lib/systemd/system/svc-vrrp.service", "-rw-r--r-- root/root"],
        ["./usr/share/doc/svc/copyright", "-rw-r--r-- root/root"],
      ];
      for (const [path, mode] of wanted) assert.equal(found.get(path), mode, path);
      await succeed("dpkg-deb", "--control", deb, `${work}/control`);
      assert.equal(await Deno.readTextFile(`${work}/control/conffiles`), "/etc/svc/svc.toml\n");
      for (const script of ["postinst", "prerm", "postrm"]) {
        await succeed("sh", "-n", `${work}/control/${script}`);
      }
      const archive = `dpkg-deb --fsys-tarfile "$1" | tar -xO ./usr/share/doc/svc/copyright`;
      const copyright = await succeed("sh", "-c", archive, "sh", deb);
      for (const name of ["hono", "preact", "uplot", "lucide-static"]) {
        assert.match(copyright, new RegExp(`^ ${name} [\\d.]+: (MIT|ISC)$`, "m"));
      }
      assert.doesNotMatch(copyright, /esbuild|playwright/);
      if (hasProgram("lintian")) await succeed("lintian", "--fail-on", "error", deb);
    },
  });

  await using machine = IS_ROOT ? await OwnMachine.make() : null;
  const on = { ignore: machine === null } as const;
  const run = (...command: string[]) => machine!.run(...command);

  await t.step({
    ...on,
    name: "svc install does everything once (needs root and namespaces)",
    fn: async () => {
      const planned = assertDone(await run(file, "install", "--no-start", "--dry-run"));
      assert.match(planned, /^would make the system user svc$/m);
      assert.equal((await run("test", "-e", PROGRAM)).code, 1, "a dry run changes nothing");
      assert.match(assertDone(await run(file, "install", "--no-start")), /^copy .*lib\/svc\/svc$/m);
      const again = assertDone(await run("svc", "install", "--no-start"));
      assert.equal(again, "installed for the user svc: /etc/svc/svc.toml\n");
      const stat = ["stat", "--format", "%a %U %G %n"];
      const places = ["/var/lib/svc", "/etc/svc", "/etc/svc/svc.toml", PROGRAM];
      assert.equal(
        assertDone(await run(...stat, ...places)),
        "700 svc svc /var/lib/svc\n750 root svc /etc/svc\n640 root svc /etc/svc/svc.toml\n" +
          `755 root root ${PROGRAM}\n`,
      );
      assert.match(assertDone(await run("svc", "check-config")), /^\/etc\/svc\/svc\.toml: ok/);
    },
  });

  await t.step({
    ...on,
    name: "that is there for all users, extracted once",
    fn: async () => {
      const nobody = ["setpriv", "--reuid", "nobody", "--clear-groups"];
      // There is nowhere to extract a copy of one's own.
      const bare = ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent"];
      assert.match(assertDone(await run(...bare, ...nobody, "svc", "version")), /^svc \d/);
    },
  });

  await t.step({
    ...on,
    name: "the service answers on port 53 as the unit's user",
    fn: async () => {
      const rights = ["--inh-caps", "+net_bind_service", "--ambient-caps", "+net_bind_service"];
      const user = ["setpriv", "--reuid", "svc", "--regid", "svc", "--clear-groups", ...rights];
      const [program, ...args] = [...machine!.prefix, ...user, PROGRAM, "run"];
      const service = new Deno.Command(program, { args, stderr: "null", stdin: "null" }).spawn();
      try {
        await until("an answer", async () => (await run("svc", "health")).code === 0);
      } finally {
        await machine!.end(service, "SIGTERM");
      }
      assert.equal((await run("svc", "health")).code, 1);
    },
  });

  await t.step({
    ...on,
    name: "systemd-resolved in the way is named, with the mend",
    fn: async () => {
      const script = `const stub = Deno.listen({ hostname: "127.0.0.53", port: 53 });
        console.log("listening");
        for await (const one of stub) one.close();`;
      const [program, ...args] = [...machine!.prefix, Deno.execPath(), "eval", script];
      const stub = new Deno.Command(program, { args, stdout: "piped", stdin: "null" }).spawn();
      try {
        const reader = stub.stdout.getReader();
        await reader.read();
        await reader.cancel();
        const checked = await run("svc", "check-config");
        assert.equal(checked.code, 0, "it may well be gone when the service starts");
        assert.match(checked.stderr, /server\.listen\[0\]: 0\.0\.0\.0:53 is taken by systemd-res/);
        const installed = await run("svc", "install");
        assert.equal(installed.code, 1);
        assert.match(installed.stderr, /svc\.service is not started: .*DNSStubListener=no/);
      } finally {
        await machine!.end(stub, "SIGKILL");
      }
    },
  });

  await t.step({
    ...on,
    name: "svc update asks its own upstreams, and takes a signed release alone",
    fn: async () => {
      const newer = new TextEncoder().encode("#!/bin/sh\necho 'svc 99.0.0 (a test)'\n");
      const about = {
        target: TARGET,
        url: "newer",
        size: newer.length,
        sha256: createHash("sha256").update(newer).digest("hex"),
      };
      const signature = sign(null, signedText("99.0.0", about), await build.key()).toString(
        "base64",
      );
      const releases = `${work}/releases`;
      await Deno.mkdir(releases);
      await Deno.writeFile(`${releases}/newer`, newer);
      const offer = (version: string) =>
        Deno.writeTextFile(
          `${releases}/release.json`,
          JSON.stringify({ version, files: [{ ...about, signature }] }),
        );
      const script = `import { readFileSync } from "node:fs";
        const udp = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 5399 });
        (async () => {
          for await (const [query, from] of udp) {
            console.error(new TextDecoder("latin1").decode(query).replace(/[^a-zA-Z]+/g, " "));
            query[2] |= 0x80;
            query[3] = 3;
            await udp.send(query, from);
          }
        })();
        Deno.serve({ hostname: "127.0.0.1", port: 5380, onListen: () => console.log("listening") },
          (request) => new Response(readFileSync(${JSON.stringify(releases)} +
            new URL(request.url).pathname)));`;
      const [program, ...args] = [
        ...machine!.prefix,
        ...[Deno.execPath(), "run", "--quiet", "--no-config", "--unstable-net", "-A", "-"],
      ];
      await Deno.writeTextFile(`${work}/releases.ts`, script);
      const server = new Deno.Command(program, {
        args: [...args.slice(0, -1), `${work}/releases.ts`],
        ...{ stdin: "null", stdout: "piped", stderr: "piped" } as const,
      }).spawn();
      const heard = new Response(server.stderr).text();
      try {
        const reader = server.stdout.getReader();
        await reader.read();
        await reader.cancel();
        const configure = async (url: string) => {
          const text = `[[upstream]]\naddress = "127.0.0.1:5399"\n[update]\nurl = "${url}"\n`;
          await Deno.writeTextFile(`${work}/svc.toml`, text);
        };
        const update = (what: string) => run("svc", "update", what, "--config", `${work}/svc.toml`);
        await configure("https://releases.example/release.json");
        const unknown = await update("check");
        assert.equal(unknown.code, 1);
        assert.match(unknown.stderr, /^svc update: update\.url: releases\.example/m);
        await configure("http://127.0.0.1:5380/release.json");
        await offer("98.0.0");
        assert.match((await update("check")).stdout, /^svc 98\.0\.0 is there/);
        const forged = await update("apply");
        assert.equal(forged.code, 1);
        assert.match(forged.stderr, /signature of 98\.0\.0 .* none of this program's keys/);
        await offer("99.0.0");
        const applied = await update("apply");
        assert.deepEqual([applied.code, applied.stderr], [0, ""], applied.stdout);
        assert.equal((await run("svc", "version")).stdout, "svc 99.0.0 (a test)\n");
      } finally {
        await machine!.end(server, "SIGKILL");
      }
      assert.match(await heard, /releases example/i);
    },
  });

  await t.step({
    ...on,
    name: "svc install puts the program back, and svc uninstall takes all of it away",
    fn: async () => {
      assertDone(await run(file, "install", "--no-start"));
      assert.match((await run("svc", "version")).stdout, /\(Deno/);
      assert.match(assertDone(await run("svc", "uninstall")), /^uninstalled$/m);
      assert.equal((await run("test", "-e", "/etc/svc/svc.toml")).code, 0);
      assertDone(await run(file, "uninstall", "--purge"));
      for (const path of ["/etc/svc", "/var/lib/svc", "/usr/local/lib/svc", "/usr/local/bin/svc"]) {
        assert.equal((await run("test", "-e", path)).code, 1, path);
      }
      assert.equal((await run("id", "svc")).code, 1);
    },
  });
});

Deno.test("the units are as shut in as can be", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("systemd-analyze"),
}, async (t) => {
  const { unitText, UNITS } = await import("../../src/install/mod.ts");
  await using directory = await OwnDirectory.make();
  for (const unit of UNITS) {
    await t.step(unit, async () => {
      const text = await unitText(unit, { user: "svc", program: "/bin/true" });
      await Deno.writeTextFile(`${directory.path}/${unit}`, text);
      const { code, stdout } = await runProgram(
        "systemd-analyze",
        ...[
          "security",
          "--offline=yes",
          "--no-pager",
          "--threshold=20",
          `${directory.path}/${unit}`,
        ],
      );
      const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
      assert.ok(code === 0 && exposure <= 2, `${exposure}`);
    });
  }
});

Deno.test("every example in the configurations that come with it is valid", {
  permissions: PERMISSIONS,
}, async (t) => {
  for (const file of ["src/install/files/svc.toml", "dist/container.toml"]) {
    await t.step(file, () => assertValid(file));
  }
});

async function assertValid(file: string): Promise<void> {
  const { formatProblem, parseConfig } = await import("../../src/config/mod.ts");
  const text = await Deno.readTextFile(ROOT + file);
  const place = { file: "svc.toml", directory: "/etc/svc" };
  assert.deepEqual(parseConfig(text, place).problems, []);
  const examples = text.replace(/^#(?=\[|\w+ = )/gm, "");
  assert.notEqual(examples, text);
  assert.deepEqual(parseConfig(examples, place).problems.map(formatProblem), []);
}
