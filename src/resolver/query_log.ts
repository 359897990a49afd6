import {
  DROPPED_NOT_COUNTED,
  LOG_MESSAGE_BYTES_MAX,
  NO_ROOM,
  QueueWriter,
  RecordAt,
  RecordFlag,
  RecordLength,
  TEXT_SEPARATOR,
} from "../logqueue/mod.ts";
import { DEFAULT_GROUP, NO_CLIENT, NO_RULE, type Snapshot } from "../snapshot/mod.ts";
import { Outcome } from "./outcome.ts";
import type { Query } from "./query.ts";
import type { Reply } from "./reply.ts";

/** Texts of clients and of deciding rules that are kept ready; more begin anew. */
const TEXTS_MAX = 8_192;
const IPV4_BYTES = 4;
const TWO_TO_32 = 2 ** 32;
const DURATION_US_MAX = TWO_TO_32 - 1;

/** A text as it goes into a record: filled up to whole words. */
interface PackedText {
  readonly words: Uint32Array;
  readonly lengthBytes: number;
}

const NO_TEXT: PackedText = { words: new Uint32Array(0), lengthBytes: 0 };

/** Writes each answered query into the queue of the query log. Leaves no garbage. */
export class QueryLog {
  readonly #queue: QueueWriter;
  readonly #clients = new Map<number, PackedText>();
  readonly #rules = new Map<number, PackedText>();
  /** The snapshot that the texts are of. */
  #generation = -1;

  constructor(memory: SharedArrayBuffer) {
    this.#queue = new QueueWriter(memory);
  }

  /**
   * Notes a query and the response just written. `epochMs` is the time of the response. A full queue
   * counts a drop.
   */
  note(query: Query, reply: Reply, snapshot: Snapshot, epochMs: number, durationMs: number): void {
    if (snapshot.generation !== this.#generation) this.#forget(snapshot.generation);
    // Numbers of a snapshot that is gone mean nothing in this one.
    const isCurrent = query.generation === snapshot.generation;
    const { address, clientId } = query;
    const client = isCurrent ? query.client : clientNow(query, snapshot);
    const group = snapshot.groupOf(client);
    const isLogged = snapshot.logs(group);
    const isCounted = snapshot.counts(group);
    if (!isLogged && !isCounted) return;
    const queue = this.#queue;
    if (!queue.admits()) {
      queue.drop(isCounted ? query.outcome : DROPPED_NOT_COUNTED);
      return;
    }
    const clientText = this.#clientText(client, snapshot);
    const rule = isCurrent ? query.rule : NO_RULE;
    const ruleText = rule === NO_RULE ? NO_TEXT : this.#ruleText(rule, snapshot);
    const messageBytes = Math.min(reply.length, LOG_MESSAGE_BYTES_MAX);
    const messageWords = (messageBytes + 3) >>> 2;
    const idBytes = clientId === null ? 0 : Math.min(clientId.length, RecordLength.ClientId);
    const { dnssecReason } = query;
    const reasonText = dnssecReason === "" ? NO_TEXT : pack(dnssecReason);
    const total = RecordAt.End + messageWords + clientText.words.length + ruleText.words.length +
      ((idBytes + 3) >>> 2) + reasonText.words.length;

    const at = queue.begin(total * 4);
    if (at === NO_ROOM) {
      queue.drop(isCounted ? query.outcome : DROPPED_NOT_COUNTED);
      return;
    }
    const { words } = queue;
    words[at + RecordAt.TimeLow] = epochMs % TWO_TO_32;
    words[at + RecordAt.TimeHigh] = epochMs / TWO_TO_32;
    words[at + RecordAt.Duration] = Math.min(Math.max(durationMs * 1_000, 0), DURATION_US_MAX);
    const flags = (query.source === Outcome.Cached ? RecordFlag.Cached : 0) |
      (query.dnssec << RecordFlag.DnssecShift) | (isLogged ? 0 : RecordFlag.NotLogged) |
      (isCounted ? 0 : RecordFlag.NotCounted);
    const { bytes: from, offset, lengthBytes } = address;
    words[at + RecordAt.What] = query.outcome | (query.transport << 8) | (flags << 16) |
      (lengthBytes << 24);
    words[at + RecordAt.Upstream] = query.upstream + 1;
    words[at + RecordAt.Lengths] = messageBytes | (clientText.lengthBytes << 16);
    words[at + RecordAt.MoreLengths] = ruleText.lengthBytes | (idBytes << 16);
    words[at + RecordAt.Reason] = reasonText.lengthBytes;
    for (let i = 0; i < lengthBytes / IPV4_BYTES; i++) {
      words[at + RecordAt.Address + i] = word(from, offset + i * 4);
    }

    let to = at + RecordAt.End;
    const source = reply.words;
    const start = reply.offset >>> 2;
    for (let i = 0; i < messageWords; i++) words[to + i] = source[start + i];
    to += messageWords;
    for (let i = 0; i < clientText.words.length; i++) words[to + i] = clientText.words[i];
    to += clientText.words.length;
    for (let i = 0; i < ruleText.words.length; i++) words[to + i] = ruleText.words[i];
    to += ruleText.words.length;
    if (clientId !== null) { for (let i = 0; i < idBytes; i += 4) words[to++] = word(clientId, i); }
    for (let i = 0; i < reasonText.words.length; i++) words[to + i] = reasonText.words[i];
    queue.commit(total * 4);
  }

  #forget(generation: number): void {
    this.#generation = generation;
    this.#clients.clear();
    this.#rules.clear();
  }

