/**
 * An upstream that does as a test tells it, over UDP and TCP, and remembers what it was asked. It can
 * be silent, slow, wrong in any field, cut its answers, or go away and come back.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket as TcpSocket } from "node:net";
import { formatIp, type HostPort, parseIp } from "../../src/addr/mod.ts";
import { setU16 } from "../../src/bytes/mod.ts";
import {
  decodeMessage,
  type Message,
  MessageWriter,
  parseName,
  QR_BIT,
  Qtype,
  RA_BIT,
  Rcode,
  RD_BIT,
  Section,
  TC_BIT,
} from "../../src/dns/mod.ts";
import { FrameReader } from "../../src/transport/mod.ts";
import { freePort, until } from "./harness.ts";

/** Tries to find one free port for UDP and TCP. */
const PORT_TRIES_MAX = 16;
const MESSAGE_BYTES_MAX = 0xffff;
/** No message: a note to itself, behind all that came before it. */
const MARKER = Uint8Array.of(0x21);

/** A query as it came in. */
export interface Seen {
  readonly transport: "udp" | "tcp";
  /** Source port. */
  readonly port: number;
  readonly bytes: Uint8Array;
  readonly message: Message;
  /** QNAME in the case that was sent. */
  readonly name: string;
  readonly type: number;
  readonly atMs: number;
}

/** A query that came in over a stream of a test's own. */
export function seenInStream(packet: Uint8Array): Seen {
  const message = decodeMessage(packet);
  assert(message !== null);
  const [{ name, type }] = message.questions;
  const atMs = performance.now();
  return { transport: "tcp", port: 0, bytes: packet, message, name, type, atMs };
}

/** What an upstream does with a query: answers, each sent in turn, or nothing, or hangs up. */
export type Reaction = Uint8Array | readonly Uint8Array[] | null | "close";
export type Script = (query: Seen) => Reaction | Promise<Reaction>;

/** A record in short: type, TTL, and RDATA as text of an address or as bytes. */
export interface RecordSpec {
  readonly type: number;
  readonly ttl: number;
  readonly data: string | Uint8Array;
  /** Left out: QNAME. */
  readonly name?: string;
}

export interface AnswerSpec {
  readonly answers?: readonly RecordSpec[];
  readonly authorities?: readonly RecordSpec[];
  readonly rcode?: number;
  /** Further bits of the header's flags. */
  readonly flags?: number;
  /** Extended error, in an OPT. */
  readonly ede?: number;
  /** False: no OPT, whatever the query has. */
  readonly edns?: boolean;
  /** ID in place of the right one. */
  readonly id?: number;
  /** Question in place of the right one. */
  readonly question?: string;
}

export function wireName(text: string): Uint8Array<ArrayBuffer> {
  const wire = parseName(text);
  assert(wire !== null, `${text} is no name`);
  return wire;
}

/** RDATA of an SOA whose last field is `minimum`. */
export function soaRdata(zone: string, minimum: number): Uint8Array {
  const [mname, rname] = [wireName(`ns.${zone}`), wireName(`hostmaster.${zone}`)];
  const rdata = new Uint8Array(mname.length + rname.length + 20);
  rdata.set(mname);
  rdata.set(rname, mname.length);
  const view = new DataView(rdata.buffer);
  [1, 7_200, 3_600, 86_400, minimum].forEach((value, i) => {
    view.setUint32(mname.length + rname.length + 4 * i, value);
  });
  return rdata;
}

/** RDATA of a TXT record of `length` bytes of text. */
export function txtRdata(length: number): Uint8Array {
  const strings: number[] = [];
  for (let left = length; left > 0; left -= 255) {
    const size = Math.min(left, 255);
    strings.push(size, ...new Array<number>(size).fill(0x78));
  }
  return Uint8Array.from(strings);
}

/** The answer to a query: right in every field that `spec` says nothing of. */
export function answer({ message }: Seen, spec: AnswerSpec = {}): Uint8Array {
  const { id = message.id, rcode = Rcode.NoError, flags = 0 } = spec;
  const [question] = message.questions;
  const target = new Uint8Array(MESSAGE_BYTES_MAX);
  const writer = new MessageWriter();
  const bits = QR_BIT | RA_BIT | flags | (message.rd ? RD_BIT : 0) | rcode;
  assert(writer.start(target, 0, target.length, id, bits));
  const qname = wireName(spec.question ?? question.name);
  assert(writer.question(qname, question.type, question.cls));
  const sections = [[Section.Answer, spec.answers], [Section.Authority, spec.authorities]] as const;
  for (const [section, records] of sections) {
    for (const { name, type, ttl, data } of records ?? []) {
      const owner = name === undefined ? qname : wireName(name);
      const rdata = typeof data === "string" ? parseIp(data) : data;
      assert(rdata !== null, `${data} is no address`);
      assert(writer.record(section, owner, type, 1, ttl, rdata), "an answer fits");
    }
  }
  if (message.opt !== null && spec.edns !== false) {
    const { dnssecOk } = message.opt;
    assert(writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk }));
    if (spec.ede !== undefined) assert(writer.option(15, Uint8Array.of(0, spec.ede)));
  }
  return writer.bytes().slice();
}

