// Goal: nothing goes into a build that nobody has looked at. Method: a registry that hands out another
// binary, and the lock file held against what its packages say of themselves.
import assert from "node:assert/strict";
import { readProgram } from "../../scripts/program.ts";
import { findForeignLicences, formatSbom, readNotices, readPackages } from "../../scripts/sbom.ts";
import { inOwnDirectory, PERMISSIONS, ROOT } from "./harness.ts";

/** Runs a shell command with the functions of `scripts/fetch_deno.sh`. */
async function fetching(command: string, path: string, ...args: string[]) {
  const { code, stderr } = await new Deno.Command("sh", {
    args: ["-c", `. "$0" && ${command}`, `${ROOT}scripts/fetch_deno.sh`, ...args],
    env: { PATH: `${path}:${Deno.env.get("PATH")}` },
    stdin: "null",
  }).output();
  return { code, stderr: new TextDecoder().decode(stderr) };
}

Deno.test("fetch_deno refuses a Deno that is not the pinned one", {
  permissions: PERMISSIONS,
}, async () => {
  await inOwnDirectory(async (directory) => {
    // A registry's client whose package holds something else.
    const npm = `#!/bin/sh
      mkdir package && echo '#!/bin/sh' >package/deno && tar -czf deno-other.tgz package`;
    await Deno.mkdir(`${directory}/bin`);
    await Deno.writeTextFile(`${directory}/bin/npm`, npm, { mode: 0o755 });
    const target = `${directory}/deno`;
    const fetched = await fetching('fetch_deno "$1" "$2"', `${directory}/bin`, ...[
      "linux-arm64-glibc",
      target,
    ]);
    assert.equal(fetched.code, 1);
    assert.match(
      fetched.stderr,
      /@deno\/linux-arm64-glibc@[\d.]+ is not the pinned one: its SHA-256/,
    );
    const left = [...Deno.readDirSync(directory)].map(({ name }) => name);
    assert.deepEqual(left, ["bin"], "nothing of it is left");
  });
});

Deno.test("fetch_deno knows no platform without a pin, and this Deno is the pinned one", {
  permissions: PERMISSIONS,
}, async () => {
  const unknown = await fetching('deno_pin "$1"', "/none", "linux-riscv64-glibc");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /no SHA-256 of Deno .* is pinned for linux-riscv64-glibc/);
  const own = 'npm_platform "$(uname -s)" "$(uname -m)" && has_pinned_sum "$platform" "$1"';
  assert.equal((await fetching(own, "/none", Deno.execPath())).code, 0);
});

Deno.test("every npm package has a licence that a program under MIT can carry", {
  permissions: PERMISSIONS,
}, async (t) => {
  const program = await readProgram(ROOT.slice(0, -1));
  const packages = await readPackages(program);
  assert.deepEqual(findForeignLicences(packages), []);
  const lock = JSON.parse(await Deno.readTextFile(`${ROOT}deno.lock`));
  assert.equal(packages.length, Object.keys(lock.npm).length);
  await t.step("and others are found", () => {
    const [one] = packages;
    const licences = [
      "GPL-3.0-only",
      "AGPL-3.0",
      "UNLICENSED",
      "(GPL-2.0 OR MIT)",
      "MIT AND GPL-2.0",
    ];
    const found = findForeignLicences(licences.map((licence) => ({ ...one, licence })));
    assert.deepEqual(
      found.map((text) => text.replace(/^.*: /, "")),
      licences.filter((licence) => licence !== "(GPL-2.0 OR MIT)"),
    );
  });
  await t.step("and stands in the list of components", () => {
    const deno = { platform: "linux-x64-glibc", version: "1.0.0", sha256: "0".repeat(64) };
    const document = JSON.parse(formatSbom("1.2.3", packages, [deno]));
    assert.equal(document.bomFormat, "CycloneDX");
    const refs = new Set(document.components.map((one: { "bom-ref": string }) => one["bom-ref"]));
    assert.equal(refs.size, packages.length + 1, "each once");
    for (const { purl, hashes, licenses } of document.components) {
      assert.match(purl, /^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/);
      assert.match(hashes[0].content, /^([0-9a-f]{64}|[0-9a-f]{128})$/);
      assert.equal(licenses.length, 1);
    }
    for (const { dependsOn } of document.dependencies) {
      for (const ref of dependsOn) assert.ok(refs.has(ref), ref);
    }
    const shipped = packages.filter(({ isShipped }) => isShipped).map(({ name }) => name);
    assert.ok(shipped.includes("@node-rs/argon2-linux-arm64-gnu"));
    assert.ok(!shipped.includes("@node-rs/argon2-win32-x64-msvc"));
  });
  await t.step("and is said to be carried where the dashboard was made of it", async () => {
    const ui = [
      "@preact/signals",
      "@preact/signals-core",
      "lucide-static",
      "preact",
      "uplot",
      "uqr",
    ];
    const carried = packages.filter(({ isShipped }) => isShipped).map(({ name }) => name);
    for (const name of ui) assert.ok(carried.includes(name), name);
    for (const name of ["axe-core", "esbuild", "playwright-core"]) {
      assert.ok(!carried.includes(name), name);
    }
    const notices = await readNotices(program);
    const noticed = [...notices.keys()].map((name) => name.replace(/@[^@]*$/, ""));
    for (const name of [...ui, "hono", "zod"]) assert.ok(noticed.includes(name), name);
    assert.ok(!noticed.includes("@node-rs/argon2"), "an add-on has a folder of its own");
    for (const [name, text] of notices) assert.match(text, /copyright/i, name);
    const needed = Object.keys(program.imports);
    assert.ok(!needed.includes("preact"), "and the service itself does without");
  });
});
