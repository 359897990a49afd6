/** Members of a cluster as processes on this machine, each with its certificate. */
import { Api } from "./api.ts";
import {
  type ConfigText,
  freePort,
  OwnDirectory,
  runProgram,
  Service,
  type ServiceOptions,
  svcCommand,
  until,
  WAIT_MS_MAX,
} from "./harness.ts";

export interface ReportedMember {
  readonly node: string;
  readonly membership: string;
  readonly state: string;
  readonly reachable: boolean;
  readonly matched?: number;
}

export interface Report {
  readonly role: string;
  readonly state: string;
  readonly cluster: string;
  readonly leader: string | null;
  readonly term: number;
  readonly config: { readonly epoch: number; readonly version: number };
  readonly writable: boolean;
  readonly members: readonly ReportedMember[];
  readonly problems: readonly string[];
  readonly peer: { readonly node: string; readonly role: string } | null;
}

export class Members implements AsyncDisposable {
  readonly services = new Map<string, Service>();
  readonly apis = new Map<string, Api>();
  readonly #directory: OwnDirectory;
  readonly #ports: ReadonlyMap<string, number>;
  readonly #bootstrap: string;

  private constructor(directory: OwnDirectory, names: readonly string[]) {
    this.#directory = directory;
    this.#ports = new Map(names.map((name) => [name, freePort()]));
    this.#bootstrap = names[0];
  }

  /** With an authority and certificates; nobody is started yet. */
  static async make(...names: string[]): Promise<Members> {
    const directory = await OwnDirectory.make();
    const run = async (...args: string[]) => {
      const [command, ...rest] = svcCommand(args);
      const { code, stderr } = await runProgram(command, ...rest);
      if (code !== 0) throw new Error(stderr);
    };
    await run("cluster", "init", "--dir", directory.path);
    for (const name of names) await run("cluster", "cert", name, "--dir", directory.path);
    return new Members(directory, names);
  }

  get names(): string[] {
    return [...this.#ports.keys()];
  }

  config(name: string): ConfigText {
    const path = this.#directory.path;
    const address = (node: string) => `127.0.0.1:${this.#ports.get(node)}`;
    return {
      cluster: {
        ...{ node: name, bootstrap: name === this.#bootstrap, listen: address(name) },
        ...{ ca: `${path}/ca.crt`, cert: `${path}/${name}.crt`, key: `${path}/${name}.key` },
        member: this.names.filter((node) => node !== name).map((node) => {
          return { node, address: address(node) };
        }),
      },
    };
  }

  directory(name: string): string {
    return `${this.#directory.path}/${name}`;
  }

  port(name: string): number {
    const port = this.#ports.get(name);
    if (port === undefined) throw new Error(`${name} is no member`);
    return port;
  }

  /** `options` as for any service. */
  async start(
    name: string,
    options: Pick<ServiceOptions, "config" | "main" | "prefix"> = {},
  ): Promise<void> {
    await Deno.mkdir(this.directory(name), { recursive: true });
    const service = await Service.start({
      config: this.config(name),
      ...options,
      directory: this.directory(name),
    });
    this.services.set(name, service);
    this.apis.set(name, await Api.of(service));
  }

  service(name: string): Service {
    const service = this.services.get(name);
    if (service === undefined) throw new Error(`${name} does not run`);
    return service;
  }

  api(name: string): Api {
    const api = this.apis.get(name);
    if (api === undefined) throw new Error(`${name} does not run`);
    return api;
  }

  async report(name: string): Promise<Report> {
    return await this.api(name).call("GET", "cluster");
  }

  /** Ends a member as a power cut would. */
  async kill(name: string): Promise<void> {
    const service = this.service(name);
    service.kill("SIGKILL");
    await service.ended;
    this.#forget(name);
  }

  async stop(name: string): Promise<void> {
    await this.service(name).stop();
    this.#forget(name);
  }

  #forget(name: string): void {
    this.services.delete(name);
    this.apis.delete(name);
  }

  /** Until every member runs, votes and has nothing to complain of; the leader's name. */
  async whole(waitMs = WAIT_MS_MAX): Promise<string> {
    let reports: Report[] = [];
    const isWhole = async () => {
      reports = await Promise.all(this.names.map((name) => this.report(name)));
      const [{ leader, config }] = reports;
      return leader !== null &&
        reports.every((report) =>
          report.leader === leader && report.problems.length === 0 && report.writable &&
          report.config.version === config.version &&
          report.members.every(({ membership }) => membership === "voter")
        );
    };
    try {
      await until("a whole cluster", isWhole, waitMs);
    } catch (error) {
      throw new Error(JSON.stringify(reports, null, 1), { cause: error });
    }
    return reports[0].leader ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const service of this.services.values()) await service[Symbol.asyncDispose]();
    await this.#directory[Symbol.asyncDispose]();
  }
}
