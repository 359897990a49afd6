import type { ClockJudge } from "../clock/mod.ts";
import { formatName, nameKey, Qtype } from "../dns/mod.ts";
import {
  anchorsInForce,
  describeAnchors,
  isDue,
  observe,
  readRolloverState,
  readSections,
  type RolloverState,
  type RrSet,
  startRollover,
  stepRollover,
  type TrustAnchor,
  TrustAnchors,
  verifySignatureAsync,
} from "../dnssec/mod.ts";
import { messageOf } from "../errors.ts";
import type { DnsTrust } from "../isolate/mod.ts";
import { log } from "../log.ts";

/** How often it is looked whether a zone's keys are due, and what the clock is worth. */
const LOOK_MS = 10_000;
/** Zones whose keys are looked at in one go; the others have their turn a moment later. */
const ZONES_PER_LOOK = 4;

/** Where the state is kept, and what the keys are had from. */
export interface TrustKeeperPorts {
  readonly clock: Pick<ClockJudge, "isBelieved" | "nowMs">;
  /** What was kept last; `null`: nothing. */
  readonly read: () => Promise<string | null>;
  readonly write: (text: string) => Promise<void>;
  /** The response to a question for a zone's DNSKEY records, or `null`. */
  readonly fetchKeys: (zone: Uint8Array) => Promise<Uint8Array | null>;
  readonly publish: (trust: DnsTrust) => void;
  /** Calls `work` now and then; returns what ends that. */
  readonly every: (ms: number, work: () => void) => () => void;
}

/** A zone with anchors of its own. */
interface Watched {
  readonly zone: Uint8Array;
  readonly anchors: readonly TrustAnchor[];
  state: RolloverState;
}

/**
 * Keeps what answers are held against: follows the keys of anchored zones as they are rolled
 * (RFC 5011), and tells where the system's clock is worth nothing. What it has seen is a file of this
 * member's own: nobody is asked before a root that was rolled is believed.
 */
export class TrustKeeper {
  readonly #ports: TrustKeeperPorts;
  readonly #negative: readonly Uint8Array[];
  readonly #watched: readonly Watched[];
  /** As it was told last. */
  #trust: DnsTrust;
  #isLooking = false;
  #problem: string | null = null;

  private constructor(
    negative: readonly Uint8Array[],
    watched: readonly Watched[],
    ports: TrustKeeperPorts,
  ) {
    this.#negative = negative;
    this.#watched = watched;
    this.#ports = ports;
    this.#trust = this.#inForce();
  }

  /** Begins with the configured anchors, or with what was kept of these. */
  static async open(
    configured: readonly TrustAnchor[],
    negative: readonly Uint8Array[],
    ports: TrustKeeperPorts,
  ): Promise<TrustKeeper> {
    const kept = await readStates(ports);
    const zones = Map.groupBy(configured, ({ zone }) => nameKey(zone));
    const watched = [...zones.values()].map((anchors): Watched => {
      const [{ zone }] = anchors;
      const name = formatName(zone);
      const former = kept.find((state) => state.zone === name) ?? null;
      return { zone, anchors, state: startRollover(name, describeAnchors(anchors), former) };
    });
    return new TrustKeeper(negative, watched, ports);
  }

  /** What is to be validated by now. */
  get trust(): DnsTrust {
    return this.#trust;
  }

  get problems(): string[] {
    const found = this.#problem === null ? [] : [this.#problem];
    if (this.#trust.pastS !== null) {
      found.push(
        "what is signed later than the system's clock says is not validated until it is set",
      );
    }
    return found;
  }

  /** Looks now, and from now on. Returns what ends that. */
  start(): () => void {
    void this.look();
    return this.#ports.every(LOOK_MS, () => void this.look());
  }

  /** Looks at the clock, and at the keys that are due. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const { clock } = this.#ports;
      const nowS = Math.floor(clock.nowMs() / 1_000);
      const due = clock.isBelieved
        ? this.#watched.filter(({ state }) => isDue(state, nowS)).slice(0, ZONES_PER_LOOK)
        : [];
      for (const watched of due) await this.#probe(watched, nowS);
      this.#tell();
      if (due.length > 0) await this.#keep();
    } catch (error) {
      log.error("trust anchors can't be looked at", { error });
    } finally {
      this.#isLooking = false;
    }
  }

  async #probe(watched: Watched, nowS: number): Promise<void> {
    const { zone, anchors, state } = watched;
    const point = new TrustAnchors(anchorsInForce(state, anchors)).closest(zone);
    if (point?.kind !== "anchor") return;
    const rrset = keysOf(await this.#ports.fetchKeys(zone).catch(() => null), zone);
    const context = { nowS, check: verifySignatureAsync };
    const sighting = await observe(state, point.trust, rrset, context);
    watched.state = stepRollover(state, sighting);
    this.#logChanges(state, watched.state);
  }

  #logChanges(former: RolloverState, state: RolloverState): void {
    if (former.keys.length === 0) return; // Its first look.
    const phases = new Map(former.keys.map(({ dnskey, phase }) => [dnskey, phase]));
    for (const { dnskey, phase } of state.keys) {
      if (phases.get(dnskey) === phase) continue;
      log.warn("a key of a trust anchor's zone changed", { zone: state.zone, phase, dnskey });
    }
  }

  #inForce(): DnsTrust {
    const { clock } = this.#ports;
    return {
      anchors: this.#watched.flatMap(({ state, anchors }) => anchorsInForce(state, anchors)),
      negative: this.#negative,
      pastS: clock.isBelieved ? null : Math.floor(clock.nowMs() / 1_000),
    };
  }

  /** Tells of what has changed. */
  #tell(): void {
    const trust = this.#inForce();
    const isSame = (trust.pastS === null) === (this.#trust.pastS === null) &&
      describeAnchors(trust.anchors) === describeAnchors(this.#trust.anchors);
    if (isSame) return;
    this.#trust = trust;
    this.#ports.publish(trust);
  }

  async #keep(): Promise<void> {
    try {
      await this.#ports.write(JSON.stringify({ zones: this.#watched.map(({ state }) => state) }));
      this.#problem = null;
    } catch (error) {
      this.#problem = `trust anchors that were rolled can't be kept: ${messageOf(error)}`;
    }
  }
}

/** What was kept; what can't be read is begun anew. */
async function readStates({ read }: TrustKeeperPorts): Promise<readonly RolloverState[]> {
  try {
    const text = await read();
    if (text === null) return [];
    const { zones } = JSON.parse(text) as { zones: unknown };
    if (!Array.isArray(zones)) return [];
    return zones.map(readRolloverState).filter((state) => state !== null);
  } catch (error) {
    log.warn("kept trust anchors can't be read: the configured ones are followed anew", {
      error: messageOf(error),
    });
    return [];
  }
}

function keysOf(message: Uint8Array | null, zone: Uint8Array): RrSet | null {
  const answer = message === null ? [] : readSections(message)?.answer ?? [];
  return answer.find(({ owner, type }) =>
    type === Qtype.DNSKEY && nameKey(owner) === nameKey(zone)
  ) ?? null;
}
