import {
  AA_BIT,
  decodeMessage,
  MessageWriter,
  parseName,
  parseRdata,
  Qclass,
  QR_BIT,
  Qtype,
  Rcode,
  RD_BIT,
  Section,
} from "../dns/mod.ts";

/** Room for more proofs than there are at a time. */
const RESPONSE_BYTES_MAX = 1_232;
const UDP_BYTES_MAX = 512;
/** Nobody is to keep them: they are others each time. */
const TTL = 1;
/** A name cannot be longer, with its type and class behind it. */
const QUESTION_BYTES_MAX = 259;
const HEADER_BYTES = 12;

/** Where the proofs of a name stand (RFC 8555 §8.4). */
export function proofZone(domain: string): string {
  return `_acme-challenge.${domain.replace(/^\*\./, "")}`;
}

/**
 * Answers a query as the server that these zones are delegated to, each with TXT records and nothing
 * else; `null`: it gets no answer. `textsOf` tells the records of a zone.
 */
export function answerProof(
  packet: Uint8Array,
  zones: readonly string[],
  textsOf: (zone: string) => readonly string[],
): Uint8Array | null {
  const query = decodeMessage(packet);
  if (query === null || query.response || query.questions.length !== 1) return null;
  const [{ name, type, cls }] = query.questions;
  const wire = parseName(name);
  if (wire === null || wire.length > QUESTION_BYTES_MAX) return null;
  const asked = name.toLowerCase().replace(/\.$/, "");
  const { opt } = query;
  const writer = new MessageWriter();
  const target = new Uint8Array(RESPONSE_BYTES_MAX);
  const limit = opt === null ? UDP_BYTES_MAX : RESPONSE_BYTES_MAX;
  const zone = zones.find((zone) => asked === zone || asked.endsWith(`.${zone}`));
  const isBad = opt !== null && opt.version > 0;
  const isOurs = zone !== undefined && query.opcode === 0 && cls === Qclass.IN && !isBad;
  const apex = zone === undefined ? null : parseName(zone);
  const isApex = apex !== null && apex.length === wire.length;
  const rcode = query.opcode !== 0
    ? Rcode.NotImp
    : isBad
    ? Rcode.BadVers
    : !isOurs
    ? Rcode.Refused
    : isApex
    ? Rcode.NoError
    : Rcode.NXDomain;
  const flags = QR_BIT | (query.rd ? RD_BIT : 0) | (isOurs ? AA_BIT : 0) | (query.opcode << 11) |
    (rcode & 0xf);
  writer.start(target, 0, limit, query.id, flags);
  // As it was asked: whoever asks may look at the case of the letters.
  writer.question(packet.subarray(HEADER_BYTES, HEADER_BYTES + wire.length), type, cls);
  if (isOurs && apex !== null) {
    const soa = parseRdata(Qtype.SOA, `${zone}. hostmaster.${zone}. 1 3600 600 86400 ${TTL}`)!;
    const texts = isApex && type === Qtype.TXT ? textsOf(zone) : [];
    for (const text of texts) {
      const rdata = parseRdata(Qtype.TXT, `"${text}"`)!;
      writer.record(Section.Answer, wire, Qtype.TXT, Qclass.IN, TTL, rdata);
    }
    const isAsked = isApex && type === Qtype.SOA;
    if (isAsked || texts.length === 0) {
      const section = isAsked ? Section.Answer : Section.Authority;
      writer.record(section, apex, Qtype.SOA, Qclass.IN, TTL, soa);
    }
  }
  if (opt !== null) {
    writer.opt({
      ...{ payload: RESPONSE_BYTES_MAX, extendedRcode: rcode >> 4, version: 0 },
      dnssecOk: opt.dnssecOk,
    });
  }
  return writer.bytes();
}
