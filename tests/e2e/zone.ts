/** An upstream whose answers are a table of text. */
import assert from "node:assert/strict";
import { parseIp } from "../../src/addr/mod.ts";
import { parseSvcb, Qtype } from "../../src/dns/mod.ts";
import {
  answer,
  type AnswerSpec,
  type RecordSpec,
  type Script,
  soaRdata,
  wireName,
} from "./fake_upstream.ts";

const TTL = 300;

/** Records by `name TYPE`: `TYPE data`, with another owner's name in front where it is not QNAME. */
export type Zone = Readonly<Record<string, readonly string[]>>;

/** A record of a zone. */
export function recordOf(line: string, owner: string, ttl = TTL): RecordSpec {
  const words = line.split(" ");
  const hasOwner = !Object.hasOwn(Qtype, words[0]);
  const [name, typeName, ...rest] = hasOwner ? words : [owner, ...words];
  const type = Qtype[typeName as keyof typeof Qtype];
  const data = rest.join(" ");
  const rdata = type === Qtype.CNAME
    ? wireName(data)
    : type === Qtype.HTTPS || type === Qtype.SVCB
    ? parseSvcb(data)
    : parseIp(data);
  assert(rdata !== null, line);
  return { name, type, ttl, data: rdata };
}

/** What every name has that a zone does not speak of. */
export const PLAIN_A = "198.51.100.1";
export const PLAIN_AAAA = "2001:db8:1::1";

/**
 * Answers by a zone, and any other name with `PLAIN_A` and `PLAIN_AAAA`. `special` gives other parts
 * of answers by name.
 */
export function zoneScript(
  zone: Zone,
  special: Readonly<Record<string, AnswerSpec>> = {},
): Script {
  return (query) => {
    const name = query.name.toLowerCase();
    if (special[name] !== undefined) return answer(query, special[name]);
    const typeName = Object.entries(Qtype).find(([, type]) => type === query.type)?.[0];
    const plain = { A: [`A ${PLAIN_A}`], AAAA: [`AAAA ${PLAIN_AAAA}`] }[typeName ?? ""] ?? [];
    const lines = zone[`${name} ${typeName}`] ?? plain;
    return answer(query, { answers: lines.map((line) => recordOf(line, query.name)) });
  };
}

/** A negative answer, remembered for some seconds. */
export function negative(rcode: number, seconds: number): AnswerSpec {
  const soa = { name: "example", type: Qtype.SOA, ttl: TTL, data: soaRdata("example", seconds) };
  return { rcode, authorities: [soa] };
}
