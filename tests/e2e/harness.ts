/**
 * Starts the service as an operator would and takes it down again: from the checkout with the flags
 * of `scripts/permissions.sh`, or, where `SVC_PROGRAM` names one, the built file. Every service has
 * a directory of its own, ports from the system, and its log lines collected.
 */
import assert from "node:assert/strict";
import { type HostPort, parseHostPort } from "../../src/addr/mod.ts";

export { freePort } from "../free_port.ts";

export const ROOT = new URL("../../", import.meta.url).pathname;

/** What a test of this folder may touch: it starts programs and talks to them. */
export const PERMISSIONS = {
  run: true,
  net: true,
  read: true,
  write: true,
  env: true,
  sys: ["uid", "hostname", "networkInterfaces"],
} as const satisfies Deno.PermissionOptions;

/** Longest wait for anything that must happen: a slow machine is no failure, a hang is one. */
export const WAIT_MS_MAX = 30_000;
const POLL_MS = 10;
/** Longest time from SIGTERM to the end; what it promises is held by the test of `StopTime`. */
const STOP_MS_MAX = 20_000;

/** A value as TOML has it. */
export type Toml = string | number | boolean | readonly Toml[] | { readonly [key: string]: Toml };

/** A configuration: its tables by name; `upstream` is an array of tables. */
export type ConfigText = Readonly<Record<string, Readonly<Record<string, Toml>> | readonly Toml[]>>;

export interface LogLine {
  readonly time: string;
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

export interface ServiceOptions {
  /** Tables beside and in place of the defaults: loopback, one isolate, no lists of the public. */
  readonly config?: ConfigText;
  /** An existing directory to run in; it is left behind. Otherwise a new one, which is removed. */
  readonly directory?: string;
  /** Command to run it by, `ip netns exec NAME` for one. */
  readonly prefix?: readonly string[];
  /** Flags of Deno to leave out, from the checkout only. */
  readonly without?: readonly string[];
  /** What is run in place of the program, from the checkout only. */
  readonly main?: string;
}

/** The built file to test, or `undefined` for the checkout. */
export const PROGRAM = Deno.env.get("SVC_PROGRAM");

export const HAS_IPV6 = (() => {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
})();

/** Says whether a program can be started; tests that need it are ignored otherwise. */
export function hasProgram(name: string): boolean {
  const has = (Deno.env.get("PATH") ?? "").split(":").some((directory) => {
    try {
      return Deno.statSync(`${directory}/${name}`).isFile;
    } catch {
      return false;
    }
  });
  if (!has) console.log(`skipped: there is no ${name} on this machine`);
  return has;
}

/** A file of the shared test material beside the checkout, or `null` where there is none. */
export function sharedFile(path: string): URL | null {
  const url = new URL(`../../../shared/${path}`, import.meta.url);
  try {
    Deno.statSync(url);
    return url;
  } catch {
    console.log(`skipped: there is no ../shared/${path} beside the checkout`);
    return null;
  }
}

/** Waits for a condition; `what` names it in the failure. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  waitMs = WAIT_MS_MAX,
): Promise<void> {
  const endsAtMs = performance.now() + waitMs;
  while (!(await condition())) {
    if (performance.now() > endsAtMs) assert.fail(`${what}: not within ${waitMs} ms`);
    await pause(POLL_MS);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Removes a directory with all that is in it; a process that is just ending may write once more. */
export async function removeDirectory(path: string): Promise<void> {
  await until(`${path}, removed`, async () => {
    try {
      await Deno.remove(path, { recursive: true });
    } catch (error) {
      if (error instanceof Error && /not empty/i.test(error.message)) return false;
      throw error;
    }
    return true;
  });
}

/** A directory of a test's own. Declared before whatever works in it, it is removed behind it. */
export class OwnDirectory implements AsyncDisposable {
  private constructor(readonly path: string) {}

