/** A service on every transport, and clients of others' making that ask it over any: kdig and curl. */
import assert from "node:assert/strict";
import { formatIp, type HostPort } from "../../src/addr/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { lookUp } from "./clients.ts";
import { type ConfigText, hasProgram, OwnDirectory, runProgram, Service } from "./harness.ts";
import type { Network } from "./network.ts";

export const TRANSPORTS = ["udp", "tcp", "dot", "doh", "doq"] as const;
export type Over = typeof TRANSPORTS[number];
/** Those that may carry a client ID. */
export const ENCRYPTED = ["dot", "doh", "doq"] as const;

export const HAS_EVERY_CLIENT: boolean = hasProgram("kdig") && hasProgram("curl");
/** The domain that client IDs stand before. */
export const DOMAIN = "dns.svc.test";

const ARGS: Readonly<Record<Over, string>> = {
  udp: "+notcp +ignore",
  tcp: "+tcp",
  dot: "+tls",
  doh: "+https",
  doq: "+quic",
};

/** What a client of kdig is told. */
export interface Said {
  /** `NOERROR`, …, with ` cut` behind it where TC is set. */
  readonly code: string;
  /** Data of the address records. */
  readonly addresses: readonly string[];
  /** Of the whole message. */
  readonly lengthBytes: number;
}

export interface AskOptions {
  /** The address that asks; loopback if left out. */
  readonly from?: string;
  /** A client ID: in the path over HTTPS, before the domain over TLS and QUIC. */
  readonly id?: string;
  /** The name in the TLS handshake, whatever the ID. */
  readonly serverName?: string;
  /** Further arguments of kdig. */
  readonly args?: string;
}

export interface EveryTransportOptions {
  readonly config?: ConfigText;
  /** Addresses to listen on, of IPv4 and IPv6; loopback if left out. */
  readonly ips?: readonly string[];
  /** Where service and clients are; left out: on this machine. */
  readonly network?: Network;
  /** The directory of a service that has ended: its store and certificate, which it removes. */
  readonly directory?: string;
}

/** Reads what kdig prints, one message behind the other. */
function readKdig(text: string): Said[] {
  return text.split(";; ->>HEADER<<-").slice(1).map((part) => {
    const code = /status: ([A-Z]+)/.exec(part)?.[1] ?? "nothing";
    const isCut = /Flags:[^;]*\btc\b/i.test(part);
    const addresses = [...part.matchAll(/^\S+\s+\d+\s+IN\s+(?:A|AAAA)\s+(\S+)$/gm)];
    return {
      code: isCut ? `${code} cut` : code,
      addresses: addresses.map(([, address]) => address),
      lengthBytes: Number(/Received (\d+) B/.exec(part)?.[1]),
    };
  });
}

/** Puts a certificate and its authority into a directory. */
async function writeCertificate(directory: string): Promise<void> {
  const authority = await makeAuthority();
  const issued = await authority.issue({ names: [DOMAIN, `*.${DOMAIN}`], ips: ["127.0.0.1"] });
  await writePair(directory, "server", issued);
  await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
}

export class EveryTransport implements AsyncDisposable {
  #files = 0;

  private constructor(
    readonly service: Service,
    readonly api: Api,
    readonly directory: string,
    private readonly network: Network | undefined,
    private readonly stack: AsyncDisposableStack,
  ) {}

  static async start(options: EveryTransportOptions = {}): Promise<EveryTransport> {
    const { config = {}, ips = ["127.0.0.1"], network } = options;
    await using stack = new AsyncDisposableStack();
    const directory = options.directory ?? stack.use(await OwnDirectory.make()).path;
    if (options.directory === undefined) await writeCertificate(directory);
    const listen = ips.map((ip) => ip.includes(":") ? `[${ip}]:0` : `${ip}:0`);
    const service = stack.use(
      await Service.start({
        directory,
        prefix: network?.atServer ?? [],
        config: {
          ...config,
          server: { listen, ...config.server },
          "server.tls": {
            ...{ cert: "server.crt", key: "server.key", server_name: DOMAIN },
            ...{ dot: listen, doh: listen, doq: listen },
            ...config["server.tls"],
          },
        },
      }),
    );
    const api = await Api.of(service, network?.atServer);
    return new EveryTransport(service, api, directory, network, stack.move());
  }

