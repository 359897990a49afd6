/** Clients of DNS: raw sockets, and dig, kdig and dnsperf. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createSocket } from "node:dgram";
import { formatIp, type HostPort } from "../../src/addr/mod.ts";
import { setU16 } from "../../src/bytes/mod.ts";
import { decodeMessage, encodeQuery, type Message, type QueryOptions } from "../../src/dns/mod.ts";
import { FrameReader } from "../../src/transport/mod.ts";
import { runProgram, until, WAIT_MS_MAX } from "./harness.ts";

/** dnsperf and dig wait this long for one answer: longer than the service itself. */
const CLIENT_WAIT_SECONDS = 20;

export function decode(packet: Uint8Array): Message {
  const message = decodeMessage(packet);
  assert(message !== null, `no DNS message: ${packet.toHex()}`);
  return message;
}

/** A UDP socket that collects what comes in. */
export class UdpClient {
  readonly received: Uint8Array[] = [];
  readonly #socket;

  private constructor(readonly server: HostPort) {
    this.#socket = createSocket(server.ip.length === 4 ? "udp4" : "udp6");
    this.#socket.on("message", (packet: Uint8Array, from) => {
      // The asked address is the only one that an answer may come from.
      assert.deepEqual([from.address, from.port], [formatIp(server.ip), server.port]);
      this.received.push(packet);
    });
  }

  static async open(server: HostPort): Promise<UdpClient> {
    const client = new UdpClient(server);
    await new Promise<void>((resolve, reject) => {
      client.#socket.once("error", reject);
      client.#socket.bind(0, () => resolve());
    });
    return client;
  }

  send(packet: Uint8Array): void {
    this.#socket.send(Buffer.from(packet), this.server.port, formatIp(this.server.ip));
  }

  /** Sends one query and waits for the answer with its ID. */
  async exchange(packet: Uint8Array, waitMs = WAIT_MS_MAX): Promise<Uint8Array> {
    const before = this.received.length;
    this.send(packet);
    const mine = () =>
      this.received.slice(before).find((p) => p[0] === packet[0] && p[1] === packet[1]);
    await until("an answer", () => mine() !== undefined, waitMs);
    return mine()!;
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

let lastId = 0;
/** IDs of one test run, none twice in a row of 65,535. */
export function nextId(): number {
  lastId = (lastId % 0xffff) + 1;
  return lastId;
}

/** Asks one question over UDP; the bytes of the answer. */
export async function exchangeUdp(
  server: HostPort,
  packet: Uint8Array,
  waitMs = WAIT_MS_MAX,
): Promise<Uint8Array> {
  using client = await UdpClient.open(server);
  return await client.exchange(packet, waitMs);
}

/** Asks one question over UDP. */
export async function ask(
  server: HostPort,
  name: string | Uint8Array,
  type: number,
  options: QueryOptions = {},
): Promise<Message> {
  return decode(await exchangeUdp(server, encodeQuery(name, type, { id: nextId(), ...options })));
}

/** A TCP connection that carries messages behind their length. */
export class TcpClient {
  readonly #frames = new FrameReader();
  readonly #chunk = new Uint8Array(64 * 1024);

  private constructor(readonly conn: Deno.TcpConn) {}

  static async connect({ ip, port }: HostPort): Promise<TcpClient> {
    return new TcpClient(await Deno.connect({ hostname: formatIp(ip), port }));
  }

  /** Sends bytes as they are. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let sent = 0; sent < bytes.length;) sent += await this.conn.write(bytes.subarray(sent));
  }

  async send(...packets: readonly Uint8Array[]): Promise<void> {
    await this.write(framed(packets));
  }

  /** The next message, or `null` when the server has closed the connection. */
  async next(): Promise<Uint8Array | null> {
    for (;;) {
      const frame = this.#frames.next();
      if (frame !== null) return frame.slice();
      const read = await this.conn.read(this.#chunk).catch((error) => {
        if (error instanceof Deno.errors.ConnectionReset) return null;
        throw error;
      });
      if (read === null) return null;
      this.#frames.push(this.#chunk.subarray(0, read));
    }
  }

  /** The next message; the connection must not end before it. */
  async message(): Promise<Message> {
    const late = Promise.withResolvers<never>();
    const error = new Error(`no message within ${WAIT_MS_MAX} ms`);
    const timer = setTimeout(() => late.reject(error), WAIT_MS_MAX);
    const frame = await Promise.race([this.next(), late.promise]).finally(() =>
      clearTimeout(timer)
    );
    assert(frame !== null, "the connection has ended");
    return decode(frame);
  }

  [Symbol.dispose](): void {
    this.conn.close();
  }
}

