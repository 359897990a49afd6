// What the servers of a scenario say, and what a resolver's answer has in place of what it should: the
// response code, AD, the set of answer records, as far as MATCH names them.

import { decodeHex, getU16, setU16 } from "../../src/bytes/mod.ts";
import {
  AA_BIT,
  AD_BIT,
  CD_BIT,
  decodeMessage,
  type Message,
  QR_BIT,
  qtypeName,
  RA_BIT,
  Rcode,
  rcodeName,
  TC_BIT,
} from "../../src/dns/mod.ts";
import { encodeResponse } from "./records.ts";
import { configValues, findEntry, rcodeOf, type RplEntry, type Scenario } from "./rpl.ts";

/** A query as a server of a scenario gets it. */
export interface ServedQuery {
  readonly address: string;
  readonly tcp: boolean;
  readonly packet: Uint8Array;
  readonly wireName: Uint8Array;
  readonly type: number;
}

/** What a scenario's server at an address says, as packets. */
export function answerOf(scenario: Scenario, step: number, query: ServedQuery): Uint8Array[] {
  const { address, wireName: name, type } = query;
  const entry = findEntry(scenario, step, address, { name, type });
  if (entry === null) return [encodeResponse({ name, type }, Rcode.ServFail, {})];
  if (entry.adjust.includes("do_not_answer")) return [];
  if (entry.raw !== null) {
    const raw = decodeHex(entry.raw)!.slice();
    if (!entry.adjust.includes("raw_id")) setU16(raw, 0, getU16(query.packet, 0));
    return [raw];
  }
  const isCopied = entry.adjust.includes("copy_query") || entry.question === null;
  const question = isCopied ? { name, type } : entry.question!;
  const message = encodeResponse(question, rcodeOf(entry), entry);
  let flags = QR_BIT | rcodeOf(entry);
  for (
    const [word, bit] of [["AA", AA_BIT], ["TC", TC_BIT], ["RA", RA_BIT], ["AD", AD_BIT], [
      "CD",
      CD_BIT,
    ]] as const
  ) {
    if (entry.reply.includes(word)) flags |= bit;
  }
  // Over TCP nothing is cut.
  setU16(message, 2, query.tcp ? flags & ~TC_BIT : flags);
  setU16(message, 0, getU16(query.packet, 0));
  return [message];
}

/** What an answer has in place of what it should, or `null`. */
export function differenceOf(
  asked: RplEntry,
  got: Message,
  want: RplEntry,
  isValidated: boolean,
): string | null {
  const judges = (field: string) => want.match.includes(field) || want.match.includes("all");
  const rcode = rcodeOf(want);
  if (judges("rcode") && got.rcode !== rcode) {
    const errors = got.opt?.errors.map(({ text }) => text).join("; ") ?? "";
    return `${rcodeName(got.rcode)} in place of ${rcodeName(rcode)} (${errors})`;
  }
  const wantsAd = isValidated && (asked.reply.includes("DO") || asked.reply.includes("AD"));
  if (judges("flags") && wantsAd && got.ad !== want.reply.includes("AD")) {
    return `${got.ad ? "AD" : "no AD"} in place of the opposite`;
  }
  if (!judges("answer") || rcode === Rcode.ServFail) return null;
  const expected = decodeMessage(encodeResponse(asked.question!, 0, want))!;
  const [a, b] = [recordsOf(got), recordsOf(expected)];
  return a === b ? null : `${a} in place of ${b}`;
}

function recordsOf({ answers }: Message): string {
  return answers.map(({ name, type, data }) => `${name} ${qtypeName(type)} ${data}`.toLowerCase())
    .sort().join(", ");
}

/** Says whether names are to be told in parts. */
export function minimises(scenario: Scenario): boolean {
  const keys = ["query-minimization", "qname-minimisation"];
  const [value = ""] = keys.flatMap((key) => configValues(scenario, key));
  return !["no", "off"].includes(value);
}