  /** Where a client at an address reaches the service. */
  place(over: Over, from = "127.0.0.1"): HostPort {
    const { listening, encrypted } = this.service;
    const addresses = over === "udp" || over === "tcp" ? listening : encrypted[over];
    const length = from.includes(":") ? 16 : 4;
    const prefix = from.split(/[.:]/)[0];
    return addresses.find(({ ip }) => ip.length === length && formatIp(ip).startsWith(prefix)) ??
      assert.fail(`${over} is not listened on for ${from}`);
  }

  /** Asks for the addresses of some names, one after the other; over TCP on one connection. */
  async askAll(over: Over, names: readonly string[], options: AskOptions = {}): Promise<Said[]> {
    const { from, id, args = "" } = options;
    const serverName = options.serverName ??
      (id !== undefined && over !== "doh" ? `${id}.${DOMAIN}` : undefined);
    const words = [
      ...(serverName === undefined ? [] : [`+tls-sni=${serverName}`]),
      ...(from === undefined ? [] : ["-b", from]),
      // Over QUIC kdig 3.2 gives a connection up after two queries.
      ...(names.length > 1 && over !== "udp" && over !== "doq" ? ["+keepopen"] : []),
      ...args.split(" ").filter((word) => word !== ""),
      // The last one: arguments about TLS turn kdig to TCP.
      over === "doh" && id !== undefined ? `+https=/dns-query/${id}` : ARGS[over],
      ...names,
    ];
    const prefix = this.network === undefined || from?.startsWith("127.")
      ? this.network?.atServer
      : this.network.atClient;
    return readKdig(await lookUp("kdig", this.place(over, from), words.join(" "), prefix));
  }

  /** Asks once; `nothing` where no answer comes. */
  async ask(over: Over, name: string, options: AskOptions = {}): Promise<Said> {
    const said = await this.askAll(over, [name], options);
    return said.at(0) ?? { code: "nothing", addresses: [], lengthBytes: 0 };
  }

  /** The code of an answer, and its addresses behind it. */
  async brief(over: Over, name: string, options: AskOptions = {}): Promise<string> {
    const { code, addresses } = await this.ask(over, name, options);
    return [code, ...addresses].join(" ");
  }

  /** How often each code was said. */
  async codes(
    over: Over,
    names: readonly string[],
    options: AskOptions = {},
  ): Promise<Record<string, number>> {
    const counted: Record<string, number> = {};
    for (const { code } of await this.askAll(over, names, options)) {
      counted[code] = (counted[code] ?? 0) + 1;
    }
    return counted;
  }

  /** Runs curl against the listener of DNS over HTTPS, with a body if there is one. */
  async curl(
    path: string,
    args: readonly string[] = [],
    body?: Uint8Array,
  ): Promise<{ status: number; version: string; type: string; body: Uint8Array }> {
    const file = `${this.directory}/curl-${this.#files++}`;
    await Deno.writeFile(`${file}.out`, new Uint8Array(0));
    if (body !== undefined) await Deno.writeFile(`${file}.in`, body);
    const { port } = this.place("doh");
    const { code, stdout, stderr } = await runProgram(
      "curl",
      ...["-sS", "--max-time", "20", "--cacert", `${this.directory}/ca.crt`, "-o", `${file}.out`],
      ...["-w", "%{http_code} %{http_version} %{content_type}"],
      ...["--resolve", `${DOMAIN}:${port}:127.0.0.1`],
      ...(body === undefined ? [] : ["--data-binary", `@${file}.in`]),
      ...args,
      `https://${DOMAIN}:${port}${path}`,
    );
    assert.equal(code, 0, stderr);
    const [status, version, type] = stdout.split(" ");
    return { status: Number(status), version, type, body: await Deno.readFile(`${file}.out`) };
  }

  /** Samples of a family that are not 0, by protocol. */
  async counts(family: string): Promise<Record<string, number>> {
    const text = await this.api.metrics();
    const counted: Record<string, number> = {};
    for (const [, labels, value] of text.matchAll(new RegExp(`^${family}{(.*)} (\\d+)$`, "gm"))) {
      const protocol = /protocol="(\w+)"/.exec(labels)?.[1] ?? assert.fail(labels);
      if (value !== "0") counted[protocol] = (counted[protocol] ?? 0) + Number(value);
    }
    return counted;
  }

  /** Ends the service; its directory stays. */
  async stop(): Promise<void> {
    assert.equal((await this.service.stop()).code, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}
