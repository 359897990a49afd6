/**
 * A real resolver that speaks DNS over TLS and over HTTPS: Debian's unbound, on loopback ports of its
 * own, with a zone of its own and no way to the Internet.
 */
import { connect } from "node:net";
import { type Authority, type Issued, writePair } from "./certificates.ts";
import { freePort, pause, until } from "./harness.ts";

/** Tries to find free ports. */
const PORT_TRIES_MAX = 8;

export interface UnboundOptions {
  /** What every name below `test` has as its address. */
  readonly address?: string;
  /** Milliseconds after which it closes an idle connection. */
  readonly idleMs?: number;
  /** Answers over UDP and TCP as well, on a port of its own. */
  readonly plain?: boolean;
}

export class Unbound {
  #child: Deno.ChildProcess | null = null;

  private constructor(
    readonly directory: string,
    readonly tlsPort: number,
    readonly httpsPort: number,
    readonly plainPort: number,
  ) {}

  /** Starts one and waits until it takes connections. */
  static async start(issued: Issued, options: UnboundOptions = {}): Promise<Unbound> {
    const directory = await Deno.makeTempDir({ prefix: "svc-unbound-" });
    const { certFile, keyFile } = await writePair(directory, "server", issued);
    const { address = "192.0.2.53", idleMs = 30_000, plain = false } = options;
    for (let i = 1;; i++) {
      const unbound = new Unbound(directory, freePort(), freePort(), freePort());
      const interfaces = [unbound.tlsPort, unbound.httpsPort];
      if (plain) interfaces.push(unbound.plainPort);
      const lines = [
        ...interfaces.map((port) => `interface: 127.0.0.1@${port}`),
        `tls-port: ${unbound.tlsPort}`,
        `https-port: ${unbound.httpsPort}`,
        `tls-service-pem: "${certFile}"`,
        `tls-service-key: "${keyFile}"`,
        `directory: "${directory}"`,
        'chroot: ""',
        'username: ""',
        'pidfile: ""',
        "use-syslog: no",
        "num-threads: 1",
        'module-config: "iterator"',
        `tcp-idle-timeout: ${idleMs}`,
        "incoming-num-tcp: 100",
        // A probe asks for the root's name servers.
        'local-zone: "." static',
        'local-data: ". 300 IN NS ns.test."',
        'local-zone: "test." redirect',
        `local-data: "test. 300 IN A ${address}"`,
      ];
      const text = `server:\n${lines.map((line) => `  ${line}\n`).join("")}` +
        "remote-control:\n  control-enable: no\n";
      await Deno.writeTextFile(`${directory}/unbound.conf`, text);
      try {
        await unbound.open();
        return unbound;
      } catch (error) {
        await unbound.kill();
        if (i === PORT_TRIES_MAX) throw error;
      }
    }
  }

  /** Starts it, again after `kill`. */
  async open(): Promise<void> {
    const child = this.#child = new Deno.Command("unbound", {
      args: ["-d", "-c", `${this.directory}/unbound.conf`],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    let hasEnded = false;
    void child.status.then(() => hasEnded = true);
    await until("unbound, listening", async () => {
      if (hasEnded) throw new Error(`unbound ended: see ${this.directory}/unbound.conf`);
      return await takesConnections(this.tlsPort);
    });
  }

  /** Ends it at once, as a machine that loses power. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    try {
      child.kill("SIGKILL");
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // It had ended.
    }
    await child.status;
    await pause(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.directory, { recursive: true });
  }
}

function takesConnections(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("connect", () => resolve(true));
  socket.on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

/** A certificate for `dns.test` and for loopback. */
export function serverCertificate(authority: Authority): Promise<Issued> {
  return authority.issue({ names: ["dns.test"], ips: ["127.0.0.1"], usage: "server" });
}
