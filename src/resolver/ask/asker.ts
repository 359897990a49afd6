import { Rcode } from "../../dns/mod.ts";
import { Counter, type CounterBlock } from "../../telemetry/mod.ts";
import type { Query } from "../query.ts";
import type { Ask, AskOwner } from "./ask.ts";
import { AskTable } from "./ask_table.ts";
import type { AskFailure, Exchange, Sending } from "./ports.ts";
import { QueryWriter } from "./query_writer.ts";
import { Fit, ResponseReader } from "./response.ts";
import type { Server } from "./server.ts";

/** Wrong packets for one ask after which UDP is no longer trusted with it (RFC 5452 §9.1). */
const MISMATCHES_MAX = 32;
/** Asks at one time, all told, where the system has sockets for that many. */
export const OPEN_MAX = 4_096;
/** Said of a server to which nothing could be sent. */
export const NOT_SENT = "can't be reached from here";

export interface AskerOptions {
  readonly exchange: Exchange;
  readonly counters: CounterBlock;
  /** Asks at one time. */
  readonly openMax: number;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  /** Fills the array with random numbers that cannot be foretold. */
  readonly random: (target: Uint8Array<ArrayBuffer>) => void;
}

/**
 * Puts one question to one server, any server, and sees to it that what comes back is that server's
 * answer: others are ignored, what is cut or in doubt is asked for over TCP, and whoever knows no
 * EDNS is asked without. Which server, how long and what then is its owner's.
 */
export class Asker {
  /** The response read last. */
  readonly response: ResponseReader = new ResponseReader();
  readonly #exchange: Exchange;
  readonly #nowMs: () => number;
  readonly #counts: Float64Array;
  readonly #table: AskTable;
  readonly #writer: QueryWriter;

  constructor({ exchange, counters, openMax, nowMs, random }: AskerOptions) {
    this.#exchange = exchange;
    this.#nowMs = nowMs;
    this.#counts = counters.values;
    this.#table = new AskTable(openMax);
    this.#writer = new QueryWriter(random);
  }

  /** Asks on their way. */
  get inUse(): number {
    return this.#table.inUse;
  }

  /** Asks that there is room for beside those on their way. */
  get left(): number {
    return this.#table.left;
  }

  /** The same for one server: asks that need not wait for others, and leave these as many. */
  leftFor(server: Server): number {
    return this.#table.leftFor(server);
  }

  /** Says whether a server has more asks on their way than it has room for. */
  isCrowded(server: Server): boolean {
    return server.open >= this.#table.leftFor(server);
  }

  /** Says whether half of the room for asks is taken. */
  get isHalfFull(): boolean {
    return this.#table.isHalfFull;
  }

  /** Says whether as many go to a server as are left for all others. */
  isFull(server: Server): boolean {
    return this.#table.isFull(server);
  }

  /** Asks a server. Of what is not `sent` nothing is left, and its owner is told no more. */
  ask<S extends Server>(owner: AskOwner<S>, server: S, query: Query): Sending {
    return this.#sendFirst(this.#take(owner, server, query));
  }

