import type { Cache } from "../../cache/mod.ts";
import { HashedName, Qtype, RecordView } from "../../dns/mod.ts";
import { log } from "../../log.ts";
import { Counter, type CounterBlock } from "../../telemetry/mod.ts";
import { type Asker, type Exchange, ResponseReader, Scrubber, type TtlBounds } from "../ask/mod.ts";
import type { ResolveFailure } from "../failure.ts";
import { type Flight, KeptMessages, type Share, type Source } from "../flights/mod.ts";
import { hashQuestion, keptQuery, type Query } from "../query.ts";
import { BelievedServers } from "./believed_servers.ts";
import { Delegations } from "./delegations.ts";
import { ALL_FULL, NO_SOCKET, zoneFull } from "./failures.ts";
import type { Hint } from "./hints.ts";
import { Iteration } from "./iteration.ts";
import { PRIMING_MS_MIN } from "./limits.ts";
import { LocalResponses } from "./local_responses.ts";
import type { DeniesName, Means } from "./means.ts";
import { NameServerReader } from "./name_server_reader.ts";
import { NameServers } from "./name_servers.ts";
import { Zones, ZoneShare } from "./zones.ts";

/** How often it is logged that there is no socket, and how long it is told in the status. */
const NO_SOCKET_MS = 60_000;

/** How recursion is configured. */
export interface RecursionOptions {
  /** Where the root's servers are. */
  readonly hints: readonly Hint[];
  readonly qnameMinimisation: boolean;
  /** Signatures and proofs are asked for and kept, for who validates them. */
  readonly dnssecOk: boolean;
  /** Bytes of delegations. */
  readonly delegationsBytes: number;
}

export interface RecursorOptions extends RecursionOptions {
  readonly exchange: Exchange;
  readonly asker: Asker;
  readonly cache: Cache;
  readonly counters: CounterBlock;
  readonly ttl: TtlBounds;
  /** Of every hash of a name. */
  readonly seed: number;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  readonly nowSeconds: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Has a question asked that nobody waits for. */
  readonly refresh: (query: Query) => void;
  /** Says whether an upstream serves an uncompressed name. */
  readonly isForwarded: (name: Uint8Array, length: number) => boolean;
  /** Asked where answers are validated. */
  readonly deniesName: DeniesName;
}

/** Finds answers by asking the name servers of the Internet, from the root down. */
export class Recursor implements Source {
  readonly #means: Means;
  readonly #refresh: (query: Query) => void;
  #noSocketAtMs = -Infinity;
  #loggedAtMs = -Infinity;
  #primedAtMs = -Infinity;

  constructor(options: RecursorOptions) {
    const { exchange, cache, counters, ttl, seed, nowSeconds, random } = options;
    this.#refresh = options.refresh;
    this.#means = {
      asker: options.asker,
      scrubber: new Scrubber(ttl),
      reader: new NameServerReader(),
      kept: new ResponseReader(),
      delegations: new Delegations(options.delegationsBytes, nowSeconds),
      servers: new NameServers(exchange, random),
      zones: new Zones(),
      believed: new BelievedServers(),
      local: new LocalResponses(seed),
      hints: options.hints,
      cache,
      messages: new KeptMessages(cache, nowSeconds),
      scratch: new HashedName(),
      record: new RecordView(),
      counts: counters.values,
      seed,
      minimises: options.qnameMinimisation,
      dnssecOk: options.dnssecOk,
      nowMs: options.nowMs,
      nowSeconds,
      random,
      prime: () => this.#prime(),
      noteNoSocket: () => this.#noteNoSocket(),
      isForwarded: options.isForwarded,
      deniesName: options.deniesName,
    };
  }

  /** Queries were not sent of late because the process has no socket left. */
  get lacksSockets(): boolean {
    return this.#means.nowMs() - this.#noSocketAtMs < NO_SOCKET_MS;
  }

  /** Addresses of name servers that something is known of. */
  get serversKnown(): number {
    return this.#means.servers.count;
  }

  /** What is kept of zones. */
  get delegations(): Delegations {
    return this.#means.delegations;
  }

  shareOf({ packet, qname, qtype }: Query): ZoneShare {
    const { scratch, seed, delegations, zones } = this.#means;
    const end = scratch.read(packet, qname, packet.length, seed);
    const from = qtype === Qtype.DS && scratch.count > 0 ? 1 : 0;
    const found = delegations.closest(scratch, packet, from);
    const label = found < 0 ? scratch.count : found;
    return zones.of(scratch.hashes[label], packet, scratch.offsets[label], end);
  }

  left(): number {
    return this.#means.asker.left;
  }

  full(share: Share): ResolveFailure {
    return share instanceof ZoneShare && share.isFull ? zoneFull(share.text) : ALL_FULL;
  }

  begin(flight: Flight): void {
    // A flight that is used again brings along what was made for it.
    const former = flight.task;
    const task = former instanceof Iteration ? former : new Iteration(flight, this.#means);
    flight.task = task;
    task.begin();
  }

  /** Flights are all there is to look after. */
  tick(): boolean {
    return false;
  }

  close(): void {}

  /** Forgets what was learned of zones. */
  flush(): void {
    this.#means.delegations.flush();
  }

  /** Has the root asked for its own name servers (RFC 8109), beside the question at hand. */
  #prime(): void {
    const nowMs = this.#means.nowMs();
    if (nowMs - this.#primedAtMs < PRIMING_MS_MIN) return;
    this.#primedAtMs = nowMs;
    const query = keptQuery();
    query.packet.fill(0);
    query.qtype = Qtype.NS;
    query.qclass = 1;
    query.rename(ROOT);
    query.isOwn = true;
    hashQuestion(query, this.#means.scratch, this.#means.seed);
    this.#refresh(query);
  }

  #noteNoSocket(): void {
    const { counts, nowMs } = this.#means;
    counts[Counter.NoSocket]++;
    const now = this.#noSocketAtMs = nowMs();
    if (now - this.#loggedAtMs < NO_SOCKET_MS) return;
    this.#loggedAtMs = now;
    log.error(NO_SOCKET.text);
  }
}

const ROOT = new Uint8Array(1);
