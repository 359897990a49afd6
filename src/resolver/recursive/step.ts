import { formatIp } from "../../addr/mod.ts";
import { formatName } from "../../dns/mod.ts";
import { type Ask, type AskOwner, type Fit, NOT_SENT, type Sending } from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import type { Flight, Waiter } from "../flights/mod.ts";
import { keptQuery, type Query } from "../query.ts";
import { questionText, type TraceNote } from "../trace.ts";
import { AddressLookups } from "./address_lookups.ts";
import { Budget } from "./budget.ts";
import type { Cut } from "./cut.ts";
import { Lookup } from "./cut_server.ts";
import type { Hint } from "./hints.ts";
import {
  afterAll,
  malformed,
  NO_SOCKET,
  noAddress,
  nobodyAnswered,
  serverFull,
  TOO_MANY_QUERIES,
  unreachable,
} from "./failures.ts";
import {
  EDNS_SILENCES_MIN,
  LOOKUP_PATIENCE_MS,
  PATIENCE_MS_MAX,
  SAME_SERVER_MAX,
  SERVER_OPEN_MAX,
  STEP_OPEN_MAX,
  STEP_QUERIES_MAX,
} from "./limits.ts";
import type { Means } from "./means.ts";
import type { NameServer } from "./name_servers.ts";
import { ServerList } from "./server_list.ts";

/** Whoever has a question put to a zone's servers. */
export interface StepOwner {
  /** A server has answered: the ask is the owner's to release, or `Step.decline` goes on elsewhere. */
  onAnswer(ask: Ask<NameServer>, fit: Fit): void;
  /** Name servers that a zone has by its own word alone: the last that are asked. */
  ownServers(cut: Cut): readonly Hint[];
  /** Nobody is left to ask, or no more may be sent. */
  onExhausted(failure: ResolveFailure): void;
}

/**
 * One question to the servers of one zone: which, in what order, how long each is waited for, and
 * where they are. What they say is the owner's to understand. Used again for the next question.
 */
export class Step implements AskOwner<NameServer> {
  readonly asks: Ask<NameServer>[] = [];
  /** Shared with the questions that the flight has asked. */
  budget: Budget = new Budget();
  /** What is sent; changed between two steps. */
  readonly asking: Query = keptQuery();
  /** The zone; `null`: others look for the name. */
  cut: Cut | null = null;
  /** A server that is asked once nobody else is to be found. */
  avoided: NameServer | null = null;
  readonly #flight: Flight;
  readonly #means: Means;
  readonly #owner: StepOwner;
  readonly #lookups: AddressLookups;
  /** How often each server was asked, and those that would say the same again. */
  readonly #asked = new ServerList();
  readonly #declined = new ServerList();
  #queries = 0;
  /** How often a server is asked. */
  #sameMax = SAME_SERVER_MAX;
  /** Silences to queries with EDNS. */
  #silences = 0;
  /** Who has answered without a word, and is asked again where nobody else is to be found. */
  #silent: NameServer | null = null;
  #asksSilent = false;
  /** Of the last choice: one that had no room. */
  #full: NameServer | null = null;
  #lastSentAtMs = 0;
  /** When there is something to be done if nothing is heard before. */
  #nextAtMs = 0;
  #failure: ResolveFailure | null = null;

  constructor(flight: Flight, means: Means, owner: StepOwner) {
    this.#flight = flight;
    this.#means = means;
    this.#owner = owner;
    this.#lookups = new AddressLookups(flight, means, this);
  }

  /** Begins anew, with the servers of a zone, or without any. */
  enter(cut: Cut | null): void {
    this.stop();
    this.cut = cut;
    this.#failure = this.#lookups.bound = null;
  }

  /** Puts `asking` to the servers. */
  start(): void {
    this.stop();
    this.#queries = this.#silences = 0;
    this.#silent = null;
    this.#asksSilent = false;
    this.#asked.clear();
    this.#declined.clear();
    this.askNext();
  }

  /** Nothing more is wanted. */
  stop(): void {
    this.#means.asker.releaseAll(this);
  }

