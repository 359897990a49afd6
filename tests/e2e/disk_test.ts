// Goal: on a disk that can't be written what is stored holds and changes are refused, and all is well
// once it can be. Method: the running service on a small file system of its own, which is filled and
// made read-only under it.
import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { ask } from "./clients.ts";
import { FakeUpstream } from "./fake_upstream.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, runProgram, Service, until } from "./harness.ts";

const DISK_BYTES = "16m";

/** Says whether this machine lets a test have file systems of its own. */
async function canMount(): Promise<boolean> {
  if (!hasProgram("unshare") || !hasProgram("nsenter")) return false;
  const { code } = await runProgram("unshare", "-rm", "mount", "-t", "tmpfs", "t", "/mnt");
  if (code !== 0) console.log("skipped: no file system may be mounted here");
  return code === 0;
}

/** A small file system at `store` below a directory, which only who enters it sees. */
class Disk implements AsyncDisposable {
  private constructor(readonly directory: string, private readonly holder: Deno.ChildProcess) {}

  static async mount(directory: string): Promise<Disk> {
    await Deno.mkdir(`${directory}/store`, { mode: 0o700 });
    const mount = `mount -t tmpfs -o size=${DISK_BYTES},mode=700 t "${directory}/store"`;
    const holder = new Deno.Command("unshare", {
      args: ["-rm", "sh", "-c", `${mount} && echo mounted && exec sleep 1000000`],
      stdout: "piped",
    }).spawn();
    for await (const _ of holder.stdout) break; // It has said so.
    return new Disk(directory, holder);
  }

  /** The command that runs another one where the disk is. */
  get prefix(): string[] {
    return ["nsenter", "-t", `${this.holder.pid}`, "-U", "-m", "--preserve-credentials"];
  }

  async sh(script: string): Promise<string> {
    return await this.#run("sh", "-c", `cd "${this.directory}/store" && ${script}`);
  }

  async remount(way: "ro" | "rw"): Promise<void> {
    await this.#run("mount", "-o", `remount,${way}`, `${this.directory}/store`);
  }

  async #run(...command: string[]): Promise<string> {
    const [enter, ...args] = [...this.prefix, ...command];
    const { code, stdout, stderr } = await runProgram(enter, ...args);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  /** Leaves no room at all. */
  async fill(): Promise<void> {
    await this.sh("! dd if=/dev/zero of=filling bs=4k 2>/dev/null");
  }

  async clear(): Promise<void> {
    await this.sh("rm filling");
  }

  /** What stands on it, but for the filling, with its bytes. */
  async contents(): Promise<string> {
    return await this.sh("find . -type f ! -name filling -exec sha256sum {} + | sort -k 2");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.holder.kill("SIGKILL");
    await this.holder.status;
  }
}

/** A service on that disk. */
class OnDisk implements AsyncDisposable {
  private constructor(
    readonly service: Service,
    readonly api: Api,
    readonly upstream: FakeUpstream,
  ) {}

  static async start(disk: Disk, onFailure = "open"): Promise<OnDisk> {
    const upstream = await FakeUpstream.start();
    const service = await Service.start({
      directory: disk.directory,
      prefix: disk.prefix,
      config: {
        upstream: [{ address: upstream.text }],
        filter: { on_failure: onFailure },
      },
    });
    return new OnDisk(service, await Api.of(service), upstream);
  }

  /** Adds a rule that answers a name; what the API says. */
  // deno-lint-ignore no-explicit-any -- answers of every shape
  async add(name: string): Promise<any> {
    const rule = `||${name}.example^$dnsrewrite=192.0.2.99`;
    return await this.api.call("POST", "rules", { rule, comment: "", enabled: true });
  }

  /** Says whether the rule of a name answers it. */
  async holds(name: string): Promise<boolean> {
    const { answers } = await ask(this.service.address, `${name}.example`, Qtype.A);
    return answers[0]?.data === "192.0.2.99";
  }

  async problems(): Promise<string> {
    return ((await this.api.call("GET", "status")).problems as string[]).join("\n");
  }

  /** The store can't be written; what it has holds. */
  async assertReadOnly(...names: string[]): Promise<void> {
    for (const name of names) assert.ok(await this.holds(name), `${name} holds`);
    const refused = await this.add("refused");
    assert.deepEqual([refused.status, refused.error?.code], [503, "unavailable"]);
    assert.match(refused.error.message, /^store: /);
    assert.match(await this.problems(), /^store: .*changes are refused until it can$/m);
    assert.equal((await this.api.call("GET", "rules")).items.length, names.length);
    assert.ok(!await this.holds("refused"));
  }

