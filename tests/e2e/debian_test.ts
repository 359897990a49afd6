// Goal: two boxes as an operator has them, from the package to its purge: installed, asked by the
// network, upgraded while they are asked, with one address between them. Method: the Debian package
// on two machines with systemd of the test's own, and clients on the segment between them.
//
// The machines have this one's files, and are upgraded twice under a load of seconds.
// `SVC_DEBIAN=whole` makes a Debian with nothing but what the package asks for, by debootstrap, and
// upgrades it ten times under a million queries: some minutes.
import assert from "node:assert/strict";
import { parseHostPort } from "../../src/addr/mod.ts";
import { Build } from "./build.ts";
import { dnsperfFrom, type Load } from "./clients.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, runProgram, sideBySide, until } from "./harness.ts";
import { HAS_NAMESPACES } from "./network.ts";
import { ADDRESSES, Asking, CLIENT, FLOATING, Segment } from "./segment.ts";
import { GIVEN, SystemdMachine } from "./systemd_machine.ts";

const IS_WHOLE = Deno.env.get("SVC_DEBIAN") === "whole";
const UPGRADES = IS_WHOLE ? 10 : 2;
const UDP_PER_SECOND = IS_WHOLE ? 12_500 : 2_000;
const QUERIES = IS_WHOLE ? 1_000_000 : 16_000;
const TCP_PER_SECOND = 200;
const DNS_PORT = 53;
const NEEDED = ["systemctl", "dpkg-deb", "dnsperf", "dig", ...IS_WHOLE ? ["debootstrap"] : []];
const PACKAGES = "systemd,systemd-sysv,dbus,adduser,libgcc-s1,init-system-helpers";
const NET_BIND_SERVICE = "0000000000000400";
const NET_ADMIN = "0000000000001000";
const NOTHING = "0000000000000000";
/** Answered without anybody else, so that what is lost is lost here. */
const NAME = "blocked.example";

async function succeed(command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, ...args);
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** What the kernel says of the threads of a unit's process, each distinct line once. */
async function rightsOf(machine: SystemdMachine, unit: string): Promise<string[]> {
  const pid = await machine.property(unit, "MainPID");
  const lines = "^(Uid|CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):";
  const script = `cat /proc/${pid}/task/*/status | grep -E '${lines}' | sort -u | tr '\\t' ' '`;
  return (await machine.must("sh", "-c", script)).trim().split("\n");
}

function configOf(i: number): string {
  return `[server]
listen = ["0.0.0.0:${DNS_PORT}"]
[server.rate_limit]
queries_per_second = 0
[filter]
default_lists = false
services = false
directory = false
rules = ["||${NAME}^"]
[vrrp]
interface = "seg0"
address = "${FLOATING}"
peer = "${ADDRESSES[1 - i]}"
router_id = 51
priority = ${i === 0 ? 150 : 100}
interval_ms = 250
`;
}