  #clientText(client: number, snapshot: Snapshot): PackedText {
    const known = this.#clients.get(client);
    if (known !== undefined) return known;
    const isKnown = client !== NO_CLIENT;
    const group = snapshot.group(isKnown ? snapshot.groupOf(client) : DEFAULT_GROUP).id;
    const name = isKnown ? snapshot.client(client).name : "";
    return keep(this.#clients, client, `${group}${TEXT_SEPARATOR}${name}`);
  }

  #ruleText(rule: number, snapshot: Snapshot): PackedText {
    const known = this.#rules.get(rule);
    if (known !== undefined) return known;
    const decided = snapshot.decidedBy(rule);
    return keep(this.#rules, rule, `${decided.list.id}${TEXT_SEPARATOR}${decided.rule}`);
  }
}

/** Says whether something may be told of a query with its name. */
export function mayTell(query: Query, snapshot: Snapshot): boolean {
  const isCurrent = query.generation === snapshot.generation;
  return snapshot.logs(snapshot.groupOf(isCurrent ? query.client : clientNow(query, snapshot)));
}

/** The client of a query by another snapshot than it was decided by. */
function clientNow({ address, clientId }: Query, snapshot: Snapshot): number {
  const { bytes, offset, lengthBytes } = address;
  const named = clientId === null ? NO_CLIENT : snapshot.clientWithId(clientId, 0, clientId.length);
  if (named !== NO_CLIENT || lengthBytes === 0) return named;
  return snapshot.clientAt(bytes, offset, lengthBytes);
}

function keep(texts: Map<number, PackedText>, key: number, text: string): PackedText {
  if (texts.size >= TEXTS_MAX) texts.clear();
  const packed = pack(text);
  texts.set(key, packed);
  return packed;
}

/** As much of a text as a record takes, cut between two characters. */
function pack(text: string): PackedText {
  const bytes = new Uint8Array(RecordLength.Text);
  const { written } = new TextEncoder().encodeInto(text, bytes);
  return { words: new Uint32Array(bytes.buffer, 0, (written + 3) >>> 2), lengthBytes: written };
}

/** Four bytes in the machine's order, zeros behind the end. */
function word(bytes: Uint8Array, at: number): number {
  return LITTLE_ENDIAN
    ? bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)
    : (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
}

const LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
