import { log } from "../../log.ts";
import type { Greeting } from "../ports.ts";
import { Connection } from "./connection.ts";
import { decodeGreeting, encodeGreeting, isSameGreeting } from "./greeting.ts";
import type { ChannelLimits } from "./limits.ts";
import { QUESTIONS_MAX, SECOND_TICKS } from "./limits.ts";
import type { Arrival } from "./listener.ts";
import { MessageType } from "./messages.ts";

const MEMBER_TAKEN = new TextEncoder().encode("taken");

/** Who is told of the connections of one member. */
export interface IncomingHandler {
  readonly limits: ChannelLimits;
  /** The member's address of the configuration, as text. */
  readonly home: string;
  /** This member's, as it is at the moment. */
  greeting(): Greeting;
  /** What the member is known to have said last; frames of one that says something else wait for nobody. */
  known(): Greeting | null;
  onGreeting(greeting: Greeting): void;
  onIncompatible(reason: string): void;
  onFrame(frame: Uint8Array): void;
  /** @throws Where there is no answer: the connection ends without. */
  onQuestion(question: Uint8Array): Promise<Uint8Array>;
}

/** The connections that one member has made to this one: one for frames, and some for questions. */
export class Incoming {
  readonly #handler: IncomingHandler;
  #frames: Connection | null = null;
  /** What the member said of itself on that one, and for how long it is known to say something else. */
  #said: Greeting | null = null;
  #staleTicks = 0;
  /** Where that one comes from. */
  #source = "";
  /** Where a second node of the same name connected from, and for how long that is told of yet. */
  #second: { readonly source: string; ticksLeft: number } | null = null;
  readonly #questions = new Set<Connection>();

  constructor(handler: IncomingHandler) {
    this.#handler = handler;
  }

  /** Takes a connection, which has said nothing yet. */
  take({ socket, name, source, finish, refuse }: Arrival): void {
    const { limits } = this.#handler;
    let greeting: Greeting | null = null;
    const connection: Connection = new Connection(socket, limits, {
      takes: (type) =>
        greeting === null
          ? type === MessageType.Greeting
          : this.#questions.has(connection)
          ? type === MessageType.Question
          : connection === this.#frames && isOfFrames(type),
      onMessage: (type, payload) => {
        if (type === MessageType.Frame) {
          // What it said since, by another way, is not what this frame was sent after.
          if (isSameGreeting(greeting, this.#handler.known())) this.#handler.onFrame(payload);
          return true;
        }
        if (type === MessageType.Question) {
          void this.#answer(connection, payload);
          return true;
        }
        if (type !== MessageType.Greeting) return true;
        const read = decodeGreeting(payload);
        if (read.kind === "incompatible") {
          this.#handler.onIncompatible(read.reason);
          refuse("greeting");
          return false;
        }
        if (greeting === null) {
          finish();
          if (read.purpose === "frames" && this.#isTaken(source)) {
            this.#refuseSecond(connection, name, source);
            return false;
          }
          const own = encodeGreeting(this.#handler.greeting(), read.purpose);
          connection.send(MessageType.Greeting, own);
          if (!this.#keep(connection, read.purpose === "frames", source)) return false;
        }
        greeting = read.greeting;
        // A question has no word after it: what it was sent with may be long over.
        if (connection !== this.#frames) return true;
        this.#said = greeting;
        this.#handler.onGreeting(greeting);
        return true;
      },
      onEnd: () => {
        this.#questions.delete(connection);
        if (this.#frames === connection) this.#frames = null;
      },
    });
  }

  tick(): void {
    this.#frames?.tick(MessageType.Pong);
    this.#endStale();
    if (this.#second !== null && --this.#second.ticksLeft === 0) this.#second = null;
    for (const one of this.#questions) one.tick(MessageType.Pong);
  }

  /** Frames are dropped as long as their connection is behind; on another one it is said anew. */
  #endStale(): void {
    const isStale = this.#frames !== null && !isSameGreeting(this.#said, this.#handler.known());
    this.#staleTicks = isStale ? this.#staleTicks + 1 : 0;
    if (this.#staleTicks <= this.#handler.limits.silentTicksMax) return;
    this.#staleTicks = 0;
    this.#frames?.end("does not say on it what it says elsewhere");
  }

  /** Says something else of this member. */
  greet(greeting: Greeting): void {
    this.#frames?.send(MessageType.Greeting, encodeGreeting(greeting, "frames"));
  }

  end(): void {
    this.#frames?.end("has stopped");
    for (const one of this.#questions) one.end("has stopped");
  }

  /**
   * Whether the member is connected from its own address, so that whoever comes from elsewhere is a
   * second node with its certificate. It is none of the member's, which might be taken for emptied.
   */
  #isTaken(source: string): boolean {
    const { home } = this.#handler;
    return this.#frames?.isOpen === true && this.#source === home && source !== home;
  }

  #refuseSecond(connection: Connection, member: string, source: string): void {
    if (this.#second?.source !== source) {
      log.warn("a second node connects under a member's name", { member, from: source });
    }
    this.#second = { source, ticksLeft: SECOND_TICKS };
    connection.endWith(MessageType.Refusal, MEMBER_TAKEN, "is a second node of this name");
  }

  /** Where a second node of the member's name is; `null`: nowhere, of late. */
  get second(): string | null {
    return this.#second?.source ?? null;
  }

  #keep(connection: Connection, isForFrames: boolean, source: string): boolean {
    if (!isForFrames) {
      if (this.#questions.size >= QUESTIONS_MAX) return false;
      this.#questions.add(connection);
      return true;
    }
    // The member has made another: it has given up the former one, which may be half open.
    this.#frames?.end("was connected to anew");
    [this.#frames, this.#source] = [connection, source];
    return true;
  }

  async #answer(connection: Connection, question: Uint8Array): Promise<void> {
    try {
      const answer = await this.#handler.onQuestion(question);
      this.#questions.delete(connection); // The next one need not wait until it is closed.
      connection.endWith(MessageType.Answer, answer, "has its answer");
    } catch {
      connection.end("gets no answer");
    }
  }
}

function isOfFrames(type: number): boolean {
  return type === MessageType.Frame || type === MessageType.Ping || type === MessageType.Greeting;
}