Deno.test({
  name: "two machines with systemd, from the package to its purge",
  permissions: PERMISSIONS,
  ignore: !HAS_NAMESPACES || Deno.env.get("SVC_PROGRAM") !== undefined || !NEEDED.every(hasProgram),
}, async (t) => {
  await using stack = new AsyncDisposableStack();
  const { path: directory } = stack.use(await OwnDirectory.make("svc-debian-"));
  const { deb } = stack.use(await Build.of());
  assert(deb !== null);
  await Deno.copyFile(deb, `${directory}/svc.deb`);
  const root = IS_WHOLE ? `${directory}/debian` : "/";
  if (IS_WHOLE) {
    const include = `--include=${PACKAGES}`;
    await succeed("debootstrap", "--variant=minbase", include, "bookworm", root);
  }
  const segment = stack.use(await Segment.make());
  const machines: SystemdMachine[] = [];
  for (const i of [0, 1]) {
    const options = { root, given: directory, prefix: segment.on(i) };
    machines.push(stack.use(await SystemdMachine.start(options)));
  }
  const [first, second] = machines;
  const each = async (work: (machine: SystemdMachine, i: number) => Promise<void>) =>
    void await Promise.all(machines.map(work));
  const look = async (address: string): Promise<string> => {
    const [program, ...args] = [...segment.on(CLIENT), "dig", "+short", "+tries=1", "+time=20"];
    return (await succeed(program, ...args, `@${address}`, NAME)).trim();
  };
  const signal = (
    one: string,
  ) => ["systemctl", "kill", "--kill-who=main", `-s${one}`, "svc.service"];
  const install = ["dpkg", "--force-confold", "-i", `${GIVEN}/svc.deb`];

  await t.step("the package is installed, and the service runs", () =>
    each(async (machine) => {
      await machine.must(...install);
      assert.equal(await machine.property("svc.service", "ActiveState"), "active");
      assert.equal(
        await machine.must("stat", "--format", "%a %U %G", "/var/lib/svc", "/etc/svc/svc.toml"),
        "700 svc svc\n640 root svc\n",
      );
      assert.equal(await machine.property("svc-vrrp.service", "ActiveState"), "inactive");
    }));

  await t.step(
    "it answers on port 53 as a user without rights, shut in",
    () =>
      each(async (machine, i) => {
        await Deno.writeTextFile(`${directory}/${i}.toml`, configOf(i));
        await machine.must("cp", `${GIVEN}/${i}.toml`, "/etc/svc/svc.toml");
        // Lists and rules of the file are taken at the first start alone.
        await machine.must("systemctl", "stop", "svc.service");
        await machine.must("sh", "-c", "rm -r /var/lib/svc/*");
        await machine.must("systemctl", "start", "svc.service");
        assert.equal(await look(ADDRESSES[i]), "0.0.0.0");
        const uid = (await machine.must("id", "-u", "svc")).trim();
        assert.notEqual(uid, "0");
        assert.deepEqual(await rightsOf(machine, "svc.service"), [
          `CapBnd: ${NET_BIND_SERVICE}`,
          `CapEff: ${NOTHING}`,
          `CapPrm: ${NOTHING}`,
          "NoNewPrivs: 1",
          "Seccomp: 2",
          `Uid: ${uid} ${uid} ${uid} ${uid}`,
        ]);
        const status = await machine.journal("svc.service");
        assert.match(status, /"message":"shut in","user":"svc","capabilities":\[\]/);
      }),
  );

  await t.step("one address for both is held by the one of higher priority", async () => {
    await each(async (machine) => {
      await machine.must("systemctl", "enable", "--quiet", "--now", "svc-vrrp.service");
    });
    await segment.held(0);
    assert.equal(await look(FLOATING), "0.0.0.0");
    const rights = await rightsOf(first, "svc-vrrp.service");
    assert.ok(rights.includes(`CapEff: ${NET_ADMIN}`), rights.join("\n"));
  });

  await sideBySide(t, [
    ["nothing is lost while it is upgraded", async () => {
      const seconds = QUERIES / UDP_PER_SECOND;
      const floatingPid = await first.property("svc-vrrp.service", "MainPID");
      const load = (perSecond: number, ...args: string[]): Promise<Load> => {
        const lines = Array.from({ length: seconds * perSecond }, () => `${NAME} A`);
        const at = parseHostPort(`${ADDRESSES[0]}:${DNS_PORT}`)!;
        return dnsperfFrom(segment.on(CLIENT), at, directory, lines, perSecond, ...args);
      };
      const loads = Promise.all([
        load(UDP_PER_SECOND),
        load(TCP_PER_SECOND, "-m", "tcp", "-c", "10", "-t", "3"),
      ]);
      for (let i = 0; i < UPGRADES; i++) {
        const former = await first.property("svc.service", "MainPID");
        // As apt does it, and as an operator does.
        if (i === 0) await first.must(...install);
        else await first.must(...signal("SIGUSR2"));
        await until("another program", async () => {
          return await first.property("svc.service", "MainPID") !== former;
        });
        await until("the end of the former one", async () => {
          return (await first.run("test", "-e", `/proc/${former}`)).code === 1;
        });
        assert.equal(await first.property("svc.service", "ActiveState"), "active");
      }
      const [udp, tcp] = await loads;
      console.log(`udp: ${udp.lost} of ${udp.sent} lost over ${UPGRADES} upgrades`);
      console.log(`tcp: ${tcp.lost} of ${tcp.sent} lost over ${UPGRADES} upgrades`);
      assert.deepEqual([udp.lost, udp.completed], [0, udp.sent], udp.text);
      await segment.held(0);
      assert.equal(await first.property("svc-vrrp.service", "MainPID"), floatingPid);
      assert.match(await first.journal("svc-vrrp.service"), /"message":"going on as holder"/);
      assert.equal(await first.property("svc.service", "NRestarts"), "0");
      assert.match(await first.must("tail", "-n", "1", "/etc/svc/svc.toml"), /interval_ms/);
      const journal = await first.journal("svc.service");
      assert.doesNotMatch(journal, /"level":"error"/);
    }],
    ["a program that hangs is started anew", async () => {
      const folder = "/etc/systemd/system/svc.service.d";
      const text = "[Service]\\nWatchdogSec=3\\n";
      await second.must("sh", "-c", `mkdir ${folder}; printf '${text}' >${folder}/test.conf`);
      await second.must("systemctl", "daemon-reload");
      await second.must("systemctl", "restart", "svc.service");

      await second.must(...signal("SIGSTOP"));
      await until("another start", async () => {
        return await second.property("svc.service", "NRestarts") === "1" &&
          await second.property("svc.service", "ActiveState") === "active";
      });
      assert.equal(await look(ADDRESSES[1]), "0.0.0.0");
      await second.must("rm", "-r", folder);
    }],
  ]);

  await t.step("the address moves to the other one, and back", async () => {
    await using asking = new Asking(segment, DNS_PORT);
    for (const unit of ["svc-vrrp.service", "svc.service"]) {
      await first.must("systemctl", "stop", unit);
      await segment.settled(1);
      assert.equal(await look(FLOATING), "0.0.0.0");
      assert.equal(
        await first.property(unit, "Result"),
        "success",
        "it ended when it was asked to",
      );
      await first.must("systemctl", "start", unit);
      await segment.settled(0);
    }
    const { asked, lost, gaps } = await asking.stop();
    console.log(
      `address: ${lost} of ${asked} lost, the longest gap ${
        Math.round(Math.max(0, ...gaps.map(({ lengthMs }) => lengthMs)))
      } ms`,
    );
    assert.ok(lost < asked / 2);
  });

  await t.step("a purge leaves nothing behind", () =>
    each(async (machine) => {
      await machine.must("dpkg", "--remove", "svc");
      assert.equal((await machine.run("test", "-e", "/usr/lib/svc")).code, 1);
      assert.equal((await machine.run("test", "-e", "/etc/svc/svc.toml")).code, 0);
      await machine.must("dpkg", "--purge", "svc");
      for (const path of ["/etc/svc", "/var/lib/svc", "/usr/lib/svc", "/usr/bin/svc"]) {
        assert.equal((await machine.run("test", "-e", path)).code, 1, path);
      }
      assert.equal((await machine.run("id", "svc")).code, 1);
      for (const unit of ["svc.service", "svc-vrrp.service", "svc-witness.service"]) {
        assert.equal(await machine.property(unit, "LoadState"), "not-found", unit);
      }
      const left = "grep -ls '[/]svc/svc' /proc/[0-9]*/cmdline || true";
      assert.equal(await machine.must("sh", "-c", left), "");
    }));
  assert.deepEqual(await segment.holders(), []);
});