  /** It is written again by itself. */
  async recovers(name: string): Promise<void> {
    await until("no problem of the store", async () => !/^store: /m.test(await this.problems()));
    const { id, error } = await this.add(name);
    assert.ok(id !== undefined, JSON.stringify(error));
    assert.ok(await this.holds(name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop();
    await this.service[Symbol.asyncDispose]();
    await this.upstream.close();
  }
}

const CAN_MOUNT = await canMount();

function disk(name: string, fn: (disk: Disk) => Promise<void>): void {
  Deno.test({
    name,
    permissions: PERMISSIONS,
    ignore: !CAN_MOUNT,
    fn: async () => {
      await using own = await OwnDirectory.make();
      await using disk = await Disk.mount(own.path);
      await fn(disk);
    },
  });
}

for (const end of ["stopped", "killed"] as const) {
  disk(`a read-only store is read, ${end} before, whatever on_failure says`, async (disk) => {
    const ended = (running: OnDisk) => end === "killed" && running.service.kill("SIGKILL");
    const names = ["kept"];
    {
      await using first = await OnDisk.start(disk);
      assert.ok((await first.add("kept")).id !== undefined);
      ended(first);
    }
    for (const onFailure of ["open", "closed"]) {
      await disk.remount("ro");
      const before = await disk.contents();
      await using service = await OnDisk.start(disk, onFailure);
      await service.assertReadOnly(...names);
      assert.equal(await disk.contents(), before);
      await disk.remount("rw");
      await service.recovers(`later-${onFailure}`);
      names.push(`later-${onFailure}`);
      ended(service);
    }
    await using again = await OnDisk.start(disk);
    for (const name of names) assert.ok(await again.holds(name), name);
    assert.ok(!await again.holds("refused"));
  });
}

disk("a store on a full disk is read, and written once there is room", async (disk) => {
  {
    await using first = await OnDisk.start(disk);
    assert.ok((await first.add("kept")).id !== undefined);
  }
  await disk.fill();
  {
    await using service = await OnDisk.start(disk);
    await service.assertReadOnly("kept");
    await disk.clear();
    await service.recovers("later");
  }
  await using again = await OnDisk.start(disk);
  for (const name of ["kept", "later"]) assert.ok(await again.holds(name), name);
});

disk("a disk that fills up stops changes and no answer, and harms nothing", async (disk) => {
  const ROUNDS = 3;
  {
    await using service = await OnDisk.start(disk);
    const names = ["kept"];
    assert.ok((await service.add("kept")).id !== undefined);
    // It would find no room, and is tried again in a minute.
    await until("today's copy", async () => /svc-/.test(await disk.sh("ls backups || true")));
    for (let round = 0; round < ROUNDS; round++) {
      await disk.fill();
      // Some changes may still find room in what the store has already.
      await until("a change is refused", async () => {
        const name = `full${round}x${names.length}`;
        const { id, status } = await service.add(name);
        if (id !== undefined) names.push(name);
        return status === 503;
      });
      assert.match(await service.problems(), /^store: .*changes are refused/m);
      for (const name of names) assert.ok(await service.holds(name), name);
      const { answers } = await ask(service.service.address, `r${round}.example`, Qtype.A);
      assert.equal(answers.length, 1, "queries are answered");
      await disk.clear();
      await service.recovers(`after${round}`);
      names.push(`after${round}`);
    }
    assert.equal((await service.api.call("GET", "rules")).items.length, names.length);
    await until("the log is written", async () => !/query log/.test(await service.problems()));
    const { entries } = await service.api.call("GET", "querylog?name=r&limit=100");
    assert.ok(entries.length >= 1);
    assert.equal(await service.problems(), "");
  }
  assert.doesNotMatch(await disk.contents(), /bad-/, "no file was set aside");
  await using again = await OnDisk.start(disk);
  for (const name of ["kept", "after0", "after1", "after2"]) assert.ok(await again.holds(name));
  assert.equal(await again.problems(), "");
});

for (
  const [how, damage] of [
    ["cut short", "truncate -s 5000 store.kv"],
    [
      "flipped",
      "head -c 64 /dev/zero | tr '\\000' '\\377' | dd of=store.kv bs=1 seek=4096 conv=notrunc",
    ],
  ] as const
) {
  disk(`a store that is ${how} is named, and left as it is`, async (disk) => {
    {
      await using first = await OnDisk.start(disk);
      assert.ok((await first.add("kept")).id !== undefined);
    }
    await disk.sh(damage);
    const sum = () => disk.sh("sha256sum store.kv");
    const before = await sum();
    {
      await using service = await OnDisk.start(disk);
      assert.match(await service.problems(), /^store: .*changes are kept in memory only$/m);
      assert.ok((await service.add("temporary")).id !== undefined);
      assert.equal((await ask(service.service.address, "a.example", Qtype.A)).answers.length, 1);
    }
    assert.equal(await sum(), before);
    await using service = await Service.launch({
      directory: disk.directory,
      prefix: disk.prefix,
      config: { filter: { on_failure: "closed" } },
    });
    assert.equal((await service.ended).code, 1);
    assert.match(service.rest.join("\n"), /store/);
    assert.equal(await sum(), before);
  });
}

disk("two services on one store: the second one says so and ends", async (disk) => {
  await using first = await OnDisk.start(disk);
  assert.ok((await first.add("kept")).id !== undefined);
  await using second = await Service.launch({ directory: disk.directory, prefix: disk.prefix });
  assert.equal((await second.ended).code, 1);
  assert.match(second.rest.join("\n"), /store\.path: .* is in use: stop svc/);
  assert.ok(await first.holds("kept"));
});
