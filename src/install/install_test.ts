import assert from "node:assert/strict";
import {
  DenoHost,
  type Host,
  installSteps,
  layoutOf,
  readLayout,
  runSteps,
  type Step,
  uninstallSteps,
  UNITS,
} from "./mod.ts";
import { findOptionProblem, unitText } from "./layout.ts";

const disk = { permissions: { read: true, write: true } } as const;

type Owner = Parameters<Host["setOwner"]>[1];

/** A machine below a folder: its users and services are what this remembers of them. */
class Machine extends DenoHost {
  readonly users = new Map<string, Owner>();
  readonly owners = new Map<string, Owner>();
  readonly enabled = new Set<string>();
  readonly active = new Set<string>();
  readonly handedOver: string[] = [];
  /** Changes until one fails. */
  changesLeft = Infinity;
  startFails = false;
  /** Whether systemd knows other units than there are. */
  needsReload = false;

  constructor(readonly directory: string) {
    super(directory);
  }

  #change(): void {
    if (this.changesLeft-- <= 0) throw new Error("No space left on device");
  }

  override async look(path: string) {
    const found = await super.look(path);
    return found === null ? null : { ...found, ...this.owners.get(path) ?? { uid: 0, gid: 0 } };
  }

  override async setOwner(path: string, owner: Owner): Promise<void> {
    this.#change();
    await Promise.resolve(this.owners.set(path, owner));
  }

  override async write(...args: Parameters<Host["write"]>): Promise<void> {
    this.#change();
    await super.write(...args);
    if (args[0].endsWith(".service")) this.needsReload = true;
  }

  override async makeFolder(...args: Parameters<Host["makeFolder"]>): Promise<void> {
    this.#change();
    await super.makeFolder(...args);
  }

  override async makeLink(...args: Parameters<Host["makeLink"]>): Promise<void> {
    this.#change();
    await super.makeLink(...args);
  }

  override async setMode(...args: Parameters<Host["setMode"]>): Promise<void> {
    this.#change();
    await super.setMode(...args);
  }

  override async remove(path: string): Promise<void> {
    this.#change();
    await super.remove(path);
    this.owners.delete(path);
  }

  override async run(program: string, args: readonly string[], env = {}) {
    const done = (code: number, stdout = "") => ({ code, stdout, stderr: code === 0 ? "" : "no" });
    const unit = args.at(-1) ?? "";
    switch (`${program} ${args[0]}`) {
      case "id -u":
      case "id -g": {
        const ids = this.users.get(unit);
        return ids === undefined ? done(1) : done(0, String(ids.uid));
      }
      case "chown --recursive":
        this.#change();
        for (const name of await this.names(unit)) {
          this.owners.set(`${unit}/${name}`, { uid: 990, gid: 990 });
        }
        return done(0);
      case "getent group":
        return done(2);
      case "useradd --system":
        this.#change();
        this.users.set(unit, { uid: 990, gid: 990 });
        return done(0);
      case `userdel ${unit}`:
        this.#change();
        return done(this.users.delete(unit) ? 0 : 6);
      case "systemctl is-enabled":
        return done(this.enabled.has(unit) ? 0 : 1);
      case "systemctl is-active":
        return done(this.active.has(unit) ? 0 : 3);
      case "systemctl show":
        return done(0, this.needsReload ? "no\nyes\nno\n" : "no\nno\nno\n");
      case "systemctl daemon-reload":
        this.#change();
        this.needsReload = false;
        return done(0);
      case "systemctl enable":
        this.#change();
        this.enabled.add(unit);
        return done(0);
      case "systemctl start":
        this.#change();
        if (!this.startFails) this.active.add(unit);
        return done(this.startFails ? 1 : 0);
      case "systemctl kill":
      case "systemctl restart":
        this.#change();
        this.handedOver.push(`${args[0]} ${unit}`);
        return done(0);
      case "systemctl disable":
        this.#change();
        this.active.delete(unit);
        this.enabled.delete(unit);
        return done(0);
    }
    if (args[0] !== "version") assert.fail(`${program} ${args.join(" ")}`);
    this.#change();
    const folder = (env as Record<string, string>).SVC_CACHE_DIR;
    const place = `${this.directory}${folder}/${EXTRACTION}`;
    await Deno.mkdir(place, { recursive: true });
    await Deno.writeTextFile(`${place}/complete`, "");
    return done(0, "svc 1.2.3 (Deno …)\n");
  }
}

const EXTRACTION = `svc-${"0".repeat(64)}`;
const LAYOUT = layoutOf("svc", "/usr/local");