  static async make(prefix = "svc-e2e-"): Promise<OwnDirectory> {
    return new OwnDirectory(await Deno.makeTempDir({ prefix }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeDirectory(this.path);
  }
}

/** Runs `work` in a directory of its own. */
export async function inOwnDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  await using directory = await OwnDirectory.make();
  await work(directory.path);
}

/** Runs steps side by side: they wait for time to pass more than they use the machine. */
export async function sideBySide(
  t: Deno.TestContext,
  steps: readonly (readonly [string, (t: Deno.TestContext) => Promise<void>])[],
): Promise<void> {
  // What one of them has open would look like a leak of another.
  const unwatched = { sanitizeOps: false, sanitizeResources: false, sanitizeExit: false };
  await Promise.all(steps.map(([name, fn]) => t.step({ name, fn, ...unwatched })));
}

/** Runs a program to its end. */
export async function runProgram(
  command: string,
  ...args: string[]
): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" })
    .output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

function tomlValue(value: Toml): string {
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  return `{ ${Object.entries(value).map(([k, v]) => `${k} = ${tomlValue(v)}`).join(", ")} }`;
}

/** The text of a configuration file. */
export function toml(config: ConfigText): string {
  return Object.entries(config).map(([key, table]) => {
    if (Array.isArray(table)) return `${key} = ${tomlValue(table)}\n`;
    const rows = Object.entries(table).map(([name, value]) => `${name} = ${tomlValue(value)}`);
    return `[${key}]\n${rows.join("\n")}\n`;
  }).sort((a, b) => Number(a.startsWith("[")) - Number(b.startsWith("["))).join("\n");
}

/** What a service runs with where a test says nothing else. */
export function testConfig(config: ConfigText = {}): ConfigText {
  const table = (name: string, defaults: Readonly<Record<string, Toml>>) => ({
    [name]: { ...defaults, ...config[name] },
  });
  return {
    ...config,
    ...table("server", {
      listen: HAS_IPV6 ? ["127.0.0.1:0", "[::1]:0"] : ["127.0.0.1:0"],
      workers: 1,
    }),
    ...table("filter", { default_lists: false, services: false, directory: false }),
    ...table("store", { path: "store" }),
    ...table("api", { listen: ["127.0.0.1:0"] }),
  };
}

/** The command line that runs `svc` with these arguments, without a terminal and without prompts. */
export function svcCommand(
  args: readonly string[],
  without: readonly string[] = [],
  main?: string,
): string[] {
  if (PROGRAM !== undefined) return [PROGRAM, ...args];
  const script = `. ${ROOT}scripts/permissions.sh; permissions_of ${
    args[0]
  }; echo $entry $permissions`;
  const { stdout } = new Deno.Command("sh", { args: ["-c", script] }).outputSync();
  const [entry, ...flags] = new TextDecoder().decode(stdout).trim().split(" ");
  const kept = flags.filter((flag) => !without.includes(flag));
  // The packages are there: who starts beside others has no word about a lock on them to print.
  const deno = ["run", "--no-prompt", "--frozen", "--node-modules-dir=manual"];
  const config = ["--config", `${ROOT}deno.json`];
  return [Deno.execPath(), ...deno, ...config, ...kept, `${ROOT}${main ?? entry}`, ...args];
}

function hostPort(text: string): HostPort {
  const address = parseHostPort(text);
  assert(address !== null, `${text} is no address`);
  return address;
}

/** A running service. */
export class Service {
  readonly logs: LogLine[] = [];
  /** Lines of standard error that are no log lines. */
  readonly rest: string[] = [];
  /** Addresses listened on, as configured and with their real ports. */
  listening: readonly HostPort[] = [];
  /** Those of the encrypted listeners. */
  encrypted: Readonly<Record<"dot" | "doh" | "doq", readonly HostPort[]>> = {
    dot: [],
    doh: [],
    doq: [],
  };
  /** Once it, and whoever took over from it, has ended; the first one's status. */
  readonly ended: Promise<Deno.CommandStatus>;
  hasEnded = false;
  /** Of who took over last. */
  #successor: number | null = null;
  #upgrades = 0;

  private constructor(
    readonly child: Deno.ChildProcess,
    readonly directory: string,
    private readonly isOwn: boolean,
  ) {
    const collected = this.#collect();
    this.ended = child.status.then(async (status) => {
      await collected;
      this.hasEnded = true;
      return status;
    });
  }

