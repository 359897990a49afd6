/**
 * A Debian of the test's own with systemd as its first process: a root file system whose changes
 * nobody else sees, in namespaces, with a cgroup of its own. Its network is whatever the command in
 * `prefix` enters.
 */
import assert from "node:assert/strict";
import { runProgram, until } from "./harness.ts";

/** Where the machine has the folder that it is given. */
export const GIVEN = "/mnt";
/** What the machine's first process is called by, to be found from outside. */
const READY = /^first process (\d+)$/m;

/**
 * As its first process: everything that systemd finds at a start of a real machine. Kernel settings
 * are everybody's and so read-only; what this machine has enabled is no part of that one.
 */
const INSIDE = `set -e
own=/mnt
mount -t tmpfs -o mode=755 tmpfs "$own"
mkdir "$own/over" "$own/work" "$own/root"
root=$own/root
mount -t overlay -o "lowerdir=$1,upperdir=$own/over,workdir=$own/work" overlay "$root"
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
chmod 1777 "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
mount --bind "$2" "$root${GIVEN}"
cd "$root"
rm -rf etc/svc var/lib/svc usr/sbin/policy-rc.d etc/systemd/system/*.wants etc/systemd/system/*.requires
for unit in getty.target dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount \\
  systemd-udevd.service systemd-udev-trigger.service systemd-resolved.service; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done
ln -sf /lib/systemd/system/multi-user.target etc/systemd/system/default.target
hostname "$3"
ip link set lo up
read -r pid rest </proc/self/stat
echo "first process $pid"
mkdir -p old
pivot_root . old
umount -l old
exec env -i container=svc-test /lib/systemd/systemd --log-target=journal --show-status=0 \\
  </dev/null >/dev/null 2>&1`;

/** Around it: a cgroup that holds all of it, and is gone with it. */
const AROUND = `set -e
groups=/mnt
mount -t cgroup2 cgroup2 "$groups"
mkdir "$groups/$3"
unshare --mount --pid --uts --ipc --cgroup --fork --kill-child=SIGKILL \\
  sh -c "echo 0 >'$groups/$3/cgroup.procs'; exec unshare --cgroup sh -c \\"\\$0\\" sh \\"\\$@\\"" \\
  "$INSIDE" "$@" &
inside=$!
read -r end || true
kill -KILL "$inside" 2>/dev/null || true
wait "$inside" 2>/dev/null || true
while [ -e "$groups/$3" ]; do
  find "$groups/$3" -depth -type d -exec rmdir {} \\; 2>/dev/null || sleep 0.1
done`;

let count = 0;

export interface MachineOptions {
  /** Its root file system, which stays as it is; left out, this machine's. */
  readonly root?: string;
  /** A folder of this machine that it has at `GIVEN`. */
  readonly given: string;
  /** Before the command that starts it. */
  readonly prefix?: readonly string[];
}

export class SystemdMachine implements AsyncDisposable {
  private constructor(private readonly holder: Deno.ChildProcess, private readonly pid: number) {}

  /** @throws {AssertionError} With what this machine refuses. */
  static async start({ root = "/", given, prefix = [] }: MachineOptions): Promise<SystemdMachine> {
    const name = `svc-test-${Deno.pid}-${count++}`;
    const [program, ...args] = [
      ...prefix,
      ...["unshare", "--mount", "sh", "-c", AROUND, "sh", root, given, name],
    ];
    const holder = new Deno.Command(program, {
      args,
      env: { INSIDE },
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    let told = "";
    for await (const piece of holder.stdout.pipeThrough(new TextDecoderStream())) {
      told += piece;
      if (READY.test(told)) break;
    }
    const machine = new SystemdMachine(holder, Number(READY.exec(told)?.[1] ?? 0));
    try {
      assert.ok(machine.pid > 0, `no machine can be made here: ${told}`);
      await until("systemd has started", async () => {
        const { stdout } = await machine.run("systemctl", "is-system-running");
        return /^(running|degraded)$/m.test(stdout);
      });
    } catch (error) {
      await machine[Symbol.asyncDispose]();
      throw error;
    }
    return machine;
  }

  /** Before a command that is to run there. */
  get prefix(): string[] {
    const namespaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"];
    return ["nsenter", "--target", String(this.pid), ...namespaces, "--wdns=/"];
  }

  async run(...command: string[]): ReturnType<typeof runProgram> {
    const [program, ...args] = [...this.prefix, ...command];
    return await runProgram(program, ...args);
  }

  /** What a command prints that has to succeed. */
  async must(...command: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...command);
    assert.equal(code, 0, `${command.join(" ")}: ${stdout}${stderr}`);
    return stdout;
  }

  /** A property of a unit, as systemd has it. */
  async property(unit: string, name: string): Promise<string> {
    return (await this.must("systemctl", "show", `--property=${name}`, "--value", unit)).trim();
  }

  /** What a unit has logged, for a failure. */
  async journal(unit: string): Promise<string> {
    return (await this.run("journalctl", "--no-pager", "--output=cat", "--unit", unit)).stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.holder.stdin.close();
    await this.holder.status;
  }
}
