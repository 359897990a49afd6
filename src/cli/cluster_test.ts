import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { Exit, main } from "./mod.ts";
import { writeNewFiles } from "./new_file.ts";

const files: Pick<Deno.TestDefinition, "permissions"> = {
  permissions: { read: true, write: true },
};

/** Runs `svc cluster` in a folder of its own; what it prints is kept. */
class Folder implements AsyncDisposable {
  readonly said: string[] = [];
  private constructor(readonly path: string) {}

  static async make(): Promise<Folder> {
    return new Folder(await Deno.makeTempDir({ prefix: "svc-cluster-" }));
  }

  async svc(...args: string[]): Promise<number> {
    return await this.in(this.path, ...args);
  }

  async in(path: string, ...args: string[]): Promise<number> {
    const { log, error } = console;
    this.said.length = 0;
    console.log = console.error = (line: string) => void this.said.push(line);
    try {
      return await main(["cluster", ...args, "--dir", path]);
    } finally {
      console.log = log;
      console.error = error;
    }
  }

  names(): string[] {
    return [...Deno.readDirSync(this.path)].map(({ name }) => name).sort();
  }

  read(name: string): string {
    return Deno.readTextFileSync(`${this.path}/${name}`);
  }

  mode(name: string): number {
    return (Deno.statSync(`${this.path}/${name}`).mode ?? 0) & 0o777;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

Deno.test("svc cluster init and cert make what members know each other by", files, async (t) => {
  await using folder = await Folder.make();
  const { path } = folder;
  await t.step("init makes an authority", async () => {
    assert.equal(await folder.svc("init"), Exit.Done);
    assert.deepEqual(folder.names(), ["ca.crt", "ca.key"]);
    assert.deepEqual([folder.mode("ca.crt"), folder.mode("ca.key")], [0o644, 0o600]);
    assert.deepEqual(folder.said, [`${path}/ca.key`, `${path}/ca.crt`]);
    assert.ok(new X509Certificate(folder.read("ca.crt")).ca);
  });
  await t.step("cert makes a member's pair, of ten years", async () => {
    assert.equal(await folder.svc("cert", "node1"), Exit.Done);
    assert.equal(folder.mode("node1.key"), 0o600);
    const certificate = new X509Certificate(folder.read("node1.crt"));
    assert.equal(certificate.subjectAltName, "DNS:node1");
    assert.ok(certificate.verify(new X509Certificate(folder.read("ca.crt")).publicKey));
    const { validFromDate, validToDate } = certificate;
    assert.equal(validToDate.getUTCFullYear() - validFromDate.getUTCFullYear(), 10);
    assert.ok(validFromDate.getTime() < Date.now());
  });
  await t.step("what is there stays as it is", async () => {
    const before = folder.names().map((name) => folder.read(name));
    assert.equal(await folder.svc("init"), Exit.Failed);
    assert.equal(
      folder.said[0],
      `svc cluster: ${path}/ca.key: is there already and stays: move it away first`,
    );
    assert.equal(await folder.svc("cert", "node1"), Exit.Failed);
    await Deno.remove(`${path}/node1.key`);
    assert.equal(await folder.svc("cert", "node1"), Exit.Failed);
    await Deno.symlink("nowhere", `${path}/node1.key`);
    assert.equal(await folder.svc("cert", "node1"), Exit.Failed);
    await Deno.remove(`${path}/node1.key`);
    await Deno.writeTextFile(`${path}/node1.key`, before[3], { mode: 0o600 });
    assert.deepEqual(folder.names().map((name) => folder.read(name)), before);
  });
  await t.step("--force makes a member's anew, whole", async () => {
    const former = folder.read("node1.key");
    await Deno.chmod(`${path}/node1.key`, 0o644);
    assert.equal(await folder.svc("cert", "node1", "--force"), Exit.Done);
    assert.notEqual(folder.read("node1.key"), former);
    assert.equal(folder.mode("node1.key"), 0o600);
    assert.deepEqual(folder.names(), ["ca.crt", "ca.key", "node1.crt", "node1.key"]);
  });
});

Deno.test("svc cluster says what is wrong, and makes nothing", files, async (t) => {
  await using folder = await Folder.make();
  const { path } = folder;
  const rows: readonly (readonly [readonly string[], number, RegExp])[] = [
    [[], Exit.Usage, /neither init nor cert NODE/],
    [["start"], Exit.Usage, /start is neither init nor cert NODE/],
    [["init", "node1"], Exit.Usage, /init takes no name/],
    [["init", "--force"], Exit.Usage, /would lock out every member/],
    [["cert"], Exit.Usage, /cert takes one NODE/],
    [["cert", "node1", "node2"], Exit.Usage, /cert takes one NODE/],
    [["cert", "node1", "--fast"], Exit.Usage, /--fast/],
    [["cert", "ca"], Exit.Usage, /the authority's own files/],
    ...["Node1", "1node", "node-", "n.example", "../x", "", "n".repeat(64)].map((name) =>
      [["cert", name], Exit.Usage, /is no node name: 1 to 63 lower-case letters/] as const
    ),
    [["cert", "node1"], Exit.Failed, /ca.crt: is not there: make it with svc cluster init/],
  ];
  for (const [args, code, want] of rows) {
    await t.step(args.join(" "), async () => {
      assert.equal(await folder.svc(...args), code);
      assert.match(folder.said.join("\n"), want);
      assert.equal(folder.said.length, 1);
      assert.deepEqual(folder.names(), []);
    });
  }
  await t.step("a folder that can't be made", async () => {
    await Deno.writeTextFile(`${path}/file`, "");
    assert.equal(await folder.in(`${path}/file/dir`, "init"), Exit.Failed);
    assert.equal(folder.said.length, 1, folder.said.join("\n"));
    assert.ok(folder.said[0].startsWith(`svc cluster: ${path}/file/dir: can't be written: `));
    await Deno.remove(`${path}/file`);
  });
  await t.step("a key that is not the authority's", async () => {
    await using other = await Folder.make();
    await folder.svc("init");
    await other.svc("init");
    await Deno.copyFile(`${other.path}/ca.key`, `${path}/ca.key`);
    assert.equal(await folder.svc("cert", "node1"), Exit.Failed);
    assert.match(folder.said[0], /ca.key: is not the key of ca.crt/);
    for (const [file, text] of [["ca.key", "nothing"], ["ca.crt", "nothing"]]) {
      await Deno.writeTextFile(`${path}/${file}`, text);
      assert.equal(await folder.svc("cert", "node1"), Exit.Failed);
      assert.match(folder.said[0], new RegExp(`${file}: holds no PEM`));
      assert.equal(folder.said.length, 1);
    }
  });
});

Deno.test("writeNewFiles() leaves nothing where it can't write all", files, async () => {
  await using folder = await Folder.make();
  await folder.svc("init");
  // The certificate's place is taken by a folder: the key, which is written first, goes as well.
  await Deno.mkdir(`${folder.path}/node1.crt`);
  assert.equal(await folder.svc("cert", "node1"), Exit.Failed);
  assert.deepEqual(folder.names(), ["ca.crt", "ca.key", "node1.crt"]);
  assert.equal(await folder.svc("cert", "node1", "--force"), Exit.Failed);
  assert.ok(folder.names().every((name) => !name.endsWith(".new")));
});

Deno.test("writeNewFiles() replaces files alone, behind links as well", files, async () => {
  await using folder = await Folder.make();
  const { path } = folder;
  await Deno.writeTextFile(`${path}/file`, "old");
  await Deno.symlink(`${path}/file`, `${path}/link`);
  await Deno.symlink("/dev/null", `${path}/device`);
  await Deno.symlink(`${path}/nothing`, `${path}/dangling`);
  const replace = (name: string) =>
    writeNewFiles([{ path: `${path}/${name}`, text: name, mode: 0o600 }], true);
  await replace("link");
  assert.equal(folder.read("file"), "link");
  for (const name of ["device", "dangling", "."]) {
    await assert.rejects(replace(name), /: is there and no file: name another$/);
  }
  assert.ok(["link", "device", "dangling"].every((name) => isLink(`${path}/${name}`)));
  await replace("fresh");
  assert.equal(folder.read("fresh"), "fresh");
  assert.deepEqual(folder.names(), ["dangling", "device", "file", "fresh", "link"]);
});

function isLink(path: string): boolean {
  return Deno.lstatSync(path).isSymlink;
}
