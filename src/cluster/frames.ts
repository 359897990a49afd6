/**
 * What members say to each other, as bytes: a byte for the form, one for the kind, then its fields.
 * Every length is bounded; whatever is not of this form is a `WireError`, which the receiver counts.
 */
import { ERROR_CODES, type ErrorCode } from "../errors.ts";
import {
  type Configuration,
  ENTRY_BYTES_MAX,
  ID_LENGTH_MAX,
  type Message,
  readConfiguration,
  readMessage,
  WireError,
  WireReader,
  WireWriter,
  writeConfiguration,
  writeMessage,
} from "../raft/mod.ts";
import { STATE_PART_BYTES_MAX } from "../store/mod.ts";
import { CLUSTER_ID_BYTES_MAX, MESSAGE_BYTES_MAX, NODE_BYTES_MAX, PARTS_MAX } from "./limits.ts";

const FORM = 1;
const ID_BYTES_MAX = 3 * ID_LENGTH_MAX;

/** As the cluster report has them. */
export const MEMBER_STATES = [
  "leader",
  "follower",
  "learner",
  "candidate",
  "unknown",
  "stopped",
] as const;
export type MemberState = typeof MEMBER_STATES[number];

/** What a member tells of itself every few seconds, and when it changes. */
export interface Status {
  readonly cluster: string;
  readonly id: string;
  readonly state: MemberState;
  readonly term: number;
  /** The leader's ID, or `null`. */
  readonly leader: string | null;
  /** Who belongs to its cluster, as far as it knows, and since which entry. */
  readonly configuration: Configuration;
  readonly configurationIndex: number;
}

export type Frame =
  | { readonly type: "raft"; readonly cluster: string; readonly message: Message }
  | { readonly type: "status"; readonly status: Status }
  /** An entry that the leader is to append. */
  | {
    readonly type: "propose";
    readonly cluster: string;
    readonly number: number;
    readonly data: Uint8Array;
  }
  /** A member that the leader is to remove. */
  | {
    readonly type: "remove";
    readonly cluster: string;
    readonly number: number;
    readonly node: string;
  }
  | { readonly type: "answer"; readonly number: number; readonly outcome: Outcome }
  /** A part of a Raft snapshot; the first brings the message that it belongs to. */
  | {
    readonly type: "part";
    readonly transfer: number;
    readonly place: number;
    readonly isLast: boolean;
    readonly head: { readonly cluster: string; readonly message: Message } | null;
    readonly bytes: Uint8Array;
  }
  | {
    readonly type: "partAnswer";
    readonly transfer: number;
    /** The place that is wanted next. */
    readonly next: number;
    readonly isRefused: boolean;
  };

/** What a leader made of a request. `notLeader`: ask another one. `retry`: ask again in a moment. */
export type Outcome =
  | { readonly kind: "taken" }
  | { readonly kind: "notLeader" }
  | { readonly kind: "retry"; readonly message: string }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string };

const KINDS = ["raft", "status", "propose", "remove", "answer", "part", "partAnswer"] as const;
const OUTCOMES = ["taken", "notLeader", "retry", "refused"] as const;

export function encodeFrame(frame: Frame): Uint8Array {
  const w = new WireWriter();
  w.u8(FORM);
  w.u8(KINDS.indexOf(frame.type));
  switch (frame.type) {
    case "raft":
      w.text(frame.cluster);
      writeMessage(w, frame.message);
      break;
    case "status":
      writeStatus(w, frame.status);
      break;
    case "propose":
      w.text(frame.cluster);
      w.u32(frame.number);
      w.rest(frame.data);
      break;
    case "remove":
      w.text(frame.cluster);
      w.u32(frame.number);
      w.text(frame.node);
      break;
    case "answer":
      w.u32(frame.number);
      writeOutcome(w, frame.outcome);
      break;
    case "part":
      w.u32(frame.transfer);
      w.u32(frame.place);
      w.flag(frame.isLast);
      w.flag(frame.head !== null);
      if (frame.head !== null) {
        w.text(frame.head.cluster);
        writeMessage(w, frame.head.message);
      }
      w.rest(frame.bytes);
      break;
    case "partAnswer":
      w.u32(frame.transfer);
      w.u32(frame.next);
      w.flag(frame.isRefused);
  }
  return w.finish();
}

