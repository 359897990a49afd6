/**
 * An Internet of the test's own: a namespace of the kernel with an address for each name server, and
 * an NSD at each, on the port that name servers are asked at.
 */
import assert from "node:assert/strict";
import { hasProgram, runProgram, until } from "./harness.ts";
import { HAS_NAMESPACES, Network } from "./network.ts";

/** Whether there can be one here; tests that need it are ignored otherwise. */
export const HAS_INTERNET: boolean = HAS_NAMESPACES &&
  ["nsd", "dig", "dnssec-keygen", "dnssec-signzone"].map(hasProgram).every(Boolean);

/** Zones of one server, by name: lines of a zone file, which gets an SOA where it has none. */
export type HostZones = Readonly<Record<string, readonly string[]>>;

function zoneText(name: string, lines: readonly string[]): string {
  const head = [`$ORIGIN ${name}`, "$TTL 300"];
  const hasSoa = lines.some((line) => /\sSOA\s/.test(line));
  if (!hasSoa) head.push("@ SOA ns h 1 3600 600 86400 60");
  return [...head, ...lines, ""].join("\n");
}

export class FakeInternet implements AsyncDisposable {
  readonly #servers: Deno.ChildProcess[] = [];
  /** Texts of zones that are signed. */
  readonly #signed = new Map<string, string>();

  private constructor(readonly directory: string, private readonly network: Network) {}

  /**
   * Starts a server at each address of `hosts`; `more` are addresses where nobody listens. Zones of
   * `signed` are signed, those below others before these, and those of `stripped` are served unsigned.
   */
  static async start(
    directory: string,
    hosts: Readonly<Record<string, HostZones>>,
    { more = [], signed = [], stripped = [] }: {
      readonly more?: readonly string[];
      readonly signed?: readonly string[];
      readonly stripped?: readonly string[];
    } = {},
  ): Promise<FakeInternet> {
    const addresses = [...Object.keys(hosts), ...more].map((address) =>
      address.includes(":") ? `${address}/128` : `${address}/32`
    );
    const internet = new FakeInternet(directory, await Network.make(addresses, []));
    try {
      for (const name of signed) {
        const zones = Object.values(hosts).find((zones) => Object.hasOwn(zones, name));
        await internet.#sign(name, zones?.[name] ?? []);
      }
      for (const name of stripped) internet.#signed.delete(name);
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

  /** The file with the DS of a zone that is signed. */
  anchorsOf(name: string): string {
    return `${this.directory}/dsset-${name}`;
  }

  async #sign(name: string, lines: readonly string[]): Promise<void> {
    const at = this.directory;
    const file = `${at}/${name}zone`;
    await Deno.writeTextFile(file, zoneText(name, lines));
    const keygen = ["-q", "-a", "ECDSAP256SHA256", "-K", at];
    for (const kind of [["-f", "KSK"], []]) {
      const { code, stderr } = await runProgram("dnssec-keygen", ...keygen, ...kind, name);
      assert.equal(code, 0, stderr);
    }
    const how = [
      "-S",
      "-g",
      "-Q",
      "-K",
      at,
      "-d",
      at,
      "-o",
      name,
      "-s",
      "now-3600",
      "-e",
      "+864000",
    ];
    const { code, stderr } = await runProgram(
      "dnssec-signzone",
      ...how,
      "-f",
      `${file}.signed`,
      file,
    );
    assert.equal(code, 0, stderr);
    this.#signed.set(name, await Deno.readTextFile(`${file}.signed`));
  }

  async #serve(id: string, address: string, zones: HostZones): Promise<void> {
    const own = `${this.directory}/nsd-${id}`;
    await Deno.mkdir(own);
    const names = Object.keys(zones);
    for (const [i, name] of names.entries()) {
      const text = this.#signed.get(name) ?? zoneText(name, zones[name]);
      await Deno.writeTextFile(`${own}/${i}.zone`, text);
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