  /** What there is to say when time is over. */
  get failure(): ResolveFailure {
    if (this.#failure !== null) return this.#failure;
    return this.#queries === 0 ? noAddress(this.zoneText) : nobodyAnswered(this.zoneText);
  }

  get zoneText(): string {
    return this.cut === null ? "." : formatName(this.cut.zone);
  }

  /** A server for people: its name and address. */
  textOf(server: NameServer): string {
    const address = formatIp(server.endpoint.ip);
    const name = this.cut?.nameOf(server) ?? null;
    return name === null ? address : `${formatName(name)} (${address})`;
  }

  /** Notes what happened, for who traces the flight; `server` and more where they are known. */
  note(event: TraceNote["event"], detail: string, server: NameServer | null = null): void {
    const flight = this.#flight;
    if (flight.trace === null) return;
    flight.trace.note(flight.depth, {
      event,
      detail,
      ...(this.cut !== null && { zone: this.zoneText }),
      ...(server !== null && { server: this.textOf(server) }),
    });
  }

  tick(nowMs: number): void {
    const isDue = nowMs >= this.#nextAtMs;
    let silent: NameServer | null = null;
    for (const ask of this.asks) {
      if (ask.failed || nowMs - ask.sentAtMs < ask.server.patienceMs) continue;
      ask.failed = true;
      ask.server.silent(nowMs);
      if (!ask.hasEdns || ask.overTcp) continue;
      this.#silences++;
      silent = ask.server;
    }
    if (this.cut === null || this.#flight.isOver(nowMs)) return;
    if (silent !== null) this.#tryPlain(silent, nowMs);
    if (isDue) this.askNext();
  }

  /** EDNS may be why a server is silent: it is asked without as well, beside what else is asked. */
  #tryPlain(server: NameServer, nowMs: number): void {
    const { asker } = this.#means;
    const isLast = this.#asked.count(server) >= this.#sameMax || server.isDown(nowMs);
    const isZone = this.#silences >= EDNS_SILENCES_MIN;
    if (!(isLast || isZone) || !server.mayTryPlain(nowMs)) return;
    if (this.#queries >= STEP_QUERIES_MAX || !this.budget.hasQueries) return;
    if (server.open >= SERVER_OPEN_MAX || asker.isFull(server)) return;
    if (asker.askPlain(this, server, this.asking) === "noSocket") this.#noSocket();
  }

  onChild(cut: Cut, child: Waiter, entry: number): void {
    this.#lookups.onChild(cut, child, entry);
  }

  /** What was said about addresses of the zone's servers has come. */
  onAddresses(): void {
    if (this.#flight.done || this.cut === null) return;
    if (this.asks.length === 0) this.askNext();
    else this.#nextAtMs = Math.min(this.#nextAtMs, this.#means.nowMs());
  }

  onSending({ server, sentAtMs, overTcp, hasEdns, triesPlain }: Ask<NameServer>): void {
    this.budget.sent++;
    this.#queries++;
    this.#lastSentAtMs = sentAtMs;
    if (!overTcp && !triesPlain) this.#asked.add(server);
    this.#nextAtMs = sentAtMs + (overTcp ? PATIENCE_MS_MAX : server.patienceMs);
    this.#flight.trace?.note(this.#flight.depth, {
      event: "asked",
      question: questionText(this.asking),
      zone: this.zoneText,
      server: this.textOf(server),
      ...((overTcp || !hasEdns) && { detail: wayText(overTcp, hasEdns) }),
    });
  }

  maySendAgain(ask: Ask<NameServer>): boolean {
    if (this.budget.hasQueries) return true;
    this.#means.asker.release(ask);
    this.#waitSpent();
    return false;
  }

  onHeard({ server, sentAtMs }: Ask<NameServer>): void {
    const nowMs = this.#means.nowMs();
    this.#means.servers.heard(server, nowMs - sentAtMs, nowMs);
  }

  onResponse(ask: Ask<NameServer>, fit: Fit): void {
    this.#owner.onAnswer(ask, fit);
  }

  /** A true answer may still follow; others are asked beside it. */
  onDoubt({ server }: Ask<NameServer>): void {
    this.#failure = malformed(this.zoneText, this.textOf(server));
    this.askNext();
  }

  onClosed({ server, failed }: Ask<NameServer>, sending: Sending, reason: string): void {
    if (sending === "noSocket") this.#noSocket();
    else if (!failed) server.silent(this.#means.nowMs());
    this.#declined.add(server);
    this.#failure = unreachable(this.zoneText, this.textOf(server), reason);
    this.askNext();
  }

  /** Leaves a server whose answer is of no use, and asks the next one. */
  decline(ask: Ask<NameServer>, failure: ResolveFailure): void {
    this.#declined.add(ask.server);
    this.#leave(ask, failure);
  }

  /**
   * Leaves a server that has answered without a word, to ask another one that may say more; false:
   * there is none, or one did so before.
   */
  declineSilent(ask: Ask<NameServer>, failure: ResolveFailure): boolean {
    if (this.#silent !== null) return false;
    this.#silent = ask.server;
    if (!this.#hasOther()) return false;
    this.#leave(ask, failure);
    return true;
  }

  #leave(ask: Ask<NameServer>, failure: ResolveFailure): void {
    const { asker } = this.#means;
    const { server } = ask;
    this.#failure = failure;
    this.note("failed", failure.text);
    asker.release(ask);
    // What is malformed over TCP as well is no forgery.
    for (const other of [...this.asks]) if (other.server === server) asker.release(other);
    this.askNext();
  }

  /** Says whether another server is left to ask, or to be looked for. */
  #hasOther(): boolean {
    return this.#choose(this.#means.nowMs()) !== null ||
      this.cut!.entries.some(({ lookup, servers }) =>
        lookup === Lookup.None && servers.length === 0
      );
  }

  /** Asks the next server of the zone, or does what is left to do. */
  askNext(): void {
    const { asker, servers, nowMs } = this.#means;
    while (!this.#flight.done) {
      const now = nowMs();
      const server = this.#queries < STEP_QUERIES_MAX ? this.#choose(now) : null;
      if (server === null) {
        this.#waitOrEnd(now);
        return;
      }
      if (!this.budget.hasQueries) {
        this.#waitSpent();
        return;
      }
      const open = this.asks.filter(({ triesPlain }) => !triesPlain);
      if (open.length >= STEP_OPEN_MAX) asker.release(open[0]);
      const sending = asker.ask(this, server, this.asking);
      if (sending === "sent") return;
      if (sending === "noSocket") {
        this.#noSocket();
        if (this.asks.length === 0) this.#owner.onExhausted(NO_SOCKET);
        return;
      }
      if (sending === "unreachable") servers.unreachable(server, now);
      this.#declined.add(server);
      this.#failure = unreachable(this.zoneText, this.textOf(server), NOT_SENT);
    }
  }

  /** The server to ask next; `null`: none is left that has room. */
  #choose(nowMs: number): NameServer | null {
    const { asker, servers } = this.#means;
    const cut = this.cut!;
    let fewest = Infinity;
    let all = 0;
    this.#full = null;
    servers.startChoice();
    for (const entry of cut.entries) {
      for (const server of entry.servers) {
        all++;
        if (server === this.avoided || this.#declined.has(server)) continue;
        if (server === this.#silent && !this.#asksSilent) continue;
        if (server.open >= SERVER_OPEN_MAX || asker.isFull(server)) {
          this.#full = server;
          continue;
        }
        // Whether it is back, another question finds out at this moment.
        if (server.isDown(nowMs) && server.open > 0) continue;
        if (this.#isDoubted(server)) continue;
        const count = this.#asked.count(server);
        if (count > fewest) continue;
        if (count < fewest) servers.startChoice();
        fewest = count;
        servers.addCandidate(server);
      }
    }
    this.#sameMax = SAME_SERVER_MAX + (all === 1 ? 1 : 0);
    if (fewest >= this.#sameMax) return null;
    return servers.choose(cut.hash, nowMs);
  }

  /** Its last answer is in doubt, and the true one may follow. */
  #isDoubted(server: NameServer): boolean {
    for (const ask of this.asks) if (ask.isDoubted && ask.server === server) return true;
    return false;
  }

  /** No server is left to ask: waits, finds further addresses, or gives up. */
  #waitOrEnd(nowMs: number): void {
    const cut = this.cut!;
    const isSilent = this.asks.every(({ failed }) => failed) &&
      nowMs - this.#lastSentAtMs >= PATIENCE_MS_MAX;
    if (this.asks.length > 0 && !isSilent) {
      this.#askBeside();
      this.#nextAtMs = Math.max(nowMs, this.#lastSentAtMs + PATIENCE_MS_MAX);
      return;
    }
    if (this.#lookups.begin(cut)) {
      this.askNext();
      return;
    }
    if (cut.looking > 0) {
      this.#nextAtMs = nowMs + LOOKUP_PATIENCE_MS;
      return;
    }
    if (cut.add(this.#owner.ownServers(cut), this.#means.servers)) {
      this.askNext();
      return;
    }
    if (this.avoided !== null) {
      this.avoided = null;
      this.askNext();
      return;
    }
    if (this.#silent !== null && !this.#asksSilent) {
      // It has nothing, then: what it says again is taken.
      this.#asksSilent = true;
      this.askNext();
      return;
    }
    const failure = this.#exhausted(nowMs);
    this.stop();
    this.#owner.onExhausted(failure);
  }

  /** Why nobody is left: the bound that was reached, if that is so. */
  #exhausted(nowMs: number): ResolveFailure {
    if (this.#lookups.bound !== null) return this.#lookups.bound;
    const isLeft = this.#choose(nowMs) !== null;
    const full = this.#full;
    if (full !== null) return serverFull(this.zoneText, this.textOf(full), full.open);
    const isOver = isLeft && this.#queries >= STEP_QUERIES_MAX;
    return isOver ? afterAll(this.failure) : this.failure;
  }

  /** No more may be sent: what is on its way may still be answered. */
  #waitSpent(): void {
    this.#failure = TOO_MANY_QUERIES;
    if (this.asks.length === 0) this.#owner.onExhausted(TOO_MANY_QUERIES);
    else this.#nextAtMs = Infinity;
  }

  /** Whoever has answered with a malformed message may do better over TCP. */
  #askBeside(): void {
    if (!this.budget.hasQueries) return;
    const doubted = this.asks.find((ask) => ask.isDoubted && !ask.hasBeside);
    if (doubted === undefined || this.#means.asker.isFull(doubted.server)) return;
    doubted.hasBeside = true;
    this.#means.asker.askOverTcp(this, doubted.server, this.asking);
  }

  #noSocket(): void {
    this.#failure = NO_SOCKET;
    this.#means.noteNoSocket();
  }
}

/** In what a query differs from what is sent at first. */
function wayText(overTcp: boolean, hasEdns: boolean): string {
  return [overTcp ? "over TCP" : "", hasEdns ? "" : "without EDNS"].filter(Boolean).join(", ");
}
