import { getU16, setU16 } from "../../bytes/mod.ts";
import {
  AD_BIT,
  CD_BIT,
  DO_BIT,
  EdnsOption,
  HEADER_BYTES,
  OPT_BYTES,
  Qtype,
  RD_BIT,
  UDP_PAYLOAD_MAX,
} from "../../dns/mod.ts";
import { KEY_CD, KEY_DO, type Query } from "../query.ts";
import { type Ask, OPTION_BYTES, QUERY_BLOCK_BYTES } from "./ask.ts";

/** Random bytes drawn at a time: a draw is a call into the system. */
const RANDOM_BYTES = 4_096;

/** Writes queries as they go out: what a forger would have to guess is drawn anew for each. */
export class QueryWriter {
  readonly #random: (target: Uint8Array<ArrayBuffer>) => void;
  readonly #randomBytes = new Uint8Array(RANDOM_BYTES);
  #randomLeft = 0;

  /** `random` fills an array with numbers that cannot be foretold. */
  constructor(random: (target: Uint8Array<ArrayBuffer>) => void) {
    this.#random = random;
  }

  /**
   * Writes the query with a random ID and random case (draft-vixie-dnsext-dns0x20). One that goes
   * encrypted is padded (RFC 8467 §4.1), and one over HTTPS has ID 0 (RFC 8484 §4.1).
   */
  write(ask: Ask, query: Query): void {
    const { packet } = ask;
    const { transport } = ask.server.remote;
    const end = ask.questionEnd = query.questionEnd;
    for (let i = HEADER_BYTES; i < end; i++) packet[i] = query.packet[i];
    packet[0] = transport === "https" ? 0 : this.#randomByte();
    packet[1] = transport === "https" ? 0 : this.#randomByte();
    const cd = (query.keyBits & KEY_CD) !== 0 ? CD_BIT : 0;
    // AD asks for the server's verdict (RFC 6840 §5.7); who gets to see it is decided later.
    setU16(packet, 2, ask.server.resolves ? RD_BIT | AD_BIT | cd : cd);
    setU16(packet, 4, 1);
    for (let i = 6; i < HEADER_BYTES; i++) packet[i] = 0;
    this.#mixCase(packet, HEADER_BYTES, end - 5);
    ask.length = end;
    ask.subnet = null;
    ask.hasEdns = !ask.triesPlain && !ask.server.isPlain(ask.sentAtMs);
    if (!ask.hasEdns) return;
    packet[11] = 1;
    packet[end] = 0;
    setU16(packet, end + 1, Qtype.OPT);
    setU16(packet, end + 3, UDP_PAYLOAD_MAX);
    setU16(packet, end + 5, 0);
    setU16(packet, end + 7, (query.keyBits & KEY_DO) !== 0 ? DO_BIT : 0);
    setU16(packet, end + 9, 0);
    ask.length = end + OPT_BYTES;
    const { cookie } = ask.server;
    if (cookie !== null) this.#addOption(ask, EdnsOption.Cookie, cookie, end + 9);
    const subnet = ask.subnet = ask.server.subnetFor(query);
    if (subnet !== null) this.#addOption(ask, EdnsOption.ClientSubnet, subnet, end + 9);
    if (transport !== "udp") this.#pad(ask, end + 9);
  }

  /** Adds an option; `rdlengthAt` is where OPT, the last record, says how long it is. */
  #addOption(ask: Ask, code: EdnsOption, data: Uint8Array, rdlengthAt: number): void {
    const { packet, length } = ask;
    setU16(packet, rdlengthAt, getU16(packet, rdlengthAt) + OPTION_BYTES + data.length);
    setU16(packet, length, code);
    setU16(packet, length + 2, data.length);
    packet.set(data, length + OPTION_BYTES);
    ask.length = length + OPTION_BYTES + data.length;
  }

  /** Fills the last block. */
  #pad(ask: Ask, rdlengthAt: number): void {
    const { packet, length } = ask;
    const padded = QUERY_BLOCK_BYTES * Math.ceil((length + OPTION_BYTES) / QUERY_BLOCK_BYTES);
    const lengthBytes = padded - length - OPTION_BYTES;
    setU16(packet, rdlengthAt, getU16(packet, rdlengthAt) + OPTION_BYTES + lengthBytes);
    setU16(packet, length, EdnsOption.Padding);
    setU16(packet, length + 2, lengthBytes);
    for (let i = length + OPTION_BYTES; i < padded; i++) packet[i] = 0;
    ask.length = padded;
  }

  #mixCase(packet: Uint8Array, from: number, end: number): void {
    let bits = 0;
    let left = 0;
    for (let at = from; at < end;) {
      const labelEnd = at + 1 + packet[at];
      for (at++; at < labelEnd; at++) {
        const lower = packet[at] | 0x20;
        if (lower < 0x61 || lower > 0x7a) continue;
        if (left === 0) [bits, left] = [this.#randomByte(), 8];
        packet[at] = (bits & 1) !== 0 ? lower & ~0x20 : lower;
        bits >>= 1;
        left--;
      }
    }
  }

  #randomByte(): number {
    if (this.#randomLeft === 0) {
      this.#random(this.#randomBytes);
      this.#randomLeft = this.#randomBytes.length;
    }
    return this.#randomBytes[--this.#randomLeft];
  }
}
