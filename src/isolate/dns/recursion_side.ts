import type { Cache } from "../../cache/mod.ts";
import {
  type Asker,
  type Exchange,
  type Forwarder,
  type Query,
  SplitSource,
  type TtlBounds,
} from "../../resolver/mod.ts";
import { type DeniesName, Recursor } from "../../resolver/recursive/mod.ts";
import type { CounterBlock } from "../../telemetry/mod.ts";
import type { DnsRecursion } from "../messages.ts";

/** What a dns isolate has for it. */
export interface RecursionPorts {
  readonly seed: number;
  readonly ttl: TtlBounds;
  readonly exchange: Exchange;
  readonly asker: Asker;
  readonly forwarder: Forwarder;
  readonly cache: Cache;
  readonly counters: CounterBlock;
  readonly nowMs: () => number;
  readonly nowSeconds: () => number;
  /** Has a question asked that nobody waits for. */
  readonly refresh: (query: Query) => void;
  /** `null`: nothing is validated. */
  readonly deniesName: DeniesName | null;
}

/** All of a dns isolate that asks name servers. Loaded where a configuration asks for it. */
export class RecursionSide {
  readonly recursor: Recursor;
  /** Upstreams keep the names that are theirs. */
  readonly source: SplitSource;

  constructor({ hints, ...recursion }: DnsRecursion, ports: RecursionPorts) {
    const { forwarder } = ports;
    this.recursor = new Recursor({
      ...recursion,
      ...ports,
      hints,
      random: Math.random,
      isForwarded: (name, length) => forwarder.serves(name, length),
      deniesName: ports.deniesName ?? (() => false),
    });
    this.source = new SplitSource(forwarder, this.recursor);
  }
}
