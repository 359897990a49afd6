/** Trust anchors: from files, built in, and the names that are exempt (RFC 4035 §4.4, RFC 7646). */
import { decodeBase64, decodeHex, setU16 } from "../bytes/mod.ts";
import { countLabels, nameKey, parseName, Qtype } from "../dns/mod.ts";
import { isSupported, isWellFormed } from "./keys.ts";
import { DS_MAX } from "./limits.ts";
import { ancestor } from "./names.ts";
import { type Dnskey, type Ds, readDnskey, readDs, REVOKE_FLAG, ZONE_FLAG } from "./records.ts";

/** A DS or DNSKEY record that is believed without proof. */
export interface TrustAnchor {
  readonly zone: Uint8Array;
  readonly type: typeof Qtype.DS | typeof Qtype.DNSKEY;
  readonly rdata: Uint8Array;
}

/** KSK-2017 and KSK-2024 of the root, as IANA publishes them (RFC 9718). */
export const ROOT_ANCHORS_TEXT = `
. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16
`;

export interface AnchorProblem {
  /** Counted from 1. */
  readonly line: number;
  readonly message: string;
}

export interface ParsedAnchors {
  readonly anchors: readonly TrustAnchor[];
  /** None, or the anchors are not to be used. */
  readonly problems: readonly AnchorProblem[];
}

/** A record's words, and the line it begins in. */
interface Entry {
  readonly line: number;
  readonly words: readonly string[];
}

/**
 * Parses a file of DS and DNSKEY records in presentation form, of any zones: `. 3600 IN DS …`. TTL
 * and class may be left out, comments begin with `;`, and parentheses join lines.
 */
export function parseTrustAnchors(text: string): ParsedAnchors {
  const anchors: TrustAnchor[] = [];
  const problems: AnchorProblem[] = [];
  const entries = readEntries(text, problems);
  const counts = new Map<string, number>();
  for (const { line, words } of entries) {
    const anchor = parseAnchor(words);
    if (typeof anchor === "string") {
      problems.push({ line, message: anchor });
      continue;
    }
    const key = nameKey(anchor.zone);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count === DS_MAX + 1) {
      problems.push({ line, message: `is one more than the ${DS_MAX} that a zone can have` });
    }
    anchors.push(anchor);
  }
  if (entries.length === 0 && problems.length === 0) {
    problems.push({ line: 1, message: "holds no DS or DNSKEY record" });
  }
  return { anchors, problems };
}

function readEntries(text: string, problems: AnchorProblem[]): Entry[] {
  const entries: Entry[] = [];
  let words: string[] = [];
  let start = 0;
  let depth = 0;
  for (const [i, row] of text.split(/\r?\n/).entries()) {
    if (words.length === 0 && depth === 0) start = i + 1;
    for (const word of row.replace(/;.*$/, "").match(/[()]|[^\s()]+/g) ?? []) {
      if (word === "(") depth++;
      else if (word !== ")") words.push(word);
      else if (--depth < 0) {
        problems.push({ line: i + 1, message: "a parenthesis closes that was not opened" });
        depth = 0;
      }
    }
    if (depth > 0 || words.length === 0) continue;
    entries.push({ line: start, words });
    words = [];
  }
  if (depth > 0) problems.push({ line: start, message: "a parenthesis is not closed" });
  return entries;
}

/** An anchor, or what is wrong with it. */
function parseAnchor(words: readonly string[]): TrustAnchor | string {
  const zone = parseName(words[0]);
  if (zone === null) return `is for "${words[0]}", which is no name`;
  let at = 1;
  while (/^(\d+|IN)$/i.test(words[at] ?? "") && at < 3) at++;
  const type = (words[at] ?? "").toUpperCase();
  const rest = words.slice(at + 1);
  if (type === "DS") return parseDs(zone, rest);
  if (type === "DNSKEY") return parseDnskey(zone, rest);
  return `is a record of type "${words[at] ?? ""}": trust anchors are DS or DNSKEY records`;
}

function parseDs(zone: Uint8Array, words: readonly string[]): TrustAnchor | string {
  const [tag, digestType] = [words[0], words[2]].map(parseNumber);
  const algorithm = parseAlgorithm(words[1]);
  const digest = decodeHex(words.slice(3).join(""));
  if (!(tag <= 0xffff) || !(algorithm <= 0xff) || !(digestType <= 0xff)) {
    return "a DS record begins with three numbers: key tag, algorithm, digest type";
  }
  if (digest === null || digest.length === 0) return "the digest is no hexadecimal";
  const rdata = new Uint8Array(4 + digest.length);
  setU16(rdata, 0, tag);
  rdata.set([algorithm, digestType], 2);
  rdata.set(digest, 4);
  return { zone, type: Qtype.DS, rdata };
}

