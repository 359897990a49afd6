import type { Cache } from "../../cache/mod.ts";
import { deniesName, TrustAnchors } from "../../dnssec/mod.ts";
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

/**
 * What one turn takes on while answers are validated, which is more work than all else: clients'
 * packets, before that sockets of upstreams, and results of checks. A cached answer waits for no more.
 */
const PART = { packets: 8, sockets: 2, results: 2 } as const;

/** All of a dns isolate that validates. Loaded where a configuration asks for it. */
export class ValidationSide {
  /** For who asks name servers. */
  static readonly deniesName: typeof deniesName = deniesName;
  readonly judge: Validation;
  readonly ways: CheckWays = new CheckWays();
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

  /** How much a turn takes on; `null`: whatever there is. */
  get part(): typeof PART | null {
    return this.judge.active > 0 ? PART : null;
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