/** @throws {WireError} If the bytes are no frame. */
export function decodeFrame(bytes: Uint8Array): Frame {
  const r = new WireReader(bytes);
  const form = r.u8();
  if (form !== FORM) throw new WireError(`a frame of form ${form} is of another version`);
  const kind = r.u8();
  if (kind >= KINDS.length) throw new WireError(`there is no frame ${kind}`);
  const frame = readFrame(r, KINDS[kind]);
  r.end();
  return frame;
}

function readFrame(r: WireReader, type: Frame["type"]): Frame {
  switch (type) {
    case "raft":
      return { type, cluster: r.text(CLUSTER_ID_BYTES_MAX), message: readMessage(r) };
    case "status":
      return { type, status: readStatus(r) };
    case "propose": {
      const [cluster, number] = [r.text(CLUSTER_ID_BYTES_MAX), r.u32()];
      return { type, cluster, number, data: r.rest(ENTRY_BYTES_MAX) };
    }
    case "remove": {
      const [cluster, number] = [r.text(CLUSTER_ID_BYTES_MAX), r.u32()];
      return { type, cluster, number, node: r.text(NODE_BYTES_MAX) };
    }
    case "answer":
      return { type, number: r.u32(), outcome: readOutcome(r) };
    case "part":
      return readPart(r);
    case "partAnswer":
      return { type, transfer: r.u32(), next: r.u32(), isRefused: r.flag() };
  }
}

function readPart(r: WireReader): Frame {
  const [transfer, place, isLast] = [r.u32(), r.u32(), r.flag()];
  if (place >= PARTS_MAX) throw new WireError(`part ${place} is too many`);
  const head = r.flag() ? { cluster: r.text(CLUSTER_ID_BYTES_MAX), message: readMessage(r) } : null;
  if ((head === null) !== (place > 0)) throw new WireError("a part has no place");
  return { type: "part", transfer, place, isLast, head, bytes: r.rest(STATE_PART_BYTES_MAX) };
}

function writeStatus(w: WireWriter, status: Status): void {
  w.text(status.cluster);
  w.text(status.id);
  w.u8(MEMBER_STATES.indexOf(status.state));
  w.integer(status.term);
  w.text(status.leader ?? "");
  writeConfiguration(w, status.configuration);
  w.integer(status.configurationIndex);
}

function readStatus(r: WireReader): Status {
  const [cluster, id, state] = [r.text(CLUSTER_ID_BYTES_MAX), r.text(ID_BYTES_MAX), r.u8()];
  if (state >= MEMBER_STATES.length) throw new WireError(`there is no state ${state}`);
  const [term, leader] = [r.integer(), r.text(ID_BYTES_MAX)];
  return {
    cluster,
    id,
    state: MEMBER_STATES[state],
    term,
    leader: leader === "" ? null : leader,
    configuration: readConfiguration(r),
    configurationIndex: r.integer(),
  };
}

function writeOutcome(w: WireWriter, outcome: Outcome): void {
  w.u8(OUTCOMES.indexOf(outcome.kind));
  if (outcome.kind === "refused") w.u8(ERROR_CODES.indexOf(outcome.code));
  if (outcome.kind === "refused" || outcome.kind === "retry") {
    w.text(outcome.message.slice(0, 1_000));
  }
}

function readOutcome(r: WireReader): Outcome {
  const number = r.u8();
  if (number >= OUTCOMES.length) throw new WireError(`there is no outcome ${number}`);
  const kind = OUTCOMES[number];
  if (kind === "retry") return { kind, message: r.text(MESSAGE_BYTES_MAX) };
  if (kind !== "refused") return { kind };
  const code = r.u8();
  if (code >= ERROR_CODES.length) throw new WireError(`there is no code ${code}`);
  return { kind, code: ERROR_CODES[code], message: r.text(MESSAGE_BYTES_MAX) };
}

/** The node's name of a member's ID. */
export function nodeOf(id: string): string {
  const dot = id.indexOf(".");
  return dot < 0 ? id : id.slice(0, dot);
}
