/**
 * Messages and what is stored, as bytes. Whether what they say could be so is `isPlausible`'s
 * question; here every length and count is bounded, and all else is a `WireError`.
 */
import { type Configuration, isWellFormed } from "./configuration.ts";
import { APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX, ID_LENGTH_MAX, MEMBERS_MAX } from "./limits.ts";
import type { Body, Entry, HardState, LogEnd, Message, RaftSnapshot } from "./messages.ts";
import { WireError, type WireReader, type WireWriter } from "./wire.ts";

/** Most UTF-8 bytes of an ID. */
const ID_BYTES_MAX = 3 * ID_LENGTH_MAX;

/** By their number on the wire. */
const TYPES = [
  "requestVote",
  "preVote",
  "requestVoteResponse",
  "preVoteResponse",
  "appendEntries",
  "appendEntriesResponse",
  "installSnapshot",
  "timeoutNow",
  "offerLog",
  "fetchEntries",
  "fetchedEntries",
  "fetchedSnapshot",
] as const satisfies readonly Body["type"][];

const ENTRY_TYPES = ["command", "configuration", "empty"] as const satisfies readonly Entry[
  "type"
][];

export function writeMessage(w: WireWriter, message: Message): void {
  w.u8(TYPES.indexOf(message.type));
  w.text(message.from);
  w.text(message.to);
  w.integer(message.term);
  writeBody(w, message);
}

/** @throws {WireError} */
export function readMessage(r: WireReader): Message {
  const number = r.u8();
  if (number >= TYPES.length) throw new WireError(`there is no message ${number}`);
  const [from, to, term] = [r.text(ID_BYTES_MAX), r.text(ID_BYTES_MAX), r.integer()];
  return { ...readBody(r, TYPES[number], term), from, to };
}

function writeBody(w: WireWriter, body: Body): void {
  switch (body.type) {
    case "requestVote":
    case "preVote":
      writeEnd(w, body);
      return w.flag(body.isTransfer);
    case "requestVoteResponse":
    case "preVoteResponse":
      return w.flag(body.voteGranted);
    case "appendEntries":
      w.integer(body.prevLogIndex);
      w.integer(body.prevLogTerm);
      w.integer(body.leaderCommit);
      w.integer(body.round);
      return writeEntries(w, body.entries);
    case "appendEntriesResponse":
      w.flag(body.success);
      w.integer(body.matchIndex);
      w.integer(body.rejectedIndex);
      w.integer(body.hintIndex);
      w.integer(body.hintTerm);
      return w.integer(body.round);
    case "installSnapshot":
      return writeSnapshot(w, body.snapshot);
    case "timeoutNow":
      return;
    case "offerLog":
      return writeEnd(w, body);
    case "fetchEntries":
      w.integer(body.index);
      return w.integer(body.indexTerm);
    case "fetchedEntries":
      writeEnd(w, body);
      w.integer(body.prevLogIndex);
      w.integer(body.prevLogTerm);
      return writeEntries(w, body.entries);
    case "fetchedSnapshot":
      writeEnd(w, body);
      return writeSnapshot(w, body.snapshot);
  }
}