/** One address, whatever is asked. */
export function address(query: Seen, data = "192.0.2.1", ttl = 300): Uint8Array {
  const v6 = query.type === Qtype.AAAA;
  return answer(query, {
    answers: [{ type: v6 ? Qtype.AAAA : Qtype.A, ttl, data: v6 ? "2001:db8::1" : data }],
  });
}

/** Header and question with TC. */
export function truncated(query: Seen): Uint8Array {
  return answer(query, { flags: TC_BIT });
}

export class FakeUpstream {
  readonly seen: Seen[] = [];
  script: Script;
  #udp: UdpSocket | null = null;
  #tcp: Server | null = null;
  readonly #markers: (() => void)[] = [];
  readonly #streams = new Set<TcpSocket>();

  private constructor(readonly address: HostPort, script: Script) {
    this.script = script;
  }

  /** Starts one on loopback. */
  static async start(script: Script = (query) => address(query), ip = "127.0.0.1") {
    const bytes = parseIp(ip);
    assert(bytes !== null);
    for (let i = 1;; i++) {
      const upstream = new FakeUpstream({ ip: bytes, port: freePort(ip) }, script);
      try {
        await upstream.open();
        return upstream;
      } catch (error) {
        await upstream.close();
        if (i === PORT_TRIES_MAX) throw error;
      }
    }
  }

  /** As `[[upstream]] address` has it. */
  get text(): string {
    const { ip, port } = this.address;
    return ip.length === 4 ? `${formatIp(ip)}:${port}` : `[${formatIp(ip)}]:${port}`;
  }

  /** Listens, again after `close`. */
  async open(): Promise<void> {
    const { ip, port } = this.address;
    const host = formatIp(ip);
    const udp = this.#udp = createSocket(ip.length === 4 ? "udp4" : "udp6");
    await new Promise<void>((resolve, reject) => {
      udp.once("error", reject);
      udp.bind(port, host, () => resolve());
    });
    udp.removeAllListeners("error");
    udp.on("error", () => {}); // A client that is gone.
    udp.on("message", (packet: Uint8Array, from) => {
      if (packet.length === MARKER.length) return this.#markers.shift()?.();
      const reply = (p: Uint8Array) => {
        if (this.#udp === udp) udp.send(Buffer.from(p), from.port, from.address);
      };
      void this.#react("udp", packet, from.port, reply, () => {});
    });
    const tcp = this.#tcp = createServer((stream) => this.#serve(stream));
    await new Promise<void>((resolve, reject) => {
      tcp.once("error", reject);
      tcp.listen(port, host, () => resolve());
    });
  }

  #serve(stream: TcpSocket): void {
    this.#streams.add(stream);
    const frames = new FrameReader();
    stream.on("error", () => stream.destroy());
    stream.on("close", () => this.#streams.delete(stream));
    stream.on("data", (chunk: Uint8Array) => {
      frames.push(chunk);
      for (let frame = frames.next(); frame !== null; frame = frames.next()) {
        const reply = (p: Uint8Array) => {
          const bytes = Buffer.alloc(2 + p.length);
          setU16(bytes, 0, p.length);
          bytes.set(p, 2);
          if (!stream.destroyed) stream.write(bytes);
        };
        const close = () => stream.destroy();
        void this.#react("tcp", frame.slice(), stream.remotePort ?? 0, reply, close);
      }
    });
  }

  async #react(
    transport: "udp" | "tcp",
    bytes: Uint8Array,
    port: number,
    reply: (packet: Uint8Array) => void,
    close: () => void,
  ): Promise<void> {
    const message = decodeMessage(bytes);
    assert(message !== null, `the service sent what is no message: ${bytes.toHex()}`);
    const [{ name, type }] = message.questions;
    const query = { transport, port, bytes, message, name, type, atMs: performance.now() };
    this.seen.push(query);
    const reaction = await this.script(query);
    if (reaction === "close") return close();
    if (reaction === null) return;
    for (const packet of reaction instanceof Uint8Array ? [reaction] : reaction) reply(packet);
  }

  /** Queries for a name, whatever its case. */
  about(name: string): Seen[] {
    return this.seen.filter((query) => query.name.toLowerCase() === name.toLowerCase());
  }

  /**
   * How many queries for a name were sent to it up to now. A question that it is slow to answer is
   * sent again, so tests compare the number before and after, and never with one of their own.
   */
  async total(name: string): Promise<number> {
    const udp = this.#udp;
    assert(udp !== null, "it listens");
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#markers.push(resolve);
    udp.send(Buffer.from(MARKER), this.address.port, formatIp(this.address.ip));
    await promise;
    return this.about(name).length;
  }

  /** Waits until it was asked for a name that often. */
  async asked(name: string, times = 1): Promise<void> {
    await until(`${times} queries for ${name}`, () => this.about(name).length >= times);
  }

  /** Goes away, as a killed server does: its port is closed. */
  async close(): Promise<void> {
    const [udp, tcp] = [this.#udp, this.#tcp];
    this.#udp = this.#tcp = null;
    for (const stream of this.#streams) stream.destroy();
    if (udp !== null) await new Promise<void>((resolve) => udp.close(() => resolve()));
    if (tcp !== null && tcp.listening) {
      await new Promise<void>((resolve) => tcp.close(() => resolve()));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
