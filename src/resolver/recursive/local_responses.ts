import {
  AA_BIT,
  type HashedName,
  MessageWriter,
  NAME_BYTES_MAX,
  Qclass,
  QR_BIT,
  Qtype,
  Rcode,
  Section,
} from "../../dns/mod.ts";
import { SOA_RDATA } from "../own_answers.ts";
import { Special, SpecialNames } from "./special_names.ts";

/** Seconds that clients keep what is said of special-use names: it never changes. */
const SPECIAL_TTL = 3_600;
const LOOPBACK_V4 = Uint8Array.of(127, 0, 0, 1);
const LOOPBACK_V6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
/** Header, question, and one record beside a compressed owner. */
const BYTES_MAX = 2 * NAME_BYTES_MAX + 256;

/** Makes responses about special-use names, as a server of these zones would. */
export class LocalResponses {
  readonly #names: SpecialNames;
  readonly #writer = new MessageWriter();
  readonly #made = new Uint8Array(BYTES_MAX);

  /** `seed` is that of the hashes of names. */
  constructor(seed: number) {
    this.#names = new SpecialNames(seed);
  }

  /** The response to a question, a view that is good until the next call; `null`: it is for others. */
  find(name: HashedName, bytes: Uint8Array, qtype: number): Uint8Array | null {
    const { kind, zoneIndex } = this.#names.find(bytes, name);
    if (kind === Special.No) return null;
    const writer = this.#writer;
    const end = name.offsets[name.count] + 1;
    const owner = bytes.subarray(name.offsets[0], end);
    const rcode = kind === Special.Localhost ? Rcode.NoError : Rcode.NXDomain;
    // The zone itself exists; nothing below it does.
    const isApex = zoneIndex === 0;
    writer.start(this.#made, 0, BYTES_MAX, 0, QR_BIT | AA_BIT | (isApex ? Rcode.NoError : rcode));
    writer.question(owner, qtype);
    const isLocalhost = kind === Special.Localhost;
    if (isLocalhost && (qtype === Qtype.A || qtype === Qtype.AAAA)) {
      const rdata = qtype === Qtype.A ? LOOPBACK_V4 : LOOPBACK_V6;
      writer.record(Section.Answer, owner, qtype, Qclass.IN, SPECIAL_TTL, rdata);
    } else {
      const zone = bytes.subarray(name.offsets[zoneIndex], end);
      writer.record(Section.Authority, zone, Qtype.SOA, Qclass.IN, SPECIAL_TTL, SOA_RDATA);
    }
    return writer.bytes();
  }
}