function readBody(r: WireReader, type: Body["type"], term: number): Body {
  switch (type) {
    case "requestVote":
    case "preVote":
      return { type, term, ...readEnd(r), isTransfer: r.flag() };
    case "requestVoteResponse":
    case "preVoteResponse":
      return { type, term, voteGranted: r.flag() };
    case "appendEntries": {
      const [prevLogIndex, prevLogTerm] = [r.integer(), r.integer()];
      const [leaderCommit, round] = [r.integer(), r.integer()];
      const entries = readEntries(r, APPEND_ENTRIES_MAX);
      return { type, term, prevLogIndex, prevLogTerm, entries, leaderCommit, round };
    }
    case "appendEntriesResponse":
      return {
        type,
        term,
        success: r.flag(),
        matchIndex: r.integer(),
        rejectedIndex: r.integer(),
        hintIndex: r.integer(),
        hintTerm: r.integer(),
        round: r.integer(),
      };
    case "installSnapshot":
      return { type, term, snapshot: readSnapshot(r) };
    case "timeoutNow":
      return { type, term };
    case "offerLog":
      return { type, term, ...readEnd(r) };
    case "fetchEntries":
      return { type, term, index: r.integer(), indexTerm: r.integer() };
    case "fetchedEntries": {
      const end = readEnd(r);
      const [prevLogIndex, prevLogTerm] = [r.integer(), r.integer()];
      const entries = readEntries(r, APPEND_ENTRIES_MAX);
      return { type, term, ...end, prevLogIndex, prevLogTerm, entries };
    }
    case "fetchedSnapshot":
      return { type, term, ...readEnd(r), snapshot: readSnapshot(r) };
  }
}

function writeEnd(w: WireWriter, { lastLogIndex, lastLogTerm }: LogEnd): void {
  w.integer(lastLogIndex);
  w.integer(lastLogTerm);
}

function readEnd(r: WireReader): LogEnd {
  return { lastLogIndex: r.integer(), lastLogTerm: r.integer() };
}

/** Entries follow one another, so that the first one's index is enough. */
export function writeEntries(w: WireWriter, entries: readonly Entry[]): void {
  w.integer(entries.at(0)?.index ?? 0);
  w.list(entries, (entry) => {
    w.u8(ENTRY_TYPES.indexOf(entry.type));
    w.integer(entry.term);
    if (entry.type === "command") w.bytes(entry.data);
    else if (entry.type === "configuration") writeConfiguration(w, entry.configuration);
  });
}

/** @throws {WireError} */
export function readEntries(r: WireReader, countMax: number): Entry[] {
  let index = r.integer();
  return r.list(countMax, () => {
    const number = r.u8();
    if (number >= ENTRY_TYPES.length) throw new WireError(`there is no entry ${number}`);
    const [type, at] = [ENTRY_TYPES[number], { index: index++, term: r.integer() }];
    if (type === "command") return { ...at, type, data: r.bytes(ENTRY_BYTES_MAX) };
    if (type === "configuration") return { ...at, type, configuration: readConfiguration(r) };
    return { ...at, type };
  });
}

export function writeConfiguration(w: WireWriter, configuration: Configuration): void {
  const { voters, outgoing, learners, witnesses } = configuration;
  for (const ids of [voters, outgoing, learners, witnesses]) w.list(ids, (id) => w.text(id));
}

/** @throws {WireError} */
export function readConfiguration(r: WireReader): Configuration {
  const ids = () => r.list(MEMBERS_MAX, () => r.text(ID_BYTES_MAX));
  const configuration = { voters: ids(), outgoing: ids(), learners: ids(), witnesses: ids() };
  if (!isWellFormed(configuration)) throw new WireError("a configuration is malformed");
  return configuration;
}

export function writeSnapshot(w: WireWriter, { index, term, configuration }: RaftSnapshot): void {
  w.integer(index);
  w.integer(term);
  writeConfiguration(w, configuration);
}

/** @throws {WireError} */
export function readSnapshot(r: WireReader): RaftSnapshot {
  return { index: r.integer(), term: r.integer(), configuration: readConfiguration(r) };
}

export function writeHardState(w: WireWriter, hardState: HardState): void {
  const { currentTerm, votedFor, damagedTerm } = hardState;
  w.integer(currentTerm);
  w.text(votedFor ?? "");
  w.integer(damagedTerm);
}

/** @throws {WireError} */
export function readHardState(r: WireReader): HardState {
  const [currentTerm, votedFor] = [r.integer(), r.text(ID_BYTES_MAX)];
  return { currentTerm, votedFor: votedFor === "" ? null : votedFor, damagedTerm: r.integer() };
}
