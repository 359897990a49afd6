// Goal: nothing goes into a build that nobody has looked at. Method: a registry that hands out another
// binary, and the lock file held against what its packages say of themselves.
import assert from "node:assert/strict";
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
