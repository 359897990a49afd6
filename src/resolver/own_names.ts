import { equalNames, HashedName, isAtOrBelow, parseName, Qtype, Rcode } from "../dns/mod.ts";
import { invariant } from "../errors.ts";
import { writeAnswer, writeNegative } from "./own_answers.ts";
import type { Query } from "./query.ts";
import type { Reply } from "./reply.ts";

/** Seconds that clients keep answers about the service's own names. */
const OWN_TTL = 10;
/** Nobody keeps the answer to a leak test: each look-up is to arrive here. */
const LEAK_TTL = 0;
/** A label of a leak test: a digit, a hyphen, and a key of 8 bytes in hexadecimal. */
const LEAK_LABEL = /^\d-[0-9a-f]{16}$/;
const LEAK_LABEL_BYTES = 18;
/** Labels of `svc.test`, of names right below it, and of those of a leak test. */
const ZONE_LABELS = 2;
const CHILD_LABELS = 3;
const LEAK_NAME_LABELS = 4;

const LOOPBACK_V4 = Uint8Array.of(127, 0, 0, 1);
const LOOPBACK_V6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

const SERVICE_ZONE = wire("svc.test");

/** Says whether an uncompressed name is one of the service's own, which are never forwarded. */
export function isServiceName(name: Uint8Array): boolean {
  return isAtOrBelow(name, 0, SERVICE_ZONE, 0);
}

/** Answers names at and below `svc.test`, which are the service's own and never forwarded. */
export class OwnNames {
  readonly #zoneHash: number;
  readonly #healthHash: number;
  readonly #health: Uint8Array = wire("health.svc.test");
  readonly #leak: Uint8Array = wire("leak.svc.test");
  readonly #onLeakLookup: (query: Query, name: string) => void;

  /** `onLeakLookup` gets each query for a name that a leak test may have, in lower case. */
  constructor(seed: number, onLeakLookup: (query: Query, name: string) => void) {
    this.#onLeakLookup = onLeakLookup;
    const hashed = new HashedName();
    hashed.read(SERVICE_ZONE, 0, SERVICE_ZONE.length, seed);
    this.#zoneHash = hashed.hashes[0];
    hashed.read(this.#health, 0, this.#health.length, seed);
    this.#healthHash = hashed.hashes[0];
  }

  /** Says whether a name is one of these. */
  holds(packet: Uint8Array, name: HashedName): boolean {
    const apex = name.count - ZONE_LABELS;
    return apex >= 0 && name.hashes[apex] === this.#zoneHash &&
      equalNames(packet, name.offsets[apex], SERVICE_ZONE, 0);
  }

  /** Says whether a name is the one that tells how this node is. */
  isHealth(packet: Uint8Array, name: HashedName): boolean {
    return name.hashes[0] === this.#healthHash && name.count === CHILD_LABELS &&
      equalNames(packet, name.offsets[0], this.#health, 0);
  }

  /** Answers for a name that `holds`; clients keep negative answers for `negativeTtl` seconds. */
  answer(query: Query, reply: Reply, name: HashedName, negativeTtl: number): void {
    const { packet } = query;
    if (this.isHealth(packet, name)) {
      // The failover component asks every second, which is nothing to log.
      if (query.chain === null) query.isLogged = false;
      writeLoopback(query, reply, OWN_TTL, negativeTtl);
      return;
    }
    const leakAt = name.count - CHILD_LABELS;
    const isLeak = leakAt >= 0 && equalNames(packet, name.offsets[leakAt], this.#leak, 0);
    if (isLeak && name.count === LEAK_NAME_LABELS) {
      const label = leakLabel(packet, name.offsets[0]);
      if (label !== null) {
        this.#onLeakLookup(query, `${label}.leak.svc.test`);
        writeLoopback(query, reply, LEAK_TTL, negativeTtl);
        return;
      }
    }
    const exists = name.count === ZONE_LABELS || (isLeak && name.count === CHILD_LABELS);
    writeNegative(query, reply, exists ? Rcode.NoError : Rcode.NXDomain, negativeTtl);
  }
}

/** The label at `offset` in lower case, if it has the form of a leak test's. */
function leakLabel(packet: Uint8Array, offset: number): string | null {
  if (packet[offset] !== LEAK_LABEL_BYTES) return null;
  const bytes = packet.subarray(offset + 1, offset + 1 + LEAK_LABEL_BYTES);
  const label = String.fromCharCode(...bytes).toLowerCase();
  return LEAK_LABEL.test(label) ? label : null;
}

function writeLoopback(query: Query, reply: Reply, ttl: number, negativeTtl: number): void {
  if (query.qtype === Qtype.A) writeAnswer(query, reply, Qtype.A, ttl, LOOPBACK_V4);
  else if (query.qtype === Qtype.AAAA) writeAnswer(query, reply, Qtype.AAAA, ttl, LOOPBACK_V6);
  else writeNegative(query, reply, Rcode.NoError, negativeTtl);
}

function wire(text: string): Uint8Array {
  const name = parseName(text);
  invariant(name !== null, `${text} is a name`);
  return name;
}
