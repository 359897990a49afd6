import { messageOf } from "../../errors.ts";
import type { Greeting } from "../ports.ts";
import { Connection } from "./connection.ts";
import { dial, type Peer } from "./dial.ts";
import { decodeGreeting, encodeGreeting, isSameGreeting, type Purpose } from "./greeting.ts";
import type { Identity } from "./identity.ts";
import type { ChannelLimits } from "./limits.ts";
import { MessageType } from "./messages.ts";

/** What a connection to a member is made with. */
export interface Own {
  readonly limits: ChannelLimits;
  /** As they are at the moment. */
  identity(): Identity;
  greeting(): Greeting;
  /** From 0 to below 1. */
  chance(): number;
}

/** Who is told of a connection to a member. */
export interface OutgoingHandler {
  /** The member is greeted and has greeted; or greets anew on the same connection. */
  onGreeting(greeting: Greeting, isFirst: boolean): void;
  /** It speaks another form of the channel. */
  onIncompatible(reason: string): void;
  /** A connection that was greeted has ended. */
  onEnd(reason: string): void;
}

const REFUSED: Readonly<Record<string, string>> = {
  unknown: "does not know this member: it stands in no [[cluster.member]] of its configuration",
  taken: "is connected to this member at its own address: two nodes have one name and certificate",
};

/** What makes and follows one connection. */
interface Following {
  /** Both sides have greeted. What comes behind the greeting may come at once. */
  readonly onGreeted: (connection: Connection, greeting: Greeting) => void;
  readonly onMessage: (type: MessageType, payload: Uint8Array) => boolean;
  readonly takes: (type: number) => boolean;
  readonly onEnd: (reason: string) => void;
  readonly onIncompatible: (reason: string) => void;
}

/**
 * Connects and greets; the connection on which both sides have.
 *
 * @throws {Error} Whose message stands behind the member's name.
 */
async function greet(
  peer: Peer,
  own: Own,
  purpose: Purpose,
  following: Following,
  signal: AbortSignal,
): Promise<Connection> {
  const socket = await dial(peer, own.identity(), own.limits, signal);
  const { promise, resolve, reject } = Promise.withResolvers<Connection>();
  const said = own.greeting();
  let isGreeted = false;
  const connection: Connection = new Connection(socket, own.limits, {
    takes: (type) =>
      type === MessageType.Greeting || (isGreeted ? following.takes(type) : isFirst(type)),
    onMessage(type, payload) {
      if (type === MessageType.Refusal) {
        const reason = new TextDecoder().decode(payload);
        connection.end(REFUSED[reason] ?? "refuses this member");
        return false;
      }
      if (isGreeted) return following.onMessage(type, payload);
      const read = decodeGreeting(payload);
      if (read.kind === "incompatible") {
        following.onIncompatible(read.reason);
        connection.end(read.reason);
        return false;
      }
      isGreeted = true;
      const now = own.greeting();
      // Before anything else: frames count as sent after what was said on their connection.
      if (purpose === "frames" && !isSameGreeting(said, now)) {
        connection.send(MessageType.Greeting, encodeGreeting(now, purpose));
      }
      following.onGreeted(connection, read.greeting);
      resolve(connection);
      return true;
    },
    onEnd(reason) {
      if (isGreeted) following.onEnd(reason);
      else reject(new Error(reason));
    },
  });
  const stop = () => connection.end("is not asked any more");
  signal.addEventListener("abort", stop, { once: true });
  const timer = setTimeout(() => connection.end("does not greet"), own.limits.handshakeMs);
  connection.send(MessageType.Greeting, encodeGreeting(said, purpose));
  return await promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  });
}

function isFirst(type: number): boolean {
  return type === MessageType.Refusal;
}

/** The connection to one member, by which frames to it leave: made again whenever it ends. */
export class Outgoing {
  readonly #peer: Peer;
  readonly #own: Own;
  readonly #handler: OutgoingHandler;
  readonly #stop = new AbortController();
  #connection: Connection | null = null;
  #fault: string | null = "has not been reached yet";
  #failures = 0;
  #wake: (() => void) | null = null;
  #running: Promise<void> | null = null;

  constructor(peer: Peer, own: Own, handler: OutgoingHandler) {
    this.#peer = peer;
    this.#own = own;
    this.#handler = handler;
  }

  get isConnected(): boolean {
    return this.#connection?.isOpen === true;
  }

  get fault(): string | null {
    return this.isConnected ? null : this.#fault;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake?.();
    this.#connection?.end("is not asked any more");
    await this.#running;
  }

  send(type: MessageType, payload: Uint8Array): boolean {
    return this.#connection?.send(type, payload) ?? false;
  }

  tick(): void {
    this.#connection?.tick(MessageType.Ping);
  }

  /** Ends the connection; another is made. */
  restart(): void {
    this.#connection?.end("is connected to anew");
  }

  /** The member is there, as it has just connected: it is tried at once. */
  hurry(): void {
    this.#failures = 0;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#connectOnce(signal);
      } catch (error) {
        this.#fault = messageOf(error);
        this.#failures++;
      }
      if (!signal.aborted) await this.#pause();
    }
  }

  /** Returns when a connection that was greeted has ended. */
  async #connectOnce(signal: AbortSignal): Promise<void> {
    const ended = Promise.withResolvers<string>();
    await greet(this.#peer, this.#own, "frames", {
      onGreeted: (connection, greeting) => {
        this.#connection = connection;
        this.#fault = null;
        this.#handler.onGreeting(greeting, true);
      },
      takes: (type) => type === MessageType.Pong,
      onMessage: (type, payload) => {
        if (type === MessageType.Pong) {
          this.#failures = 0; // Greeted is not yet well: it may end at once, each time.
          return true;
        }
        const read = decodeGreeting(payload);
        if (read.kind === "incompatible") return false;
        this.#handler.onGreeting(read.greeting, false);
        return true;
      },
      onEnd: ended.resolve,
      onIncompatible: (reason) => this.#handler.onIncompatible(reason),
    }, signal);
    const reason = await ended.promise;
    this.#fault = reason;
    this.#failures++;
    this.#connection = null;
    this.#handler.onEnd(reason);
  }

  /** Waits longer after each failure, and never as long as another member does. */
  async #pause(): Promise<void> {
    const { retryMsMin, retryMsMax } = this.#own.limits;
    const waitMs = Math.min(retryMsMax, retryMsMin * 2 ** Math.min(this.#failures, 16));
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs * (1 - this.#own.chance() / 2));
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
    this.#wake = null;
  }
}

/**
 * Asks a member a question, over a connection of its own.
 *
 * @throws {Error} Whose message stands behind the member's name.
 */
export async function ask(peer: Peer, own: Own, question: Uint8Array): Promise<Uint8Array> {
  const answer = Promise.withResolvers<Uint8Array>();
  answer.promise.catch(() => {}); // It may end before anybody waits for it.
  const stop = new AbortController();
  const timer = setTimeout(() => {
    stop.abort();
    answer.reject(new Error("does not answer in time"));
  }, own.limits.answerMs);
  try {
    const connection = await greet(peer, own, "question", {
      onGreeted: () => {},
      takes: (type) => type === MessageType.Answer,
      onMessage: (type, payload) => {
        if (type === MessageType.Answer) answer.resolve(payload);
        return type !== MessageType.Answer;
      },
      onEnd: (reason) => answer.reject(new Error(reason)),
      onIncompatible: () => {},
    }, stop.signal);
    connection.send(MessageType.Question, question);
    try {
      return await answer.promise;
    } finally {
      connection.end("has answered");
    }
  } finally {
    clearTimeout(timer);
  }
}
