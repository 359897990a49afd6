import type { Cache } from "../../cache/mod.ts";
import { deniesName, TrustAnchors } from "../../dnssec/mod.ts";
import type { BeginLine } from "../../resolver/mod.ts";
import { CheckQueue, Validation } from "../../resolver/validate/mod.ts";
import type { CounterBlock } from "../../telemetry/mod.ts";
import type { WayToThread } from "../check/messages.ts";
import type { DnsTrust } from "../messages.ts";
import { CheckWays } from "./check_threads.ts";

/** What a dns isolate has for it. */
export interface ValidationPorts {
  readonly seed: number;
  readonly cache: Cache;
  readonly counters: CounterBlock;
  readonly nowMs: () => number;
  readonly nowSeconds: () => number;
  /** A turn begins; the answers of it are to be sent at its end. */
  readonly beginTurn: () => void;
}

/** Awaits that take all as far as it goes; each is a fraction of a microsecond. */
const SETTLE_STEPS_MAX = 10_000;

/** Sockets of upstreams, results of checks, and questions to begin with, that one turn takes on. */
const SOCKETS = 2;
const STEPS = 2;

/** All of a dns isolate that validates. Loaded where a configuration asks for it. */
export class ValidationSide {
  /** For who asks name servers. */
  static readonly deniesName: typeof deniesName = deniesName;
  readonly judge: Validation;
  readonly ways: CheckWays = new CheckWays();
  /** Questions that wait to be asked; `null`: none do. */
  line: BeginLine | null = null;
  #isWoken = false;

  constructor(trust: DnsTrust, ports: ValidationPorts) {
    const { seed, cache, counters, nowMs, nowSeconds, beginTurn } = ports;
    const checks = new CheckQueue({ threads: this.ways, counters, nowMs });
    this.ways.events = checks;
    this.judge = new Validation({
      seed,
      anchors: anchorsOf(trust),
      checks,
      cache,
      counters,
      nowMs,
      nowSeconds,
      inTurn: (work) => {
        beginTurn();
        work();
      },
    });
    this.judge.pastS = trust.pastS;
  }

  /** Takes a way to a thread; `watch` has this isolate's wait end by a descriptor. */
  lead(way: WayToThread, watch: (fd: number) => boolean): void {
    if (way.wake !== null) this.#isWoken ||= watch(way.wake); // The same for all threads.
    this.ways.take(way);
  }

  /** Validates, which is more work than all else: a turn takes on little of it. */
  get isActive(): boolean {
    return this.judge.active > 0 || (this.line?.waiting ?? 0) > 0;
  }

  /** Events that a turn takes on; `undefined`: whatever there is. */
  get eventsMax(): number | undefined {
    return this.isActive ? SOCKETS : undefined;
  }

  /** There is more for the next turn. */
  get hasMore(): boolean {
    return this.ways.hasResults || (this.line?.waiting ?? 0) > 0;
  }

  /** Goes on with what one turn takes on, or with all there is; `between` is called after each step. */
  goOn(between: () => void, withAll: boolean): void {
    for (let step = 0; this.hasMore && (withAll || step < STEPS); step++) {
      this.ways.read(1);
      this.line?.next();
      between();
    }
  }

  /** Something can go on, which nobody does while the isolate waits. */
  get isBusy(): boolean {
    return this.judge.busy > 0;
  }

  /** Has everything go on that can by itself; says whether it came to an end. */
  async settle(): Promise<boolean> {
    for (let i = 0; i < SETTLE_STEPS_MAX && this.isBusy; i++) await undefined;
    return !this.isBusy;
  }

  /** Results are told of by messages, for which the runtime needs its turns. */
  get needsLoop(): boolean {
    return this.ways.usesPorts && this.judge.active > 0;
  }

  /** Goes on with other anchors; says whether what was answered before may not have been validated. */
  trust(trust: DnsTrust): boolean {
    const { pastS } = this.judge;
    this.judge.anchors = anchorsOf(trust);
    this.judge.pastS = trust.pastS;
    return (pastS === null) !== (trust.pastS === null);
  }
}

function anchorsOf({ anchors, negative }: DnsTrust): TrustAnchors {
  return new TrustAnchors(anchors, negative);
}
