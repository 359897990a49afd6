/**
 * Follows a zone's trust anchors as they are rolled (RFC 5011): a pure state machine, its state
 * plain data for JSON.
 */
import { decodeBase64, encodeBase64 } from "../bytes/mod.ts";
import { nameKey, parseName, Qtype } from "../dns/mod.ts";
import type { Trust, TrustAnchor } from "./anchors.ts";
import { isUsable, readDnskeys } from "./keys.ts";
import { Allowance } from "./limits.ts";
import { SECURE } from "./outcome.ts";
import { type Dnskey, readDnskey, REVOKE_FLAG, SEP_FLAG } from "./records.ts";
import type { RrSet } from "./rrset.ts";
import { type CheckContext, checkRrSet } from "./signature.ts";
import { checkZoneKeys } from "./zone_keys.ts";

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
/** How long a new key is watched before it is trusted, at least (RFC 5011 §2.4.1). */
export const ADD_HOLD_DOWN_S = 30 * DAY_S;
/** How long a revoked key is remembered (RFC 5011 §2.4.2). */
export const REMOVE_HOLD_DOWN_S = 30 * DAY_S;
/** Bounds of the time to the next look (RFC 5011 §2.3). */
const PROBE_S_MIN = HOUR_S;
const PROBE_S_MAX = 15 * DAY_S;
const RETRY_S_MAX = DAY_S;
/** Keys that are watched; a zone in a roll has three. */
export const WATCHED_KEYS_MAX = 16;

/** RFC 5011 §4.2; Start and Removed are not to be in the list. */
export type KeyPhase = "pending" | "valid" | "missing" | "revoked";

export interface WatchedKey {
  /** RDATA in base64, without the flag of revocation. */
  readonly dnskey: string;
  readonly phase: KeyPhase;
  /** Seconds since 1970 at which the phase began. */
  readonly sinceS: number;
  /** Seconds that a pending key has to be watched. */
  readonly holdDownS: number;
}

export interface RolloverState {
  /** In presentation form. */
  readonly zone: string;
  /** The anchors that this began with; with others it begins anew. */
  readonly configured: string;
  readonly keys: readonly WatchedKey[];
  /** Seconds since 1970. */
  readonly nextProbeS: number;
}

/** What a look at the zone's keys brought. */
export interface Sighting {
  readonly nowS: number;
  /** Keys of the DNSKEY RRset with the SEP flag, not revoked; `null` where it is not secure. */
  readonly seen: readonly Dnskey[] | null;
  /** Keys with the flag of revocation that have signed the RRset. */
  readonly revoked: readonly Dnskey[];
  /** Those seen that the configured anchors vouch for; asked for once, at the first look. */
  readonly vouched: readonly Dnskey[];
  /** Seconds that the RRset and its signature go on to live. */
  readonly ttl: number;
}

/** Identifies a set of anchors. */
export function describeAnchors(anchors: readonly TrustAnchor[]): string {
  return anchors.map(({ zone, type, rdata }) =>
    `${type} ${encodeBase64(zone)} ${encodeBase64(rdata)}`
  ).sort().join("\n");
}

/** Begins with the anchors that are configured, or goes on with what was kept of these. */
export function startRollover(
  zone: string,
  configured: string,
  kept: RolloverState | null,
): RolloverState {
  if (kept !== null && kept.zone === zone && kept.configured === configured) return kept;
  return { zone, configured, keys: [], nextProbeS: 0 };
}

/** Says whether the zone's keys are to be looked at; a time that was set by a wrong clock is none. */
export function isDue({ nextProbeS }: RolloverState, nowS: number): boolean {
  return nextProbeS <= nowS || nextProbeS > nowS + PROBE_S_MAX;
}

