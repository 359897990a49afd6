import { getU16 } from "../../bytes/mod.ts";
import { HEADER_BYTES, OPT_BYTES } from "../../dns/mod.ts";
import { type Query, QUESTION_BYTES_MAX } from "../query.ts";
import type { Sending } from "./ports.ts";
import { COOKIE_BYTES_MAX, type Fit } from "./response.ts";
import type { Server } from "./server.ts";

/** Block size of padded queries (RFC 8467 §4.1). */
export const QUERY_BLOCK_BYTES = 128;
/** Bytes of an option without data. */
export const OPTION_BYTES = 4;
/** Bytes of a client subnet: family, two lengths, and a whole address at most (RFC 7871 §6). */
const SUBNET_BYTES_MAX = 20;
/** Room for a query as it is sent, its padding included. */
const SENT_BYTES_MAX = QUERY_BLOCK_BYTES *
  Math.ceil(
    (QUESTION_BYTES_MAX + OPT_BYTES + 3 * OPTION_BYTES + COOKIE_BYTES_MAX + SUBNET_BYTES_MAX) /
      QUERY_BLOCK_BYTES,
  );

/** Whoever asks, and is told what comes of it. It may release the ask in any of these calls. */
export interface AskOwner<S extends Server = Server> {
  /** Those on their way; the asker's to change. */
  readonly asks: Ask<S>[];
  /** The query goes out: for the first time, over TCP, or without EDNS. */
  onSending(ask: Ask<S>): void;
  /**
   * It is to be sent once more, over TCP or without EDNS. False: it may not be, and the owner has
   * released it.
   */
  maySendAgain(ask: Ask<S>): boolean;
  /** The server has said something that is to be trusted, whatever that is. */
  onHeard(ask: Ask<S>): void;
  /**
   * What it said, which `Asker.response` speaks of until this returns: `Response`, `Failure`, or
   * `Broken`. The ask is the owner's to release.
   */
  onResponse(ask: Ask<S>, fit: Fit): void;
  /** It had a malformed answer over UDP; a true one may follow. Told once. */
  onDoubt(ask: Ask<S>): void;
  /** Nothing will come: it was not sent, or its way was closed. It has been released. */
  onClosed(ask: Ask<S>, sending: Sending, reason: string): void;
}

/** One question to one server. Used again once it is released. */
export class Ask<S extends Server = Server> {
  /** `null`: nothing is wanted for it any more. */
  owner: AskOwner | null = null;
  /** What is asked; its owner's, who keeps it as it is. */
  query: Query | null = null;
  /** Query as sent: its ID and the case of its letters are part of the secret. */
  readonly packet: Uint8Array<ArrayBuffer> = new Uint8Array(SENT_BYTES_MAX);
  length = 0;
  /** Where the question ends in `packet`. */
  questionEnd = 0;
  sentAtMs = 0;
  /** It went out with an OPT record. */
  hasEdns = false;
  /** It went out without, to find out whether that is why its server is silent. */
  triesPlain = false;
  /** Data of the client subnet option in it; `null`: there is none. */
  subnet: Uint8Array | null = null;
  /** It goes over a stream, where nobody can forge an answer from afar, and none is cut. */
  overStream = false;
  /** It goes over TCP, in place of UDP. */
  overTcp = false;
  mismatches = 0;
  /** Its owner has counted it as failed; a late answer is still good. */
  failed = false;
  /** It had a malformed answer over UDP. */
  isDoubted = false;
  /** Its owner has the server asked over TCP beside it. */
  hasBeside = false;

  constructor(readonly token: number, public server: S) {}

  /** Says whether a query is the very one that was sent, its ID and case included. */
  isWhatWasSent({ id, packet, qname, qnameLength }: Query): boolean {
    if (this.questionEnd !== HEADER_BYTES + qnameLength + 4) return false;
    if (id !== getU16(this.packet, 0)) return false;
    for (let i = 0; i < qnameLength; i++) {
      if (packet[qname + i] !== this.packet[HEADER_BYTES + i]) return false;
    }
    return true;
  }
}