  /** As `ask` without EDNS, of a server that may be silent for that: its answer is remembered. */
  askPlain<S extends Server>(owner: AskOwner<S>, server: S, query: Query): Sending {
    server.triesPlain(this.#nowMs());
    return this.#sendFirst(this.#take(owner, server, query, true));
  }

  /** Asks a server of the plain kind over TCP from the start. */
  askOverTcp<S extends Server>(owner: AskOwner<S>, server: S, query: Query): void {
    this.#sendTcp(this.#take(owner, server, query));
  }

  /** Nothing more is wanted for an ask. */
  release(ask: Ask): void {
    const { owner } = ask;
    if (owner === null) return;
    owner.asks.splice(owner.asks.indexOf(ask), 1);
    this.#free(ask);
  }

  /** Nothing more is wanted by an owner. */
  releaseAll({ asks }: AskOwner): void {
    for (const ask of asks) this.#free(ask);
    asks.length = 0;
  }

  /** A packet came in for an ask. Its bytes are the caller's again afterwards. */
  onPacket(token: number, packet: Uint8Array, length: number): void {
    const ask = this.#table.find(token);
    const owner = ask?.owner ?? null;
    if (ask === null || owner === null) return;
    const { response } = this;
    const { overStream, packet: asked, questionEnd, server } = ask;
    const fit = response.read(packet, length, asked, questionEnd, overStream);
    if (fit === Fit.Mismatched || fit === Fit.WrongCase || (fit === Fit.Broken && !overStream)) {
      this.#doubt(ask, owner, fit);
      return;
    }
    if (ask.hasEdns) server.answersEdns(this.#nowMs());
    else if (ask.triesPlain) server.dropsEdns(this.#nowMs());
    owner.onHeard(ask);
    if (ask.owner === null) return;
    if (!server.resolves && fit !== Fit.Truncated) server.keepCookie(response);
    // Who wants another cookie (RFC 7873 §5.3) has sent it, and wants none over TCP.
    const wantsCookie = fit === Fit.Failure && response.rcode === Rcode.BadCookie;
    if (fit === Fit.Truncated || (wantsCookie && !ask.overStream)) {
      this.#goOverTcp(ask);
      return;
    }
    const isUnknown = response.rcode === Rcode.FormErr ||
      (response.rcode === Rcode.NotImp && !server.resolves);
    if (fit === Fit.Failure && isUnknown) {
      // Only a server that knows no EDNS answers so, and without OPT (RFC 6891 §7), or an old one
      // (RFC 2671 §5.3).
      if (ask.hasEdns && !response.hasOpt) {
        server.refusesEdns(this.#nowMs());
        this.#askAgain(ask, owner);
        return;
      }
      // Without EDNS it is no better: that was not the reason.
      if (!ask.hasEdns) server.takesEdns();
    }
    owner.onResponse(ask, fit);
  }

  /**
   * The way to the server is closed: nothing will come for this ask. `isOwn`: it is this process
   * that lacks what it needs for one.
   */
  onFailure(token: number, reason: AskFailure, isOwn = false): void {
    const ask = this.#table.find(token);
    if (ask !== null) this.#close(ask, isOwn ? "noSocket" : "unreachable", reason);
  }

  /** A response over UDP that fits holds what makes no sense: it is as good as malformed. */
  doubt(ask: Ask): void {
    if (ask.owner !== null) this.#doubt(ask, ask.owner, Fit.Broken);
  }

  /** A packet that is not to be trusted, or of no use. */
  #doubt(ask: Ask, owner: AskOwner, fit: Fit): void {
    this.#counts[Counter.UpstreamMismatched]++;
    const isFlood = ++ask.mismatches === MISMATCHES_MAX;
    // Somebody may be guessing, or a router folds names: TCP tells, where guesses do not reach.
    if (isFlood || fit === Fit.WrongCase) {
      if (!ask.overStream) this.#goOverTcp(ask);
      return;
    }
    if (fit !== Fit.Broken || ask.isDoubted) return;
    ask.isDoubted = true;
    owner.onDoubt(ask);
  }

  #take(owner: AskOwner, server: Server, query: Query, triesPlain = false): Ask {
    const ask = this.#table.take(owner, server, this.#nowMs());
    ask.query = query;
    ask.triesPlain = triesPlain;
    this.#writer.write(ask, query);
    return ask;
  }

  #sendFirst(ask: Ask): Sending {
    const sending = this.#send(ask);
    if (sending !== "sent") this.release(ask);
    return sending;
  }

  #send(ask: Ask): Sending {
    ask.owner!.onSending(ask);
    this.#counts[Counter.UpstreamSent]++;
    return this.#exchange.send(ask.server.remote, ask.packet, ask.length, ask.token);
  }

  /** The same server and question, with another ID, and without EDNS by now. */
  #askAgain(former: Ask, owner: AskOwner): void {
    if (!owner.maySendAgain(former)) return;
    const { server, query } = former;
    this.release(former);
    const ask = this.#take(owner, server, query!);
    const sending = this.#send(ask);
    if (sending !== "sent") this.#close(ask, sending, NOT_SENT);
  }

  /** The same server, by a way that carries any size and that nobody can forge from afar. */
  #goOverTcp(ask: Ask): void {
    if (!ask.owner!.maySendAgain(ask)) return;
    this.#exchange.cancel(ask.token);
    this.#sendTcp(ask);
  }

  #sendTcp(ask: Ask): void {
    ask.overStream = ask.overTcp = true;
    ask.sentAtMs = this.#nowMs();
    ask.owner!.onSending(ask);
    this.#counts[Counter.UpstreamTcp]++;
    const { server, packet, length, token } = ask;
    const sending = this.#exchange.sendTcp(server.remote, packet, length, token);
    if (sending !== "sent") this.#close(ask, sending, NOT_SENT);
  }

  #close(ask: Ask, sending: Sending, reason: string): void {
    const { owner } = ask;
    this.release(ask);
    owner?.onClosed(ask, sending, reason);
  }

  #free(ask: Ask): void {
    this.#exchange.cancel(ask.token);
    this.#table.release(ask);
  }
}