/** Messages as TCP carries them. */
export function framed(packets: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(packets.reduce((sum, { length }) => sum + 2 + length, 0));
  let at = 0;
  for (const packet of packets) {
    setU16(bytes, at, packet.length);
    bytes.set(packet, at + 2);
    at += 2 + packet.length;
  }
  return bytes;
}

/** Asks one question over TCP. */
export async function askTcp(
  server: HostPort,
  name: string | Uint8Array,
  type: number,
  options: QueryOptions = {},
): Promise<Message> {
  using client = await TcpClient.connect(server);
  await client.send(encodeQuery(name, type, { id: nextId(), ...options }));
  return await client.message();
}

/** Runs dig or kdig against a server; what it prints. */
export async function lookUp(
  program: "dig" | "kdig",
  server: HostPort,
  args: string,
  prefix: readonly string[] = [],
): Promise<string> {
  const wait = program === "dig"
    ? ["-r", `+timeout=${CLIENT_WAIT_SECONDS}`, "+tries=1"]
    : [`+timeout=${CLIENT_WAIT_SECONDS}`, "+retry=0"];
  const at = [`@${formatIp(server.ip)}`, "-p", String(server.port)];
  const [command, ...rest] = [...prefix, program, ...at, ...wait, ...args.split(" ")];
  const { stdout, stderr } = await runProgram(command, ...rest);
  return stdout + stderr;
}

/** What dnsperf counted. */
export interface Load {
  readonly sent: number;
  readonly completed: number;
  readonly lost: number;
  /** Responses by code. */
  readonly rcodes: Readonly<Record<string, number>>;
  readonly text: string;
}

/** Puts a server under load with the questions of `lines`, each sent at most once. */
export function dnsperf(
  server: HostPort,
  directory: string,
  lines: readonly string[],
  queriesPerSecond: number,
  ...args: string[]
): Promise<Load> {
  return dnsperfFrom([], server, directory, lines, queriesPerSecond, ...args);
}

/** The same from elsewhere: `prefix` stands before the command. */
export async function dnsperfFrom(
  prefix: readonly string[],
  server: HostPort,
  directory: string,
  lines: readonly string[],
  queriesPerSecond: number,
  ...args: string[]
): Promise<Load> {
  const file = `${directory}/dnsperf-${nextId()}.txt`;
  await Deno.writeTextFile(file, lines.join("\n") + "\n");
  const [program, ...before] = [...prefix, "dnsperf"];
  const { stdout, stderr } = await runProgram(
    program,
    ...before,
    ...["-s", formatIp(server.ip), "-p", String(server.port), "-d", file, "-n", "1"],
    ...["-Q", String(queriesPerSecond), "-t", String(CLIENT_WAIT_SECONDS), "-T", "1"],
    ...args,
  );
  const text = stdout + stderr;
  const number = (label: string) => {
    const found = new RegExp(`${label}:\\s+(\\d+)`).exec(text);
    assert(found !== null, text);
    return Number(found[1]);
  };
  const codes = /Response codes:\s+(.*)/.exec(text)?.[1] ?? "";
  const rcodes = Object.fromEntries(
    [...codes.matchAll(/(\w+) (\d+) \(/g)].map(([, name, count]) => [name, Number(count)]),
  );
  return {
    sent: number("Queries sent"),
    completed: number("Queries completed"),
    lost: number("Queries lost"),
    rcodes,
    text,
  };
}
