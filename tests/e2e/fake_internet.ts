/**
 * An Internet of the test's own: a namespace of the kernel with an address for each name server, and
 * an NSD at each, on the port that name servers are asked at.
 */
import { runProgram, until } from "./harness.ts";
import { hasProgram } from "./harness.ts";
import { HAS_NAMESPACES, Network } from "./network.ts";

/** Whether there can be one here; tests that need it are ignored otherwise. */
export const HAS_INTERNET: boolean = HAS_NAMESPACES && hasProgram("nsd") && hasProgram("dig");

/** Zones of one server, by name: lines of a zone file, without SOA. */
export type HostZones = Readonly<Record<string, readonly string[]>>;

export class FakeInternet implements AsyncDisposable {
  readonly #servers: Deno.ChildProcess[] = [];

  private constructor(readonly directory: string, private readonly network: Network) {}

  /** Starts a server at each address of `hosts`; `more` are addresses where nobody listens. */
  static async start(
    directory: string,
    hosts: Readonly<Record<string, HostZones>>,
    more: readonly string[] = [],
  ): Promise<FakeInternet> {
    const addresses = [...Object.keys(hosts), ...more].map((address) =>
      address.includes(":") ? `${address}/128` : `${address}/32`
    );
    const internet = new FakeInternet(directory, await Network.make(addresses, []));
    try {
      await Promise.all(
        Object.entries(hosts).map(([address, zones], i) => internet.#serve(`${i}`, address, zones)),
      );
    } catch (error) {
      await internet[Symbol.asyncDispose]();
      throw error;
    }
    return internet;
  }

  /** Before a command that is to run in it. */
  get prefix(): string[] {
    return this.network.atServer;
  }

  async #serve(id: string, address: string, zones: HostZones): Promise<void> {
    const own = `${this.directory}/nsd-${id}`;
    await Deno.mkdir(own);
    const names = Object.keys(zones);
    for (const [i, name] of names.entries()) {
      const text = [`$ORIGIN ${name}`, "$TTL 300", "@ SOA ns h 1 3600 600 86400 60"];
      await Deno.writeTextFile(`${own}/${i}.zone`, [...text, ...zones[name], ""].join("\n"));
    }
    const conf = [
      "server:",
      `  ip-address: ${address}@53`,
      `  zonesdir: "${own}"`,
      '  database: ""\n  username: ""\n  chroot: ""\n  server-count: 1\n  ip-transparent: yes',
      `  pidfile: "${own}/pid"\n  xfrdfile: "${own}/xfrd"\n  zonelistfile: "${own}/list"`,
      `  xfrdir: "${own}"\n  logfile: "${own}/log"`,
      "remote-control:\n  control-enable: no",
      ...names.map((name, i) => `zone:\n  name: "${name}"\n  zonefile: "${i}.zone"`),
    ];
    await Deno.writeTextFile(`${own}/conf`, `${conf.join("\n")}\n`);
    const [command, ...args] = [...this.prefix, "nsd", "-d", "-c", `${own}/conf`];
    const child = new Deno.Command(command, {
      args,
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    this.#servers.push(child);
    await until(`nsd at ${address}, answering`, async () => {
      const text = await this.dig(`@${address}`, names[0], "SOA", "+norec", "+time=1");
      return /status: /.test(text);
    });
  }

  /** What dig says within it. */
  async dig(...args: string[]): Promise<string> {
    const [command, ...before] = this.prefix;
    const { stdout } = await runProgram(command, ...before, "dig", "+tries=1", ...args);
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#servers) {
      try {
        child.kill("SIGTERM");
      } catch {
        // It has ended.
      }
    }
    await Promise.all(this.#servers.map(({ status }) => status));
    await this.network[Symbol.asyncDispose]();
  }
}
