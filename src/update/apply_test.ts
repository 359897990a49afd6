import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { HttpGet } from "../http/mod.ts";
import { DenoHost } from "../install/mod.ts";
import { applyRelease } from "./apply.ts";
import { checkSignature, Release, signedText } from "./release.ts";

const FROM = new URL("https://releases.example/svc/release.json");
const TARGET = "x86_64-unknown-linux-gnu";
const FILE = new TextEncoder().encode("#!/bin/sh\necho 'svc 0.8.0 (a test)'\n");
const disk = { permissions: { read: true, write: true, run: true } } as const;

/** Somebody who makes releases. */
class Signer {
  private constructor(readonly key: string, readonly pair: CryptoKeyPair) {}

  static async make(): Promise<Signer> {
    const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
    const raw = await crypto.subtle.exportKey("raw", (pair as CryptoKeyPair).publicKey);
    return new Signer(new Uint8Array(raw).toBase64(), pair as CryptoKeyPair);
  }

  async release(version: string, file: Uint8Array, target = TARGET): Promise<Release> {
    const size = file.length;
    const sha256 = createHash("sha256").update(file).digest("hex");
    const text = signedText(version, { target, size, sha256 });
    const signature = await crypto.subtle.sign("Ed25519", this.pair.privateKey, text);
    const signed = new Uint8Array(signature).toBase64();
    return { version, files: [{ target, url: "svc-file", size, sha256, signature: signed }] };
  }
}

const signer = await Signer.make();

/** A server that answers every request with this. */
function server(
  bytes: Uint8Array,
  head: { status?: number; headers?: Record<string, string> } = {},
): HttpGet {
  return () =>
    Promise.resolve({
      status: head.status ?? 200,
      headers: head.headers ?? {},
      body: (async function* () {
        for (let at = 0; at < bytes.length; at += 16) {
          yield await Promise.resolve(bytes.subarray(at, at + 16));
        }
      })(),
    });
}

/** A machine with systemd's answers; the file that was downloaded is really started. */
class Machine extends DenoHost {
  readonly signals: string[] = [];

  override async run(program: string, args: readonly string[], env = {}) {
    if (program !== "systemctl") return await super.run(program, args, env);
    if (args[0] === "kill") this.signals.push(args.join(" "));
    return { code: args.at(-1) === "svc.service" ? 0 : 3, stdout: "", stderr: "" };
  }
}

interface Attempt {
  readonly release?: Partial<Release>;
  readonly get?: HttpGet;
  readonly current?: string;
  readonly keys?: readonly string[];
  readonly folder?: string;
}

async function attempt(
  { release = {}, get = server(FILE), current = "0.7.0", keys = [signer.key], folder }: Attempt,
): Promise<{ program: string; names: string[]; signals: string[]; failure: string }> {
  const own = folder ?? await Deno.makeTempDir();
  try {
    if (folder === undefined) await Deno.writeTextFile(`${own}/svc`, "program 0.7.0");
    const host = new Machine();
    const failure = await applyRelease({
      release: { ...await signer.release("0.8.0", FILE), ...release },
      ...{ from: FROM, get, host, current, keys, target: TARGET },
      program: `${own}/svc`,
      tell: () => {},
    }).then(() => "", ({ message }) => message);
    return {
      program: await Deno.readTextFile(`${own}/svc`),
      names: (await Array.fromAsync(Deno.readDir(own))).map(({ name }) => name).sort(),
      signals: host.signals,
      failure,
    };
  } finally {
    if (folder === undefined) await Deno.remove(own, { recursive: true });
  }
}

Deno.test("applyRelease() replaces the program and hands the service over", disk, async () => {
  const { program, names, signals, failure } = await attempt({});
  assert.equal(failure, "");
  assert.equal(program, new TextDecoder().decode(FILE));
  assert.deepEqual(names, ["svc"]);
  assert.deepEqual(signals, ["kill --kill-who=main --signal=SIGUSR2 svc.service"]);
});

