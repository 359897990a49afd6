import { EmbeddingPrefix } from "../../addr/mod.ts";
import type { Cache } from "../../cache/mod.ts";
import { UdpBatch } from "../../native/mod.ts";
import {
  Asker,
  BeginLine,
  ClientWaits,
  Dns64,
  Flights,
  Forwarder,
  KeptMessages,
  type Query,
  RebindingProtection,
} from "../../resolver/mod.ts";
import type { CounterBlock } from "../../telemetry/mod.ts";
import type { DnsStart } from "../messages.ts";
import type { Loaded } from "./loaded.ts";
import type { RecursionSide } from "./recursion_side.ts";
import type { UpstreamExchange } from "./upstream_exchange.ts";
import type { ValidationSide } from "./validation_side.ts";

/** What a dns isolate has for those who find answers. */
export interface ResolvingPorts {
  readonly exchange: UpstreamExchange;
  readonly cache: Cache;
  readonly counters: CounterBlock;
  /** Milliseconds, monotonic. */
  readonly nowMs: () => number;
  /** Seconds since 1970. */
  readonly nowSeconds: () => number;
  /** A turn begins; the answers of it are to be sent at its end. */
  readonly beginTurn: () => void;
  /** Starts and stops calls of `Flights.tick`. */
  readonly ticking: (on: boolean) => void;
}

/** Those who find what the cache does not know. */
export interface Resolving {
  readonly asker: Asker;
  readonly forwarder: Forwarder;
  /** `null`: upstreams are asked for every name. */
  readonly recursion: RecursionSide | null;
  /** `null`: nothing is validated. */
  readonly validation: ValidationSide | null;
  readonly flights: Flights;
}

/** Puts them together as `start` asks for. */
export function openResolving(
  start: DnsStart,
  { Validation, Recursion }: Loaded,
  ports: ResolvingPorts,
): Resolving {
  const { exchange, cache, counters, nowMs, nowSeconds, beginTurn, ticking } = ports;
  const { seed, ttl, serveStale, rebindingExempt } = start;
  const asker = new Asker({
    exchange,
    counters,
    openMax: start.openMax,
    nowMs,
    random: (target) => void crypto.getRandomValues(target),
  });
  const messages = new KeptMessages(cache, nowSeconds);
  const elsewhere = { messages, seed };
  const embedding = start.dns64 === null ? null : new EmbeddingPrefix(start.dns64.prefix);
  const synthesis = { cache, messages, counts: counters.values, seed };
  const { upstreams, lostDomains, strategy } = start;
  const forwarder = new Forwarder({
    ...{
      upstreams,
      lostDomains,
      strategy,
      random: Math.random,
      exchange,
      asker,
      counters,
      ttl,
      nowMs,
    },
    ...(start.recursion !== null && { elsewhere }),
  });
  const common = { seed, cache, counters, nowMs, nowSeconds };
  const refresh = (query: Query) => flights.refresh(query);
  const deniesName = Validation?.deniesName ?? null;
  const asking = { ttl, exchange, asker, forwarder, refresh, deniesName };
  const recursion = start.recursion === null || Recursion === null
    ? null
    : new Recursion(start.recursion, { ...common, ...asking });
  const validation = start.trust === null || Validation === null
    ? null
    : new Validation(start.trust, { ...common, beginTurn });
  const source = recursion?.source ?? forwarder;
  // Whose sockets are the runtime's has no turns of its own.
  const line = validation === null || start.sockets === null
    ? null
    : validation.line = new BeginLine(
      source,
      () => validation.judge.active > 0,
      (query, { zone }) => zone === undefined ? null : validation.judge.refusal(query, zone),
    );
  const flights: Flights = new Flights({
    source: line ?? source,
    judge: validation?.judge ?? null,
    finisher: start.dns64 === null || embedding === null
      ? null
      : new Dns64({ ...synthesis, embedding, exclude: start.dns64.exclude }),
    cache,
    counters,
    rebinding: rebindingExempt === null
      ? null
      : new RebindingProtection(rebindingExempt, embedding),
    serveStale,
    clients: new ClientWaits(start.neverLimited, seed),
    senderBytes: UdpBatch.SENDER_BYTES,
    nowMs,
    nowSeconds,
    ticking,
  });
  return { asker, forwarder, recursion, validation, flights };
}
