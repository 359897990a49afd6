import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import type { Message } from "../raft/mod.ts";
import type { Spool } from "../store/mod.ts";
import type { Frame } from "./frames.ts";
import { nodeOf } from "./frames.ts";
import {
  FAILURE_SHOWN_TICKS,
  PART_RETRY_TICKS,
  PARTS_IN_FLIGHT,
  REFUSED_TICKS,
  TRANSFER_TICKS_MAX,
} from "./limits.ts";

type PartFrame = Extract<Frame, { type: "part" }>;
type PartAnswer = Extract<Frame, { type: "partAnswer" }>;
type Send = (to: string, frame: Frame) => boolean;

interface Outgoing {
  readonly transfer: number;
  readonly member: string;
  readonly parts: Iterator<Uint8Array>;
  readonly head: { readonly cluster: string; readonly message: Message };
  /** Sent and not answered, from place `first` on. */
  readonly unanswered: PartFrame[];
  first: number;
  /** The next of `unanswered` to be sent. */
  cursor: number;
  hasAll: boolean;
  silentTicks: number;
  /** The member refused it: nothing is sent until this has passed. */
  restTicks: number;
}

/** Sends whole states to members, a few parts at a time: each is made when there is room for it. */
export class SnapshotSender {
  readonly #send: Send;
  readonly #drawNumber: () => number;
  readonly #failed: (member: string) => void;
  /** By node: a newer one takes the place of the one before. */
  readonly #outgoing = new Map<string, Outgoing>();
  /** States that arrived. */
  count = 0;

  /** `failed` is told of a member that a state did not get through to. */
  constructor(send: Send, drawNumber: () => number, failed: (member: string) => void) {
    this.#send = send;
    this.#drawNumber = drawNumber;
    this.#failed = failed;
  }

  start(cluster: string, message: Message, parts: Iterable<Uint8Array>): void {
    const node = nodeOf(message.to);
    const outgoing: Outgoing = {
      transfer: this.#drawNumber() >>> 0,
      member: message.to,
      parts: parts[Symbol.iterator](),
      head: { cluster, message },
      unanswered: [],
      ...{ first: 0, cursor: 0, hasAll: false, silentTicks: 0, restTicks: 0 },
    };
    this.#outgoing.set(node, outgoing);
    this.#pump(node, outgoing);
  }

  #pump(node: string, outgoing: Outgoing): void {
    const { unanswered } = outgoing;
    while (unanswered.length < PARTS_IN_FLIGHT && !outgoing.hasAll) {
      unanswered.push(this.#nextPart(outgoing));
    }
    for (; outgoing.cursor < unanswered.length; outgoing.cursor++) {
      if (!this.#send(node, unanswered[outgoing.cursor])) return; // Again after a while.
    }
  }

  /** An empty part comes last, so that none has to be looked at ahead. */
  #nextPart(outgoing: Outgoing): PartFrame {
    const { transfer, parts, head, first, unanswered } = outgoing;
    const { done, value } = parts.next();
    const place = first + unanswered.length;
    outgoing.hasAll = done === true;
    const bytes = done === true ? new Uint8Array(0) : value;
    const isLast = outgoing.hasAll;
    return { type: "part", transfer, place, isLast, head: place === 0 ? head : null, bytes };
  }

  onAnswer(node: string, { transfer, next, isRefused }: PartAnswer): void {
    const outgoing = this.#outgoing.get(node);
    if (outgoing === undefined || outgoing.transfer !== transfer || outgoing.restTicks > 0) return;
    if (isRefused) {
      // Its disk is full, say: another one at once would come to the same, and cost as much.
      outgoing.restTicks = REFUSED_TICKS;
      return;
    }
    const { unanswered, first } = outgoing;
    const answered = next - first;
    if (answered < 0 || answered > unanswered.length) return;
    outgoing.silentTicks = 0;
    if (answered === 0) return; // It is at work.
    unanswered.splice(0, answered);
    outgoing.first = next;
    outgoing.cursor = Math.max(0, outgoing.cursor - answered);
    if (unanswered.length === 0 && outgoing.hasAll) {
      this.#outgoing.delete(node);
      this.count++;
      return;
    }
    this.#pump(node, outgoing);
  }

  onDisconnected(node: string): void {
    const outgoing = this.#outgoing.get(node);
    if (outgoing !== undefined) this.#end(node, outgoing);
  }

  tick(): void {
    for (const [node, outgoing] of this.#outgoing) {
      if (outgoing.restTicks > 0) {
        if (--outgoing.restTicks === 0) this.#end(node, outgoing);
        continue;
      }
      outgoing.silentTicks++;
      if (outgoing.silentTicks >= TRANSFER_TICKS_MAX) this.#end(node, outgoing);
      else if (outgoing.silentTicks % PART_RETRY_TICKS === 0) {
        outgoing.cursor = 0;
        this.#pump(node, outgoing);
      }
    }
  }