Deno.test("applyRelease() changes nothing when anything is wrong", disk, async (t) => {
  const [file] = (await signer.release("0.8.0", FILE)).files;
  const other = await Signer.make();
  const forged = FILE.with(FILE.length - 3, 0x21);
  const wrongVersion = new TextEncoder().encode("#!/bin/sh\necho 'svc 0.6.0 (a test)'\n");
  const broken = new TextEncoder().encode("#!/bin/sh\necho no glibc >&2; exit 1\n");
  const stated = (bytes: number) => ({ headers: { "content-length": String(bytes) } });
  const to = (location: string) => server(FILE, { status: 302, headers: { location } });
  const cases: readonly (readonly [string, Attempt, RegExp])[] = [
    ["a file that is cut off", { get: server(FILE.subarray(1)) }, /not the one that was signed/],
    [
      "one that ends before its length",
      { get: server(FILE.subarray(1), stated(FILE.length)) },
      /cut/,
    ],
    ["a huge file", { get: server(new Uint8Array(1e6)) }, /larger than \d+ bytes/],
    ["one that says it is", { get: server(FILE, stated(1e12)) }, /larger than \d+ bytes/],
    ["another file of that size", { get: server(forged) }, /not the one that was signed/],
    ["a page", { get: server(FILE, { headers: { "content-type": "text/html" } }) }, /HTML/],
    ["a server that fails", { get: server(FILE, { status: 500 }) }, /answered 500/],
    ["a redirect to http", { get: to("http://releases.example/f") }, /redirect to .* is refused/],
    ["redirects without end", { get: to("https://releases.example/f") }, /more than 5 redirects/],
    ["a redirect to this machine", { get: to("http://127.0.0.1:8053/") }, /redirect to http/],
    [
      "a file at another protocol",
      { release: { files: [{ ...file, url: "file:///etc/passwd" }] } },
      /no https/,
    ],
    [
      "a signature of somebody else",
      { release: await other.release("0.8.0", FILE) },
      /none of this program's keys/,
    ],
    [
      "no signature",
      { release: { files: [{ ...file, signature: "A".repeat(88) }] } },
      /none of this/,
    ],
    ["no base64", { release: { files: [{ ...file, signature: "!".repeat(88) }] } }, /none of this/],
    [
      "a signed file called newer than it is",
      { release: { version: "0.9.0" } },
      /signature of 0\.9\.0/,
    ],
    [
      "a signed file of another machine",
      {
        release: {
          files: [{ ...(await signer.release("0.8.0", FILE, "aarch64")).files[0], target: TARGET }],
        },
      },
      /signature of 0\.8\.0/,
    ],
    ["no file for this machine", { release: { files: [] } }, /names no file of 0\.8\.0 for x86_64/],
    ["a downgrade", { current: "0.9.0" }, /0\.8\.0 is no newer than 0\.9\.0/],
    ["the same version", { current: "0.8.0" }, /is no newer/],
    ["a program without keys", { keys: [] }, /built without the key/],
    [
      "a signed file of another version",
      { release: await signer.release("0.8.0", wrongVersion), get: server(wrongVersion) },
      /says it is svc 0\.6\.0/,
    ],
    [
      "a file that does not start here",
      { release: await signer.release("0.8.0", broken), get: server(broken) },
      /does not start: no glibc/,
    ],
  ];
  for (const [name, given, wanted] of cases) {
    await t.step(name, async () => {
      const { program, names, signals, failure } = await attempt(given);
      assert.match(failure, wanted);
      assert.deepEqual([program, names, signals], ["program 0.7.0", ["svc"], []]);
    });
  }
});

const isRoot = Deno.build.os === "linux" && Deno.uid() === 0;

Deno.test("applyRelease() changes nothing on a full or read-only disk (needs the right to mount)", {
  ...disk,
  ignore: !isRoot,
}, async (t) => {
  const folder = await Deno.makeTempDir();
  const mount = async (...args: string[]) =>
    (await new Deno.Command("mount", { args, stderr: "null" }).output()).success;
  if (!await mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", folder)) {
    await Deno.remove(folder);
    return console.log("skipped: no file system can be mounted here");
  }
  try {
    await Deno.writeTextFile(`${folder}/svc`, "program 0.7.0");
    await t.step("full", async () => {
      const large = new Uint8Array(128 * 1024);
      const { failure, program, names } = await attempt({
        folder,
        release: await signer.release("0.8.0", large),
        get: server(large),
      });
      assert.match(failure, /No space left on device.*: nothing was changed$/);
      assert.deepEqual([program, names], ["program 0.7.0", ["svc"]]);
    });
    await t.step("read-only", async () => {
      assert.ok(await mount("-o", "remount,ro", folder));
      const { failure, program, names } = await attempt({ folder });
      assert.match(failure, /Read-only file system.*: nothing was changed$/);
      assert.deepEqual([program, names], ["program 0.7.0", ["svc"]]);
    });
  } finally {
    await new Deno.Command("umount", { args: [folder] }).output();
    await Deno.remove(folder);
  }
});

Deno.test("checkSignature() takes any of several keys", { permissions: "none" }, async () => {
  const next = await Signer.make();
  const { files: [file] } = await next.release("0.8.0", FILE);
  await checkSignature("0.8.0", file, [signer.key, next.key]);
  await assert.rejects(checkSignature("0.8.0", file, [signer.key]), /none of this program's keys/);
});

Deno.test("Release bounds what a service may say", { permissions: "none" }, async () => {
  const release = await signer.release("0.8.0", FILE);
  assert.ok(Release.safeParse(release).success);
  const [file] = release.files;
  for (
    const change of [{ size: 1e12 }, { size: -1 }, { sha256: "x" }, { url: "x".repeat(3_000) }]
  ) {
    assert.ok(!Release.safeParse({ ...release, files: [{ ...file, ...change }] }).success);
  }
  const many = Array.from({ length: 100 }, () => file);
  assert.ok(!Release.safeParse({ ...release, files: many }).success);
});
