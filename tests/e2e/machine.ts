/** A machine of the test's own: this one, with a network and changes that nobody else sees. */
import { runProgram } from "./harness.ts";

/** Folders whose changes stay in the machine. */
const OWN = ["etc", "usr/local", "usr/lib", "lib/systemd", "usr/share", "usr/bin", "var", "run"];

const SETUP = `set -e
own=$(mktemp -d)
mount -t tmpfs -o mode=755 tmpfs "$own"
for folder in ${OWN.join(" ")}; do
  mkdir -p "$own/over/$folder" "$own/work/$folder"
  options="lowerdir=/$folder,upperdir=$own/over/$folder,workdir=$own/work/$folder"
  mount -t overlay -o "$options" overlay "/$folder"
done
# What others have left of svc here is no part of the machine.
rm -rf /var/lib/svc /etc/svc /run/systemd/system
ip link set lo up
echo ready
exec sleep infinity`;

export class OwnMachine implements AsyncDisposable {
  private constructor(private readonly holder: Deno.ChildProcess) {}

  /** `null`: this machine lets nobody make one. */
  static async make(): Promise<OwnMachine | null> {
    const holder = new Deno.Command("unshare", {
      args: ["--mount", "--net", "sh", "-c", SETUP],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const reader = holder.stdout.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    const machine = new OwnMachine(holder);
    if (new TextDecoder().decode(value).startsWith("ready")) return machine;
    await machine[Symbol.asyncDispose]();
    return null;
  }

  /** Before a command that is to run there. */
  get prefix(): string[] {
    return ["nsenter", "--target", String(this.holder.pid), "--mount", "--net", "--wd=/"];
  }

  async run(...command: string[]): ReturnType<typeof runProgram> {
    const [program, ...args] = [...this.prefix, ...command];
    return await runProgram(program, ...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.holder.kill("SIGKILL");
    } catch { /* It has ended. */ }
    await this.holder.status;
  }
}
