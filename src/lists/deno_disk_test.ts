import assert from "node:assert/strict";
import { denoDisk } from "./deno_disk.ts";
import { FakeClock } from "./fakes.ts";
import { ListKeeper } from "./keeper.ts";
import { findLocalList } from "./local_path.ts";
import type { HttpGet } from "../http/mod.ts";

const permissions = { read: true, write: true } as const;

/** Runs `use` with a directory of its own, whose path has no links. */
async function withDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  try {
    await use(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const answering = (text: string): HttpGet => () =>
  Promise.resolve({
    status: 200,
    headers: {},
    body: (async function* () {
      yield new TextEncoder().encode(text);
    })(),
  });

Deno.test("ListKeeper keeps lists in a directory for its user alone", {
  permissions,
}, async () => {
  await withDirectory(async (parent) => {
    const directory = `${parent}/store/lists`;
    const source = { id: "li_a", name: "Ads", url: "https://lists.example/" };
    const text = "||ads.example^\n".repeat(100_000); // More than one piece to read.
    const options = { clock: new FakeClock(), chance: () => 0, localListsDirectory: parent };
    const keeper = await ListKeeper.open(directory, { ...options, get: answering(text) });
    await keeper.refresh([source], { intervalMs: 1 }).done;
    const names = await denoDisk.names(directory);
    assert.deepEqual(names, ["index.json", "li_a.txt"]);
    const modeOf = async (path: string) => ((await Deno.stat(path)).mode ?? 0) & 0o777;
    assert.equal(await modeOf(directory), 0o700);
    for (const name of names) assert.equal(await modeOf(`${directory}/${name}`), 0o600);

    await Deno.writeTextFile(`${directory}/li_b.txt.part`, "||ads");
    const again = await ListKeeper.open(directory, { ...options, get: answering("") });
    assert.deepEqual(await denoDisk.names(directory), names);
    for await (const { bytes } of again.load([source])) {
      assert.equal(new TextDecoder().decode(bytes), text);
    }
    assert.equal(again.status("li_a").state, "ok");
  });
});

Deno.test("findLocalList() follows links and stays in its directory", {
  permissions,
}, async (t) => {
  await withDirectory(async (root) => {
    const local = `${root}/local`;
    await Deno.mkdir(`${local}/more`, { recursive: true });
    await Deno.mkdir(`${root}/local-not`);
    for (const path of ["local/own.txt", "local/more/own.txt", "secret.txt", "local-not/a.txt"]) {
      await Deno.writeTextFile(`${root}/${path}`, "ads.example\n");
    }
    const links = [
      ["local/own.txt", "local/inside.txt"],
      ["secret.txt", "local/outside.txt"],
      ["local-not", "local/dir"],
      ["local", "link"],
    ];
    for (const [target, path] of links) await Deno.symlink(`${root}/${target}`, `${root}/${path}`);
    const rows = [
      ["own.txt", "local/own.txt"],
      ["more/../own.txt", "local/own.txt"],
      ["more/own.txt", "local/more/own.txt"],
      ["inside.txt", "local/own.txt"],
      [`${local}/own.txt`, "local/own.txt"],
      ["outside.txt", "a link leads out"],
      ["dir/a.txt", "a link leads out"],
      ["more", "this is not a file"],
      ["../secret.txt", "lists are only read from"],
      ["../local-not/a.txt", "lists are only read from"],
      [`${root}/secret.txt`, "lists are only read from"],
      ["", "lists are only read from"],
    ];
    for (const [path, want] of rows) {
      await t.step(`${path.replace(root, "")}: ${want}`, async () => {
        // A directory that is a link itself is as good as where it leads.
        for (const directory of [local, `${root}/link`]) {
          const found = await findLocalList(denoDisk, directory, path);
          if (found.kind === "file") assert.equal(found.path, `${root}/${want}`);
          else assert.ok(found.message.includes(want), found.message);
        }
      });
    }
    await assert.rejects(findLocalList(denoDisk, local, "missing.txt"), Deno.errors.NotFound);
  });
});
