/**
 * A machine of the test's own: this one, with processes, a network and changes that nobody else sees.
 */
import { runProgram } from "./harness.ts";

/** Folders whose changes stay in the machine. */
const OWN = ["etc", "usr/local", "usr/lib", "lib/systemd", "usr/share", "usr/bin", "var", "run"];

const NAMESPACES = ["--mount", "--net", "--pid"];
const READY = /^first process (\d+)$/m;

const SETUP = `set -e
# Read where this process is still one of the others.
read -r first rest </proc/self/stat
own=$(mktemp -d)
mount -t tmpfs -o mode=755 tmpfs "$own"
for folder in ${OWN.join(" ")}; do
  mkdir -p "$own/over/$folder" "$own/work/$folder"
  options="lowerdir=/$folder,upperdir=$own/over/$folder,workdir=$own/work/$folder"
  mount -t overlay -o "$options" overlay "/$folder"
done
mount -t proc proc /proc
# What others have left of svc here is no part of the machine.
rm -rf /var/lib/svc /etc/svc /run/systemd/system
ip link set lo up
echo "first process $first"
# As the first process the shell reaps whoever is left behind.
while :; do sleep infinity; done`;

export class OwnMachine implements AsyncDisposable {
  /** The machine's first process, as it is seen from outside. */
  #first = 0;

  private constructor(private readonly holder: Deno.ChildProcess) {}

  /** `null`: this machine lets nobody make one. */
  static async make(): Promise<OwnMachine | null> {
    const holder = new Deno.Command("unshare", {
      args: [...NAMESPACES, "--fork", "--kill-child=SIGKILL", "sh", "-c", SETUP],
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const reader = holder.stdout.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    const machine = new OwnMachine(holder);
    machine.#first = Number(READY.exec(new TextDecoder().decode(value))?.[1] ?? 0);
    if (machine.#first > 0) return machine;
    await machine[Symbol.asyncDispose]();
    return null;
  }

  /** Before a command that is to run there. */
  get prefix(): string[] {
    return ["nsenter", "--target", String(this.#first), ...NAMESPACES, "--wd=/"];
  }

  async run(...command: string[]): ReturnType<typeof runProgram> {
    const [program, ...args] = [...this.prefix, ...command];
    return await runProgram(program, ...args);
  }

  /** Ends a program that was started behind `prefix`, whose own process only waits for it. */
  async end(started: Deno.ChildProcess, signal: Deno.Signal): Promise<void> {
    const { pid } = started;
    const { stdout } = await runProgram("cat", `/proc/${pid}/task/${pid}/children`);
    const inside = Number(stdout);
    if (inside > 0) Deno.kill(inside, signal);
    await started.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.holder.kill("SIGKILL");
    } catch { /* It has ended. */ }
    await this.holder.status;
  }
}