/** Reads what JSON brings back, or returns `null` where it is no state. */
export function readRolloverState(value: unknown): RolloverState | null {
  if (typeof value !== "object" || value === null) return null;
  const { zone, configured, keys, nextProbeS } = value as Record<string, unknown>;
  if (typeof zone !== "string" || parseName(zone) === null) return null;
  if (typeof configured !== "string" || !isTime(nextProbeS) || !Array.isArray(keys)) return null;
  if (keys.length > WATCHED_KEYS_MAX || !keys.every(isWatchedKey)) return null;
  return { zone, configured, keys, nextProbeS };
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function isWatchedKey(value: unknown): value is WatchedKey {
  if (typeof value !== "object" || value === null) return false;
  const { dnskey, phase, sinceS, holdDownS } = value as Record<string, unknown>;
  return typeof dnskey === "string" && readKey(dnskey) !== null && isTime(sinceS) &&
    isTime(holdDownS) && ["pending", "valid", "missing", "revoked"].includes(phase as string);
}

function readKey(dnskey: string): Dnskey | null {
  const rdata = decodeBase64(dnskey);
  return rdata === null ? null : readDnskey(rdata);
}

/** A key's RDATA without the flag of revocation: what it is known by. */
function identify({ rdata }: Dnskey): string {
  const copy = rdata.slice();
  copy[1] &= ~REVOKE_FLAG;
  return encodeBase64(copy);
}

/**
 * The anchors in force: the keys that are trusted now, or before the first look the given ones. Of a
 * zone that has revoked all of its keys these stay, by which nothing is proven.
 */
export function anchorsInForce(
  state: RolloverState,
  configured: readonly TrustAnchor[],
): readonly TrustAnchor[] {
  const zone = parseName(state.zone);
  const trusted = state.keys.filter(isTrusted);
  const left = trusted.length > 0 ? trusted : state.keys.filter(({ phase }) => phase === "revoked");
  if (zone === null || left.length === 0) return configured;
  return left.flatMap(({ dnskey, phase }) => {
    const rdata = decodeBase64(dnskey);
    if (rdata === null) return [];
    if (phase === "revoked") rdata[1] |= REVOKE_FLAG;
    return [{ zone, type: Qtype.DNSKEY, rdata }];
  });
}

function isTrusted({ phase }: WatchedKey): boolean {
  return phase === "valid" || phase === "missing";
}

/** One look's consequences (RFC 5011 §4). */
export function stepRollover(state: RolloverState, sighting: Sighting): RolloverState {
  const { nowS, seen, ttl } = sighting;
  const revoked = new Set(sighting.revoked.map(identify));
  const stepped = state.keys.map((key) => stepRevoked(key, revoked, nowS));
  // Without any other key the zone would begin anew, with the one that it has revoked.
  const mayForget = stepped.some(isTrusted);
  const marked = stepped.filter(({ phase, sinceS }) =>
    phase !== "revoked" || !mayForget || nowS - sinceS < REMOVE_HOLD_DOWN_S
  );
  if (seen === null) {
    const retryS = Math.max(PROBE_S_MIN, Math.min(RETRY_S_MAX, ttl / 10));
    return { ...state, keys: marked, nextProbeS: nowS + retryS };
  }
  const present = new Set(seen.map(identify));
  const keys = marked.map((key) => stepPresent(key, present.has(key.dnskey), nowS))
    .filter((key) => key !== null);
  const vouched = new Set(state.keys.length === 0 ? sighting.vouched.map(identify) : []);
  for (const dnskey of present) {
    if (keys.length === WATCHED_KEYS_MAX) break;
    if (keys.some((key) => key.dnskey === dnskey)) continue;
    const phase = vouched.has(dnskey) ? "valid" : "pending";
    keys.push({ dnskey, phase, sinceS: nowS, holdDownS: Math.max(ADD_HOLD_DOWN_S, ttl) });
  }
  const nextS = Math.max(PROBE_S_MIN, Math.min(PROBE_S_MAX, ttl / 2));
  return { ...state, keys, nextProbeS: nowS + nextS };
}

function stepRevoked(key: WatchedKey, revoked: ReadonlySet<string>, nowS: number): WatchedKey {
  if (!isTrusted(key) || !revoked.has(key.dnskey)) return key;
  return { ...key, phase: "revoked", sinceS: nowS };
}

function stepPresent(key: WatchedKey, isPresent: boolean, nowS: number): WatchedKey | null {
  switch (key.phase) {
    case "pending":
      if (!isPresent) return null; // It begins anew, should it come back.
      if (key.sinceS > nowS) return { ...key, sinceS: nowS }; // The clock was wrong.
      return nowS - key.sinceS < key.holdDownS ? key : { ...key, phase: "valid", sinceS: nowS };
    case "valid":
      return isPresent ? key : { ...key, phase: "missing", sinceS: nowS };
    case "missing":
      return isPresent ? { ...key, phase: "valid", sinceS: nowS } : key;
    case "revoked":
      return key;
  }
}

/** Looks at a DNSKEY RRset that was looked up for this, under the anchors in force. */
export async function observe(
  state: RolloverState,
  trust: Trust,
  rrset: RrSet | null,
  context: CheckContext,
): Promise<Sighting> {
  const { nowS } = context;
  const nothing: Sighting = { nowS, seen: null, revoked: [], vouched: [], ttl: 0 };
  const zone = parseName(state.zone);
  if (rrset === null || zone === null || nameKey(rrset.owner) !== nameKey(zone)) return nothing;
  const keys = readDnskeys(rrset.rdatas).filter(isSep);
  const revoked = await findRevoked(state, keys, rrset, context);
  const checks = new Allowance("CHAIN_CHECKS_MAX");
  const checked = await checkZoneKeys(rrset, trust, context, checks);
  if (checked.zone.finding !== SECURE) return { ...nothing, revoked };
  const seen = keys.filter(isUsable);
  return { nowS, seen, revoked, vouched: checked.trusted.filter(isSep), ttl: checked.ttl };
}

function isSep({ flags }: Dnskey): boolean {
  return (flags & SEP_FLAG) !== 0;
}

/** Watched keys that say of themselves, under their own signature, that they are revoked. */
async function findRevoked(
  state: RolloverState,
  keys: readonly Dnskey[],
  rrset: RrSet,
  context: CheckContext,
): Promise<Dnskey[]> {
  const watched = new Set(state.keys.map(({ dnskey }) => dnskey));
  const checks = new Allowance("CHAIN_CHECKS_MAX");
  const revoked: Dnskey[] = [];
  for (const key of keys) {
    if ((key.flags & REVOKE_FLAG) === 0 || !watched.has(identify(key))) continue;
    // The tag is that of the revoked key (RFC 5011 §2.1); nothing else may be signed by it.
    const self = { ...key, flags: key.flags & ~REVOKE_FLAG };
    const { finding } = await checkRrSet(rrset, rrset.owner, [self], context, checks);
    if (finding === SECURE) revoked.push(key);
  }
  return revoked;
}
