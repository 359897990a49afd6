import { invariant } from "../errors.ts";
import { type ResolveFailure, TOO_MANY_WAIT } from "./failure.ts";
import type { Flights, Responder, Taker, Waiter } from "./flights/mod.ts";
import { Cookies } from "./cookies.ts";
import { mayTell, type QueryLog } from "./query_log.ts";
import type { Pipeline } from "./pipeline.ts";
import { Verdict } from "./verdict.ts";
import { ClientAddress, Query, Read, readQuery, Transport } from "./query.ts";
import type { Reply } from "./reply.ts";
import { type CounterBlock, countLatency } from "../telemetry/mod.ts";
import type { TurnClock } from "./turn_clock.ts";

const MS_PER_SECOND = 1_000;
const NOBODY = new ClientAddress();

export interface ResolverOptions {
  readonly pipeline: Pipeline;
  readonly flights: Flights;
  readonly seed: number;
  /** 16 bytes that nobody can know, and that all isolates share. */
  readonly cookieSecret: Uint8Array;
  /** The caller begins its turns. */
  readonly clock: TurnClock;
  /** `null` where queries are not logged. */
  readonly log: QueryLog | null;
  readonly counters: CounterBlock;
  /** Called with each query that waited and the response to it; `null`: nobody wants to know. */
  readonly onSlow:
    | ((query: Query, reply: Reply, epochMs: number, tookMs: number) => void)
    | null;
}

/**
 * Both halves of a query's way: what is answered at once, and what has to wait. It writes the
 * response to either; a transport has the room for it, and sends it.
 */
export class Resolver implements Taker {
  readonly #pipeline: Pipeline;
  readonly #flights: Flights;
  readonly #seed: number;
  readonly #query = new Query();
  readonly #clock: TurnClock;
  readonly #log: QueryLog | null;
  readonly #counts: Float64Array;
  readonly #onSlow: ResolverOptions["onSlow"];

  constructor(options: ResolverOptions) {
    this.#pipeline = options.pipeline;
    this.#flights = options.flights;
    this.#seed = options.seed;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#counts = options.counters.values;
    this.#onSlow = options.onSlow;
    const { clock } = options;
    const nowSeconds = () => Math.floor(clock.epochMs / MS_PER_SECOND);
    this.#query.cookies = new Cookies(options.cookieSecret, nowSeconds);
  }

  /** The query decided on last, as long as that is so. */
  get decided(): Query {
    return this.#query;
  }

  /** Says whether an address may connect over a transport, before anything of it is read. */
  admitsConnection(transport: Transport, client: ClientAddress): boolean {
    return this.#pipeline.admitsConnection(transport, client);
  }

  /**
   * Reads the packet at `start` to `end`, which came from `from`, and answers it into `reply`, unless
   * the verdict is `Resolve`: then `wait` and `resolve` are to follow at once, and `reply` is still
   * free.
   */
  decide(
    transport: Transport,
    from: ClientAddress,
    packet: Uint8Array,
    start: number,
    end: number,
    reply: Reply,
  ): Verdict {
    const query = this.#query;
    const pipeline = this.#pipeline;
    query.transport = transport;
    query.address.aim(from.bytes, from.offset, from.lengthBytes);
    query.address.id = from.id;
    query.receivedAtMs = this.#clock.startedAtMs;
    const read = readQuery(packet, start, end, this.#seed, query, pipeline.name);
    // What asks nothing that can be read has no name to be logged by.
    if (read !== Read.Ok) return pipeline.answerUnread(read, query, reply);
    const verdict = pipeline.answerNow(query, reply);
    if (verdict === Verdict.Send) this.#answered(query, reply);
    return verdict;
  }

  /**
   * As `decide` for a question of the service itself, which is neither filtered nor counted.
   */
  decideOwn(packet: Uint8Array, reply: Reply, route = 0): Verdict {
    const query = this.#query;
    query.transport = Transport.Tcp; // An answer of any size.
    query.address.aim(NOBODY.bytes, 0, 0);
    query.address.id = null;
    const read = readQuery(packet, 0, packet.length, this.#seed, query, this.#pipeline.name);
    invariant(read === Read.Ok, "a question of our own is well formed");
    return this.#pipeline.answerOwn(query, reply, route);
  }

  /**
   * A waiter for the query just decided on, whose response `responder` is to carry; `null` writes
   * SERVFAIL into `reply`.
   */
  wait(responder: Responder, reply: Reply): Waiter | null {
    const waiter = this.#flights.takeWaiter();
    if (waiter === null) {
      this.#pipeline.fail(this.#query, TOO_MANY_WAIT, reply);
      this.#answered(this.#query, reply);
      return null;
    }
    waiter.query.keep(this.#query);
    waiter.taker = this;
    waiter.responder = responder;
    return waiter;
  }

  /** Has the waiter's question asked; its response may be sent before this returns. */
  resolve(waiter: Waiter): void {
    this.#flights.resolve(waiter);
  }

  onAnswer(waiter: Waiter, entry: number, ede: number): void {
    const { query, responder } = waiter;
    const reply = responder!.room();
    this.#pipeline.answerWaiter(query, entry, ede, reply);
    this.#answered(query, reply, true);
    responder!.send(waiter);
  }

  onFailure(waiter: Waiter, failure: ResolveFailure): void {
    const { query, responder } = waiter;
    const reply = responder!.room();
    waiter.failure = failure;
    this.#pipeline.fail(query, failure, reply);
    this.#answered(query, reply, true);
    responder!.send(waiter);
  }

  /** The one place that every response to a client's query passes, whatever its transport. */
  #answered(query: Query, reply: Reply, hasWaited = false): void {
    if (query.isOwn) return;
    const clock = this.#clock;
    const nowMs = clock.nowMs();
    const tookMs = nowMs - query.receivedAtMs;
    countLatency(this.#counts, query.transport, tookMs);
    const epochMs = clock.epochMs + (nowMs - clock.startedAtMs);
    const { snapshot } = this.#pipeline;
    if (hasWaited && this.#onSlow !== null && mayTell(query, snapshot)) {
      this.#onSlow(query, reply, epochMs, tookMs);
    }
    if (this.#log === null || !query.isLogged) return;
    this.#log.note(query, reply, snapshot, epochMs, tookMs);
  }
}