  /** Whether a state is on its way to a node, which has not refused it. */
  isSending(node: string): boolean {
    return this.#outgoing.get(node)?.restTicks === 0;
  }

  /** Of a member that leads no more, or is another by now. */
  clear(): void {
    this.#outgoing.clear();
  }

  #end(node: string, outgoing: Outgoing): void {
    this.#outgoing.delete(node);
    this.#failed(outgoing.member);
  }
}

interface Incoming {
  readonly from: string;
  readonly transfer: number;
  readonly head: NonNullable<PartFrame["head"]>;
  readonly spool: Spool;
  next: number;
  silentTicks: number;
  /** It has all of it, and consensus decides. */
  isWhole: boolean;
}

/** Takes a state's parts in their order and keeps them on the disk: one state at a time. */
export class SnapshotReceiver {
  readonly #open: () => Promise<Spool>;
  readonly #send: Send;
  readonly #arrived: (
    head: Incoming["head"],
    spool: Spool,
    after: (isTaken: boolean) => void,
  ) => void;
  #incoming: Incoming | null = null;
  /** Why the last one was not taken over, as long as that tells of the moment. */
  #failure: { readonly reason: string; ticksLeft: number } | null = null;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  constructor(
    open: () => Promise<Spool>,
    send: Send,
    arrived: (head: Incoming["head"], spool: Spool, after: (isTaken: boolean) => void) => void,
  ) {
    this.#open = open;
    this.#send = send;
    this.#arrived = arrived;
  }

  onPart(from: string, part: PartFrame): void {
    if (this.#waiting > 2 * PARTS_IN_FLIGHT) return; // It is sent once more.
    this.#waiting++;
    this.#last = this.#last.then(() => this.#take(from, part)).catch((error) => {
      const reason = messageOf(error);
      if (this.#failure === null) log.warn("a configuration can't be taken over", { from, reason });
      this.#failure = { reason, ticksLeft: FAILURE_SHOWN_TICKS };
      this.#answer(from, part.transfer, 0, true);
      return this.#drop();
    }).finally(() => void this.#waiting--);
  }

  /** Resolves once no part is on its way to the disk. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** Whether a part is on its way to the disk. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  /** What keeps the cluster's configuration from being taken over, in words. */
  get problems(): string[] {
    if (this.#failure === null) return [];
    const { reason } = this.#failure;
    return [`cluster: its configuration can't be taken over: ${reason}; it is tried again`];
  }

  tick(): void {
    if (this.#failure !== null && --this.#failure.ticksLeft === 0) this.#failure = null;
    const incoming = this.#incoming;
    if (incoming === null || incoming.isWhole) return;
    if (++incoming.silentTicks < TRANSFER_TICKS_MAX) return;
    this.#last = this.#last.then(() => this.#drop());
  }

  async #take(from: string, part: PartFrame): Promise<void> {
    const { transfer, place, head, isLast, bytes } = part;
    const current = this.#incoming;
    if (current?.from !== from || current.transfer !== transfer) {
      if (head === null || current?.isWhole === true) return;
      await this.#drop();
      const spool = await this.#open();
      this.#incoming = { from, transfer, head, spool, next: 0, silentTicks: 0, isWhole: false };
    }
    const incoming = this.#incoming;
    if (incoming === null || incoming.transfer !== transfer) return;
    // Before the last part is answered, the state is taken over, however long that takes.
    if (incoming.isWhole) return this.#answer(from, transfer, incoming.next - 1, false);
    incoming.silentTicks = 0;
    if (place === incoming.next) {
      if (!isLast) await incoming.spool.append(bytes);
      incoming.next++;
      if (isLast) return this.#finish(incoming, incoming.spool);
    }
    this.#answer(from, transfer, incoming.next, false);
  }

  /** The last part is answered once the state was taken over. */
  #finish(incoming: Incoming, spool: Spool): void {
    incoming.isWhole = true;
    const { from, transfer, head, next } = incoming;
    this.#arrived(head, spool, (isTaken) => {
      if (isTaken) this.#failure = null;
      this.#answer(from, transfer, next, !isTaken);
      this.#last = this.#last.then(() => this.#drop());
    });
  }

  #answer(to: string, transfer: number, next: number, isRefused: boolean): void {
    this.#send(to, { type: "partAnswer", transfer, next, isRefused });
  }

  async #drop(): Promise<void> {
    const incoming = this.#incoming;
    this.#incoming = null;
    await incoming?.spool.close();
  }
}
