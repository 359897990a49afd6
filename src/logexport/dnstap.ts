import { parseIp, unmapIpv4 } from "../addr/mod.ts";
import { setU16 } from "../bytes/mod.ts";
import { HEADER_BYTES, RecordView, Section, SectionWalk, skipQuestion, Walk } from "../dns/mod.ts";
import { PROTOCOL_NAMES } from "../logqueue/mod.ts";
import { showEntry, type ShownEntry, type StoredEntry } from "../querylog/entry.ts";
import { ProtobufWriter } from "./protobuf.ts";

/** Numbers of the fields of `Dnstap`. */
const Field = { Identity: 1, Version: 2, Extra: 3, Message: 14, Type: 15 } as const;
const TYPE_MESSAGE = 1;
/** Those of its `Message`. */
const MessageField = {
  Type: 1,
  Family: 2,
  Protocol: 3,
  QueryAddress: 4,
  QuerySeconds: 8,
  QueryNanoseconds: 9,
  ResponseSeconds: 12,
  ResponseNanoseconds: 13,
  Response: 14,
  Policy: 15,
} as const;
const CLIENT_RESPONSE = 6;
const Family = { Inet: 1, Inet6: 2 } as const;
/** `SocketProtocol`, by our own names; what comes by an ODoH proxy comes over HTTPS. */
const PROTOCOLS = { udp: 1, tcp: 2, dot: 3, doh: 4, odoh: 4, doq: 7 } as const satisfies Record<
  typeof PROTOCOL_NAMES[number],
  number
>;
/** Those of a `Policy`: what decided about a name. */
const PolicyField = { Type: 1, Rule: 2, Action: 3, Match: 4, Value: 5 } as const;
const Action = { NxDomain: 1, NoData: 2, LocalData: 6 } as const;
const MATCH_QNAME = 1;

const MS_PER_SECOND = 1_000;
const NS_PER_MS = 1_000_000;
const US_PER_MS = 1_000;
const IPV4_BYTES = 4;
const TC_BIT = 0x02;
const FLAGS_OFFSET = 2;
/** Where the header counts the records of the answer section; the others follow. */
const COUNTS_OFFSET = 6;

export interface DnstapOptions {
  /** Who says it: the node. */
  readonly identity: string;
  readonly version: string;
  /** Addresses are shortened: nothing of a client is told by options of the response either. */
  readonly isAnonymized: boolean;
}

/** Makes messages of dnstap of entries of the query log: a CLIENT_RESPONSE each. */
export class DnstapEncoder {
  readonly #options: DnstapOptions;
  readonly #walk = new SectionWalk();
  readonly #record = new RecordView();

  constructor(options: DnstapOptions) {
    this.#options = options;
  }

  /** `response` is what the record has of it. */
  encode(stored: StoredEntry, response: Uint8Array): Uint8Array<ArrayBuffer> {
    const { identity, version } = this.#options;
    const entry = showEntry(stored);
    const dnstap = new ProtobufWriter(1_024);
    dnstap.text(Field.Identity, identity);
    dnstap.text(Field.Version, version);
    dnstap.text(Field.Extra, extraOf(entry));
    dnstap.raw(Field.Message, this.#message(entry, stored, response));
    dnstap.integer(Field.Type, TYPE_MESSAGE);
    return dnstap.bytes;
  }

  #message(entry: ShownEntry, { timeMs, durationUs }: StoredEntry, response: Uint8Array) {
    const message = new ProtobufWriter(1_024);
    message.integer(MessageField.Type, CLIENT_RESPONSE);
    const parsed = entry.client === null ? null : parseIp(entry.client);
    if (parsed !== null) {
      const address = unmapIpv4(parsed);
      const family = address.length === IPV4_BYTES ? Family.Inet : Family.Inet6;
      message.integer(MessageField.Family, family);
      message.raw(MessageField.QueryAddress, address);
    }
    message.integer(MessageField.Protocol, PROTOCOLS[entry.protocol]);
    const query = splitTime(timeMs - durationUs / US_PER_MS);
    message.integer(MessageField.QuerySeconds, query.seconds);
    message.fixed32(MessageField.QueryNanoseconds, query.nanoseconds);
    const answered = splitTime(timeMs);
    message.integer(MessageField.ResponseSeconds, answered.seconds);
    message.fixed32(MessageField.ResponseNanoseconds, answered.nanoseconds);
    message.raw(MessageField.Response, this.#whole(response));
    if (entry.rule !== null) message.raw(MessageField.Policy, policyOf(entry, entry.rule));
    return message.bytes;
  }

  /**
   * The response as far as there are whole records of it, with TC where something is left out. One
   * that is anonymised has no additional records: options are among them.
   */
  #whole(response: Uint8Array): Uint8Array {
    const walk = this.#walk;
    if (!walk.start(response, response.length)) return questionOf(response);
    const counts = [0, 0, 0];
    let end = walk.offset;
    let step = walk.next(this.#record);
    while (
      step === Walk.Record &&
      !(this.#options.isAnonymized && walk.section === Section.Additional)
    ) {
      counts[walk.section]++;
      end = walk.offset;
      step = walk.next(this.#record);
    }
    const whole = response.slice(0, end);
    for (const [i, count] of counts.entries()) setU16(whole, COUNTS_OFFSET + 2 * i, count);
    if (step === Walk.Malformed) whole[FLAGS_OFFSET] |= TC_BIT;
    return whole;
  }
}

/** Header and question alone: what can be read as an entry has both. */
function questionOf(response: Uint8Array): Uint8Array {
  const end = skipQuestion(response, HEADER_BYTES, response.length);
  const question = response.slice(0, Math.max(HEADER_BYTES, end));
  question.fill(0, COUNTS_OFFSET, HEADER_BYTES);
  question[FLAGS_OFFSET] |= TC_BIT;
  return question;
}

function splitTime(ms: number): { seconds: number; nanoseconds: number } {
  const seconds = Math.floor(ms / MS_PER_SECOND);
  const nanoseconds = Math.round((ms - seconds * MS_PER_SECOND) * NS_PER_MS);
  return { seconds: Math.max(0, seconds), nanoseconds: Math.min(nanoseconds, 999_999_999) };
}

/** What an entry has and dnstap no field for, as JSON with the names of the API. */
function extraOf(entry: ShownEntry): string {
  const { outcome, client_name, client_id, group, list, upstream, cached } = entry;
  const { dnssec, dnssec_reason, duration_us } = entry;
  return JSON.stringify({
    ...{ outcome, client_name, client_id, group, list, upstream, cached },
    ...{ dnssec, dnssec_reason, duration_us },
  });
}

/** What was decided about the name, and by which rule. */
function policyOf({ outcome, rcode, answers, name, list }: ShownEntry, rule: string): Uint8Array {
  const policy = new ProtobufWriter();
  policy.text(PolicyField.Type, list ?? "rules");
  policy.text(PolicyField.Rule, rule);
  if (outcome === "blocked" || outcome === "rewritten") {
    const action = rcode === "NXDOMAIN"
      ? Action.NxDomain
      : answers.length === 0
      ? Action.NoData
      : Action.LocalData;
    policy.integer(PolicyField.Action, action);
  }
  policy.integer(PolicyField.Match, MATCH_QNAME);
  policy.text(PolicyField.Value, name);
  return policy.bytes;
}