function parseDnskey(zone: Uint8Array, words: readonly string[]): TrustAnchor | string {
  const [flags, protocol] = words.slice(0, 2).map(parseNumber);
  const algorithm = parseAlgorithm(words[2]);
  const key = decodeBase64(words.slice(3).join(""));
  if (!(flags <= 0xffff) || !(protocol <= 0xff) || !(algorithm <= 0xff)) {
    return "a DNSKEY record begins with three numbers: flags, protocol, algorithm";
  }
  if (key === null || key.length === 0) return "the key is no base64";
  if ((flags & ZONE_FLAG) === 0) return "the key is none of a zone: flag 256 is not set";
  if ((flags & REVOKE_FLAG) !== 0) return "the key is revoked: flag 128 is set";
  if (protocol !== 3) return `the key's protocol is ${protocol}, and that of DNSSEC is 3`;
  if (isSupported(algorithm) && !isWellFormed(algorithm, key)) {
    return `the key has not the form of algorithm ${algorithm}`;
  }
  const rdata = new Uint8Array(4 + key.length);
  setU16(rdata, 0, flags);
  rdata.set([protocol, algorithm], 2);
  rdata.set(key, 4);
  return { zone, type: Qtype.DNSKEY, rdata };
}

/** Mnemonics that stand for the number of an algorithm (RFC 4034 appendix A.1). */
const MNEMONICS: Readonly<Record<string, number>> = {
  DSA: 3,
  RSASHA1: 5,
  "RSASHA1-NSEC3-SHA1": 7,
  RSASHA256: 8,
  RSASHA512: 10,
  ECDSAP256SHA256: 13,
  ECDSAP384SHA384: 14,
  ED25519: 15,
  ED448: 16,
};

function parseAlgorithm(word = ""): number {
  return MNEMONICS[word.toUpperCase()] ?? parseNumber(word);
}

/** A number without sign; NaN for anything else. */
function parseNumber(word = ""): number {
  return /^\d{1,5}$/.test(word) ? Number(word) : NaN;
}

/** What vouches for the keys of a zone: digests, keys, or both. */
export interface Trust {
  readonly ds: readonly Ds[];
  readonly keys: readonly Dnskey[];
}

/** The anchor, or the exemption, that is closest above a name. */
export type TrustPoint =
  | { readonly kind: "anchor"; readonly zone: Uint8Array; readonly trust: Trust }
  | { readonly kind: "negative"; readonly zone: Uint8Array };

/** All anchors and exemptions, to be found by name. */
export class TrustAnchors {
  readonly #points = new Map<string, TrustPoint>();
  /** Labels of the longest name among them. */
  readonly #labels: number;

  /** Of a name with both, the exemption counts: it is what an operator sets to be helped. */
  constructor(anchors: readonly TrustAnchor[], negative: readonly Uint8Array[] = []) {
    const trusts = new Map<string, { zone: Uint8Array; ds: Ds[]; keys: Dnskey[] }>();
    for (const { zone, type, rdata } of anchors) {
      const key = nameKey(zone);
      const trust = trusts.get(key) ?? { zone, ds: [], keys: [] };
      trusts.set(key, trust);
      const ds = type === Qtype.DS ? readDs(rdata) : null;
      const dnskey = type === Qtype.DNSKEY ? readDnskey(rdata) : null;
      if (ds !== null && trust.ds.length < DS_MAX) trust.ds.push(ds);
      if (dnskey !== null && trust.keys.length < DS_MAX) trust.keys.push(dnskey);
    }
    for (const [key, { zone, ds, keys }] of trusts) {
      this.#points.set(key, { kind: "anchor", zone, trust: { ds, keys } });
    }
    for (const zone of negative) this.#points.set(nameKey(zone), { kind: "negative", zone });
    this.#labels = Math.max(
      0,
      ...[...anchors.map(({ zone }) => zone), ...negative].map((name) => countLabels(name, 0)),
    );
  }

  /** The point at or above a name that is closest to it, or `null`. */
  closest(name: Uint8Array): TrustPoint | null {
    for (let labels = Math.min(countLabels(name, 0), this.#labels); labels >= 0; labels--) {
      const point = this.#points.get(nameKey(ancestor(name, labels)));
      if (point !== undefined) return point;
    }
    return null;
  }

  /** Zones with anchors: those whose keys are to be watched for a roll. */
  zones(): Uint8Array[] {
    return [...this.#points.values()].filter(({ kind }) => kind === "anchor").map(({ zone }) =>
      zone
    );
  }
}
