/** Passes on what signed zones say, with a bit changed in every other response; the same for all. */
import assert from "node:assert/strict";
import {
  decodeMessage,
  formatName,
  MessageWriter,
  nameKey,
  parseName,
  Qtype,
  qtypeName,
} from "../../src/dns/mod.ts";
import { type Question, type RrSet, type RrSetResponse } from "../../src/dnssec/mod.ts";
import { framed } from "../e2e/clients.ts";
import { Prng } from "../prng.ts";
import { mutateRrSet, type SignedZones } from "./signed_zones.ts";

/** Ports that are drawn until one is free over UDP and TCP. */
const PORT_TRIES_MAX = 16;
const HEADER_BYTES = 12;
/** QR, AA, RD and RA. */
const FLAGS = 0x8580;
const TC_BIT = 0x0200;
/** What the chain of trust is of stays whole: else all below it would be bogus. */
const WHOLE_TYPES: readonly number[] = [Qtype.DS, Qtype.DNSKEY];

export class SpoilingServer implements Disposable {
  readonly #zones: SignedZones;
  readonly #seed: number;
  readonly #udp: Deno.DatagramConn;
  readonly #tcp: Deno.TcpListener;
  readonly #open = new Set<Deno.TcpConn>();
  /** By question: the RRset of its response that was changed, as it was and as it is. */
  readonly spoilt = new Map<string, string>();

  constructor(zones: SignedZones, seed: number) {
    this.#zones = zones;
    this.#seed = seed;
    [this.#udp, this.#tcp] = listen();
    void this.#serveUdp();
    void this.#serveTcp();
  }

  get port(): number {
    return this.#tcp.addr.port;
  }

  [Symbol.dispose](): void {
    this.#udp.close();
    this.#tcp.close();
    for (const conn of this.#open) conn.close();
  }

  async #serveUdp(): Promise<void> {
    for await (const [packet, from] of this.#udp) {
      void this.#respond(packet.slice(), 1_232).then((response) => this.#udp.send(response, from))
        .catch(() => {});
    }
  }

  async #serveTcp(): Promise<void> {
    for await (const conn of this.#tcp) {
      this.#open.add(conn);
      void this.#serveConnection(conn).catch(() => {}).finally(() => {
        if (this.#open.delete(conn)) conn.close();
      });
    }
  }

  async #serveConnection(conn: Deno.TcpConn): Promise<void> {
    let held = new Uint8Array(0);
    const chunk = new Uint8Array(4_096);
    for (;;) {
      const length = held.length < 2 ? Infinity : 2 + ((held[0] << 8) | held[1]);
      if (held.length >= length) {
        const response = await this.#respond(held.slice(2, length), 0xffff);
        held = held.slice(length);
        const bytes = framed([response]);
        for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
        continue;
      }
      const read = await conn.read(chunk);
      if (read === null) return;
      held = Uint8Array.of(...held, ...chunk.subarray(0, read));
    }
  }

  async #respond(packet: Uint8Array, limitBytes: number): Promise<Uint8Array> {
    const message = decodeMessage(packet);
    assert(message !== null && message.questions.length === 1);
    const [{ name, type }] = message.questions;
    const wire = parseName(name);
    assert(wire !== null);
    const lower = parseName(name.toLowerCase())!;
    const said = this.#spoil(lower, type, await this.#zones.ask(lower, type));
    // As it was asked: who mixes the letters' case wants them back.
    const asked = packet.subarray(HEADER_BYTES, HEADER_BYTES + wire.length);
    const target = new Uint8Array(0xffff);
    const writer = new MessageWriter(true);
    writer.start(target, 0, target.length, message.id, FLAGS | said.rcode);
    writer.question(asked, type);
    for (const [section, rrsets] of [[0, said.answer], [1, said.authority]] as const) {
      for (const { owner, type, cls, ttl, rdatas, signatures } of rrsets) {
        for (const rdata of rdatas) writer.record(section, owner, type, cls, ttl, rdata);
        for (const rdata of signatures) writer.record(section, owner, Qtype.RRSIG, cls, ttl, rdata);
      }
    }
    if (message.opt !== null) {
      writer.opt({ payload: 1_232, extendedRcode: 0, version: 0, dnssecOk: message.opt.dnssecOk });
    }
    if (writer.lengthBytes <= limitBytes) return target.slice(0, writer.lengthBytes);
    writer.start(target, 0, target.length, message.id, FLAGS | TC_BIT);
    writer.question(asked, type);
    return target.slice(0, writer.lengthBytes);
  }

  /** What was changed for a question, or "". */
  changeFor({ name, type }: Question): string {
    return this.spoilt.get(`${type} ${nameKey(name)}`) ?? "";
  }

  /** The response with a bit changed in one RRset that has a part in it, for every other question. */
  #spoil(name: Uint8Array, type: number, said: RrSetResponse): RrSetResponse {
    const key = `${type} ${nameKey(name)}`;
    const prng = new Prng(this.#seed ^ hashOf(key));
    if (WHOLE_TYPES.includes(type) || prng.chance(0.5)) return said;
    const denials: readonly number[] = [Qtype.SOA, Qtype.NSEC, Qtype.NSEC3];
    // Of an alias there is no more to spoil: who follows it himself sees nothing of the rest.
    const alias = type === Qtype.CNAME
      ? undefined
      : said.answer.find(({ type }) => type === Qtype.CNAME || type === Qtype.DNAME);
    const parts =
      (alias !== undefined
        ? [alias]
        : [...said.answer, ...said.authority.filter(({ type }) => denials.includes(type))])
        .filter(({ signatures }) => signatures.length > 0);
    const rrset = parts.length === 0 ? null : prng.pick(parts);
    const changed = rrset === null ? null : mutateRrSet(prng, rrset);
    if (changed === null) return said;
    this.spoilt.set(key, `${show(rrset!)} to ${show(changed)}`);
    const replace = (sets: readonly RrSet[]) => sets.map((set) => set === rrset ? changed : set);
    return { ...said, answer: replace(said.answer), authority: replace(said.authority) };
  }
}

/** Sockets of the same port. */
function listen(): [Deno.DatagramConn, Deno.TcpListener] {
  for (let attempt = 1;; attempt++) {
    const tcp = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = tcp.addr;
    try {
      return [Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port }), tcp];
    } catch (error) {
      tcp.close();
      if (attempt === PORT_TRIES_MAX) throw error;
    }
  }
}

/** What an RRset is, and a digest of its data and of its signatures. */
function show({ owner, type, rdatas, signatures }: RrSet): string {
  const digest = (parts: readonly Uint8Array[]) => hashOf(parts.join(";")) >>> 0;
  return `${formatName(owner)} ${qtypeName(type)} (${digest(rdatas)}, ${digest(signatures)})`;
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
