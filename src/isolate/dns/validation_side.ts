import type { Cache } from "../../cache/mod.ts";
import { TrustAnchors } from "../../dnssec/mod.ts";
import { CheckQueue, Validation } from "../../resolver/validate/mod.ts";
import type { CounterBlock } from "../../telemetry/mod.ts";
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

/** All of a dns isolate that validates. Loaded where a configuration asks for it. */
export class ValidationSide {
  readonly judge: Validation;
  readonly ways: CheckWays = new CheckWays();

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
    this.judge.believesClock = trust.believesClock;
  }

  /** Results are told of by messages, for which the runtime needs its turns. */
  get needsLoop(): boolean {
    return this.ways.usesPorts && this.judge.active > 0;
  }

  /** Goes on with other anchors; says whether what was answered before was not validated. */
  trust(trust: DnsTrust): boolean {
    const { believesClock } = this.judge;
    this.judge.anchors = anchorsOf(trust);
    this.judge.believesClock = trust.believesClock;
    return believesClock !== trust.believesClock;
  }
}

function anchorsOf({ anchors, negative }: DnsTrust): TrustAnchors {
  return new TrustAnchors(anchors, negative);
}