  /** Starts a service and does not wait for it. */
  static async launch(options: ServiceOptions = {}): Promise<Service> {
    const directory = options.directory ?? await Deno.makeTempDir({ prefix: "svc-e2e-" });
    await Deno.writeTextFile(`${directory}/svc.toml`, toml(testConfig(options.config)));
    const file = ["--config", `${directory}/svc.toml`];
    const run = svcCommand(["run", ...file], options.without, options.main);
    const [command, ...args] = [...options.prefix ?? [], ...run];
    const child = new Deno.Command(command, {
      args,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    return new Service(child, directory, options.directory === undefined);
  }

  /** Starts a service and waits until it answers. */
  static async start(options: ServiceOptions = {}): Promise<Service> {
    const service = await Service.launch(options);
    try {
      const line = await service.logged("answering");
      const addresses = (field: unknown) => (field as string[] | undefined ?? []).map(hostPort);
      service.listening = addresses(line.listen);
      const { dot, doh, doq } = line;
      service.encrypted = { dot: addresses(dot), doh: addresses(doh), doq: addresses(doq) };
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
    return service;
  }

  async #collect(): Promise<void> {
    let kept = "";
    for await (const text of this.child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (kept + text).split("\n");
      kept = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("{")) this.logs.push(JSON.parse(line));
        else if (line !== "") this.rest.push(line);
      }
    }
    if (kept !== "") this.rest.push(kept);
  }

  get pid(): number {
    return this.#successor ?? this.child.pid;
  }

  /** The first address listened on: IPv4 unless the test says otherwise. */
  get address(): HostPort {
    return this.listening[0];
  }

  /** The IPv6 address listened on. */
  get address6(): HostPort {
    const found = this.listening.find(({ ip }) => ip.length === 16);
    assert(found !== undefined, "listens on IPv6");
    return found;
  }

  count(message: string): number {
    return this.logs.filter((line) => line.message === message).length;
  }

  /** Waits for the `nth` log line with this message and these fields. */
  async logged(
    message: string,
    fields: Readonly<Record<string, unknown>> = {},
    nth = 1,
  ): Promise<LogLine> {
    const found = () =>
      this.logs.filter((line) =>
        line.message === message &&
        Object.entries(fields).every(([key, value]) => line[key] === value)
      )[nth - 1];
    try {
      await until(`log line ${nth} "${message}"`, () => this.hasEnded || found() !== undefined);
    } catch (error) {
      throw new Error(`the service logged\n${this.transcript()}`, { cause: error });
    }
    return found() ?? assert.fail(`ended without "${message}":\n${this.transcript()}`);
  }

  transcript(): string {
    return [...this.logs.map((line) => JSON.stringify(line)), ...this.rest].join("\n");
  }

  /** Says that nothing went wrong inside: no isolate crashed, nothing unexpected was printed. */
  assertCalm(): void {
    const errors = this.logs.filter(({ level }) => level === "error");
    assert.deepEqual([errors, this.rest], [[], []], this.transcript());
  }

  /** Resident memory in bytes, without files: pages of the program come and go. */
  async residentBytes(): Promise<number> {
    const { stdout } = await runProgram("cat", `/proc/${this.pid}/status`);
    const kib = [...stdout.matchAll(/Rss(?:Anon|Shmem):\s*(\d+) kB/g)].map(([, one]) =>
      Number(one)
    );
    return kib.reduce((sum, one) => sum + one) * 1_024;
  }

  /** Ends it by SIGTERM; how it ended, which must be soon. */
  async stop(): Promise<Deno.CommandStatus> {
    if (!this.hasEnded) this.kill("SIGTERM");
    await until("the end of the service", () => this.hasEnded, STOP_MS_MAX);
    return await this.ended;
  }

  kill(signal: Deno.Signal): void {
    try {
      if (this.#successor === null) this.child.kill(signal);
      else Deno.kill(this.#successor, signal);
    } catch (error) {
      const hasEnded = error instanceof TypeError || error instanceof Deno.errors.NotFound;
      if (!this.hasEnded && !hasEnded) throw error; // Ended in between.
    }
  }

  /** Has the next program take over; the former one has ended behind it. */
  async upgrade(): Promise<void> {
    const former = this.pid;
    this.kill("SIGUSR2");
    this.#upgrades++;
    const { pid } = await this.logged("handed over to the next program", {}, this.#upgrades);
    this.#successor = pid as number;
    assert.notEqual(this.pid, former);
    await this.logged("stopped", {}, this.#upgrades);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.hasEnded) this.kill("SIGKILL");
    await this.ended;
    if (this.isOwn) await removeDirectory(this.directory);
  }
}