async function inMachine(work: (machine: Machine, file: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    for (const folder of ["run/systemd/system", "etc/systemd/system"]) {
      await Deno.mkdir(`${directory}/${folder}`, { recursive: true });
    }
    const file = `${directory}/downloaded`;
    await Deno.writeTextFile(file, "program 1");
    await work(new Machine(directory), file);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

function steps(machine: Machine, file: string): Step[] {
  return installSteps(machine, {
    layout: LAYOUT,
    file,
    extraction: EXTRACTION,
    start: ["svc.service"],
  });
}

async function install(machine: Machine, file: string, isDry = false): Promise<string[]> {
  const told: string[] = [];
  await runSteps(steps(machine, file), isDry, (line) => told.push(line));
  return told;
}

/** Every file of the machine with what it holds, its mode and owner; and its users and units. */
async function picture(machine: Machine): Promise<unknown> {
  const found: string[] = [];
  const pending = [""];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const info = await machine.look(path === "" ? "/" : path);
    if (info?.kind === "folder") {
      for (const name of await machine.names(path)) pending.push(`${path}/${name}`);
    }
    const text = info?.kind === "file"
      ? await machine.readText(path)
      : info?.kind === "link"
      ? await machine.readLink(path)
      : "";
    found.push(`${path} ${info?.kind} ${info?.mode.toString(8)} ${info?.uid} ${info?.gid} ${text}`);
  }
  const { users, enabled, active } = machine;
  return [found.sort(), [...users], [...enabled], [...active]];
}

Deno.test(
  "installSteps() make a service, and once they are done there is nothing to do",
  disk,
  async () => {
    await inMachine(async (machine, file) => {
      assert.ok((await install(machine, file)).length > 5);
      const [state, config] = [await machine.look("/var/lib/svc"), await machine.look("/etc/svc")];
      assert.deepEqual([state?.mode, state?.uid, config?.mode, config?.gid], [
        0o700,
        990,
        0o750,
        990,
      ]);
      assert.equal((await machine.look("/etc/svc/svc.toml"))?.mode, 0o640);
      assert.equal(await machine.readLink("/usr/local/bin/svc"), "../lib/svc/svc");
      assert.equal(await machine.readText("/usr/local/lib/svc/svc"), "program 1");
      for (const unit of UNITS) {
        const text = await machine.readText(`/etc/systemd/system/${unit}`) ?? "";
        assert.match(text, /^ExecStart=\/usr\/local\/lib\/svc\/svc \w+$/m, unit);
        assert.match(text, /^User=svc$/m, unit);
        assert.doesNotMatch(text, /@\w+@/, unit);
      }
      assert.deepEqual([...machine.active], ["svc.service"]);
      assert.deepEqual(await install(machine, file), []);
      assert.deepEqual(
        machine.handedOver,
        [],
        "a service that has just started is the new program",
      );
      assert.deepEqual(await readLayout(machine), LAYOUT);
    });
  },
);

Deno.test("installSteps() never write over a configuration", disk, async () => {
  await inMachine(async (machine, file) => {
    await Deno.mkdir(`${machine.directory}/etc/svc`);
    await Deno.writeTextFile(`${machine.directory}/etc/svc/svc.toml`, "# mine\n");
    await install(machine, file);
    assert.equal(await machine.readText("/etc/svc/svc.toml"), "# mine\n");
  });
});

Deno.test("installSteps() give the user what root has stored before", disk, async () => {
  await inMachine(async (machine, file) => {
    await Deno.mkdir(`${machine.directory}/var/lib/svc`, { recursive: true });
    await Deno.writeTextFile(`${machine.directory}/var/lib/svc/store.kv`, "");
    await install(machine, file);
    assert.equal((await machine.look("/var/lib/svc/store.kv"))?.uid, 990);
    assert.deepEqual(await install(machine, file), []);
  });
});

Deno.test("installSteps() hand a running service over to a newer program", disk, async () => {
  await inMachine(async (machine, file) => {
    await install(machine, file);
    await Deno.writeTextFile(file, "program 2");
    await install(machine, file);
    assert.equal(await machine.readText("/usr/local/lib/svc/svc"), "program 2");
    assert.deepEqual(machine.handedOver, ["kill svc.service"]);
  });
});

Deno.test(
  "a run of installSteps() that breaks off anywhere is repaired by the next",
  disk,
  async (t) => {
    let wanted: unknown;
    await inMachine(async (machine, file) => {
      await install(machine, file);
      wanted = await picture(machine);
    });
    let breaks = 0;
    for (let isBroken = true; isBroken; breaks++) {
      isBroken = false;
      await inMachine(async (machine, file) => {
        machine.changesLeft = breaks;
        await install(machine, file).catch((error) => {
          isBroken = true;
          assert.match(error.message, /^cannot .*: No space left on device: mend that and run/);
        });
        machine.changesLeft = Infinity;
        await install(machine, file);
        assert.deepEqual(await picture(machine), wanted, `after ${breaks} changes`);
      });
    }
    await t.step("and there were many places to break", () => assert.ok(breaks > 15, `${breaks}`));
  },
);

Deno.test("a hand-over that broke off is made by the next run", disk, async () => {
  await inMachine(async (machine, file) => {
    await install(machine, file);
    await Deno.writeTextFile(file, "program 2");
    machine.changesLeft = 3; // Extracted, marked, copied; and no more.
    await assert.rejects(install(machine, file), /hand svc\.service over/);
    machine.changesLeft = Infinity;
    await install(machine, file);
    assert.deepEqual(machine.handedOver, ["kill svc.service"]);
  });
});

Deno.test("a dry run of installSteps() changes nothing", disk, async () => {
  await inMachine(async (machine, file) => {
    const before = await picture(machine);
    machine.changesLeft = 0;
    const told = await install(machine, file, true);
    assert.ok(told.length > 5 && told.every((line) => line.startsWith("would ")), told.join("\n"));
    assert.deepEqual(await picture(machine), before);
  });
});

Deno.test("installSteps() name what is in their way and leave it", disk, async () => {
  await inMachine(async (machine, file) => {
    await Deno.mkdir(`${machine.directory}/usr/local/bin`, { recursive: true });
    await Deno.writeTextFile(`${machine.directory}/usr/local/bin/svc`, "another program");
    await assert.rejects(install(machine, file), /\/usr\/local\/bin\/svc is something else: move/);
    assert.equal(await machine.readText("/usr/local/bin/svc"), "another program");
  });
  await inMachine(async (machine, file) => {
    await Deno.mkdir(`${machine.directory}/var/lib`, { recursive: true });
    await Deno.writeTextFile(`${machine.directory}/var/lib/svc`, "a file");
    await assert.rejects(install(machine, file), /\/var\/lib\/svc is no folder/);
  });
  await inMachine(async (machine, file) => {
    machine.startFails = true;
    await assert.rejects(install(machine, file), /start svc\.service \(journalctl -u svc\.service/);
  });
  await inMachine(async (machine, file) => {
    await Deno.remove(`${machine.directory}/run/systemd/system`);
    await assert.rejects(install(machine, file), /systemd does not run here: --no-start/);
  });
});

Deno.test("uninstallSteps() keep what was stored, unless they purge", disk, async (t) => {
  for (const purge of [false, true]) {
    await t.step(purge ? "purge" : "keep", async () => {
      await inMachine(async (machine, file) => {
        await install(machine, file);
        await Deno.writeTextFile(`${machine.directory}/var/lib/svc/data`, "kept");
        const told: string[] = [];
        const uninstall = () =>
          runSteps(uninstallSteps(machine, LAYOUT, purge), false, (line) => told.push(line));
        // Broken off anywhere, it goes on.
        for (let changes = 0; changes < 40; changes++) {
          machine.changesLeft = 1;
          await uninstall().catch(() => {});
        }
        told.length = 0;
        machine.changesLeft = Infinity;
        await uninstall();
        assert.deepEqual(told, []);
        assert.equal(await machine.readText("/var/lib/svc/data"), purge ? null : "kept");
        assert.equal(await machine.look("/etc/svc") === null, purge);
        assert.equal(machine.users.size, purge ? 0 : 1);
        assert.equal(await machine.look("/usr/local/lib/svc"), null);
        assert.equal(await machine.look("/usr/local/bin/svc"), null);
        assert.deepEqual([...machine.active, ...machine.enabled], []);
        assert.deepEqual(await machine.names("/etc/systemd/system"), []);
      });
    });
  }
});

Deno.test(
  "findOptionProblem() takes no user or folder that needs quotes",
  { permissions: "none" },
  () => {
    assert.equal(findOptionProblem("svc", "/opt/svc-1.0"), null);
    const wrong = [
      ["root", "/usr/local"],
      ["Svc", "/usr/local"],
      ["a b", "/usr/local"],
      ["svc", "usr/local"],
      ["svc", "/"],
      ["svc", "/opt/a b"],
      ["svc", "/opt/../etc"],
      ["svc", "/opt/%i"],
    ] as const;
    for (const [user, prefix] of wrong) {
      assert.match(
        findOptionProblem(user, prefix) ?? "",
        /^--(user|prefix): /,
        `${user} ${prefix}`,
      );
    }
  },
);

Deno.test("unitText() lets each unit be reloaded", disk, async () => {
  for (const unit of UNITS) {
    const text = await unitText(unit, { user: "svc", program: "/usr/lib/svc/svc" });
    assert.match(text, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m, unit);
  }
});
