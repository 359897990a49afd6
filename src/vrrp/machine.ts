import { getU32 } from "../bytes/mod.ts";
import type { Advertisement } from "./advertisement.ts";

/** Failed checks in a row after which the address is handed over. */
const FAILURES_MAX = 3;
/** Good checks in a row after which it may be held, again or at all. */
const GOOD_MIN = 2;
/** Announcements that answer another node's keep this apart: its packets may be forged. */
const ANSWER_MS_MIN = 100;
/** How long a node that could not add the address leaves it to the peer. */
const REFUSED_MS = 10_000;
/** A tick later than this comes from a process, or a machine, that was asleep and heard nothing. */
const ASLEEP_MS_MIN = 1_000;
/** Intervals without a link after which the peer has taken over, whatever its priority. */
const DARK_INTERVALS = 4;

export interface VrrpOptions {
  /** 1 to 254. */
  readonly priority: number;
  /** Whether a higher priority takes the address from a lower one that holds it. */
  readonly preempt: boolean;
  readonly intervalMs: number;
  /** The other node's address: the greater one wins between equal priorities. */
  readonly peer: Uint8Array;
}

export type Role = "backup" | "holder";

/** Why a node has its role. */
export type Reason =
  | "started"
  | "the program before held it"
  | "stopped"
  | "the peer is silent"
  | "the peer gave it up"
  | "the peer has a lower priority"
  | "the peer has a higher priority"
  | "DNS does not answer on this node"
  | "the interface has no link or no address"
  | "the address cannot be added";

/** What the last advertisement said. */
export interface PeerState extends Advertisement {
  readonly heardAtMs: number;
}

/** Times are of one clock that never steps, in milliseconds. */
export interface VrrpState {
  readonly role: Role;
  readonly reason: Reason;
  /** Holder: of the next announcement. Backup: of taking over, as far as it may. */
  readonly dueAtMs: number;
  /** Of the last announcement. */
  readonly announcedAtMs: number;
  readonly isHealthy: boolean;
  /** Checks in a row that came out against `isHealthy`. */
  readonly contrary: number;
  /** This node's address on the interface; `null` without one, or without a link. */
  readonly own: Uint8Array | null;
  /** Since when there is no `own`. */
  readonly darkSinceMs: number;
  /** Until then, since the system did not take the address. */
  readonly refusedUntilMs: number;
  readonly peer: PeerState | null;
}

export type Event =
  /** The time has come that `nextDueMs` told. */
  | { readonly type: "tick" }
  | { readonly type: "advertisement"; readonly advertisement: Advertisement }
  | { readonly type: "health"; readonly isGood: boolean }
  /** The interface as it is now; `hasFloating`: it has the floating address. */
  | {
    readonly type: "interface";
    readonly own: Uint8Array | null;
    readonly hasFloating: boolean;
  }
  /** The system did not take the address. */
  | { readonly type: "refused" }
  | { readonly type: "stop" };

/** What is to be done, in this order. */
export type Effect =
  /** Add the address to the interface, or take it away. */
  | { readonly type: "hold" | "release" }
  | { readonly type: "announce"; readonly priority: number }
  /** Tell every neighbour where the address is: in both forms, or in one as a reminder. */
  | { readonly type: "claim" | "remind" };

export interface Step {
  readonly state: VrrpState;
  readonly effects: readonly Effect[];
}

const HOLD: Effect = { type: "hold" };
const RELEASE: Effect = { type: "release" };
const CLAIM: Effect = { type: "claim" };
const REMIND: Effect = { type: "remind" };

/**
 * A node that has just started: backup, its health unknown, its interface not yet seen; or, where it
 * goes on for a program that held the address, holder until it finds a reason not to be.
 */
export function initialState(nowMs: number, role: Role = "backup"): VrrpState {
  const isHolder = role === "holder";
  return {
    role,
    reason: isHolder ? "the program before held it" : "started",
    dueAtMs: nowMs,
    announcedAtMs: -Infinity,
    isHealthy: isHolder,
    contrary: 0,
    own: null,
    darkSinceMs: nowMs,
    refusedUntilMs: -Infinity,
    peer: null,
  };
}

/** Skew_Time: the lower the priority, the longer a backup waits (RFC 9568 §6.1). */
function skewMs(options: VrrpOptions, state: VrrpState): number {
  return (256 - options.priority) / 256 * (state.peer?.intervalMs ?? options.intervalMs);
}

/** Active_Down_Interval: how long the peer may be silent (RFC 9568 §6.1). */
export function masterDownMs(options: VrrpOptions, state: VrrpState): number {
  return 3 * (state.peer?.intervalMs ?? options.intervalMs) + skewMs(options, state);
}

/** Says whether this node could hold the address. */
export function isFit(state: VrrpState): boolean {
  return state.isHealthy && state.own !== null;
}

/** When the next tick is due; `Infinity`: nothing happens by time alone. */
export function nextDueMs(options: VrrpOptions, state: VrrpState): number {
  if (state.role === "holder") {
    return state.own === null
      ? state.darkSinceMs + DARK_INTERVALS * options.intervalMs
      : state.dueAtMs;
  }
  return isFit(state) ? Math.max(state.dueAtMs, state.refusedUntilMs) : Infinity;
}

/** The whole of it: no clock, no socket, no interface. */
export function step(options: VrrpOptions, state: VrrpState, event: Event, nowMs: number): Step {
  switch (event.type) {
    case "tick":
      return stepTick(options, state, nowMs);
    case "advertisement":
      return stepAdvertisement(options, state, event.advertisement, nowMs);
    case "health":
      return stepHealth(options, state, event.isGood, nowMs);
    case "interface":
      return stepInterface(options, state, event.own, event.hasFloating, nowMs);
    case "refused":
      return giveUp(
        options,
        { ...state, refusedUntilMs: nowMs + REFUSED_MS },
        "the address cannot be added",
        nowMs,
      );
    case "stop":
      return giveUp(options, state, "stopped", nowMs);
  }
}

function unchanged(state: VrrpState): Step {
  return { state, effects: [] };
}

function stepTick(options: VrrpOptions, state: VrrpState, nowMs: number): Step {
  const dueMs = nextDueMs(options, state);
  if (nowMs < dueMs) return unchanged(state);
  if (state.role === "holder") {
    return state.own === null
      ? giveUp(options, state, "the interface has no link or no address", nowMs)
      : announce(options, state, REMIND, nowMs);
  }
  if (nowMs - dueMs > Math.max(options.intervalMs, ASLEEP_MS_MIN)) {
    // It can't say that the peer was silent: it listens to one more announcement.
    const listenMs = (state.peer?.intervalMs ?? options.intervalMs) + skewMs(options, state);
    return unchanged({ ...state, dueAtMs: nowMs + listenMs, refusedUntilMs: -Infinity });
  }
  return takeOver(options, state, nowMs);
}

function takeOver(options: VrrpOptions, state: VrrpState, nowMs: number): Step {
  const { peer } = state;
  const reason: Reason = peer === null || nowMs - peer.heardAtMs >= masterDownMs(options, state)
    ? "the peer is silent"
    : peer.priority === 0
    ? "the peer gave it up"
    : "the peer has a lower priority";
  const { state: next, effects } = announce(
    options,
    { ...state, role: "holder", reason, dueAtMs: nowMs },
    CLAIM,
    nowMs,
  );
  // The address comes first: nobody is to be told of one that could not be added.
  return { state: next, effects: [HOLD, ...effects] };
}

/** Announces, and says by which form the neighbours hear of it as well. */
function announce(options: VrrpOptions, state: VrrpState, arp: Effect, nowMs: number): Step {
  const { priority, intervalMs } = options;
  // A late tick is made up for, so that the pace stays; one that was missed is not.
  const isLate = nowMs - state.dueAtMs >= intervalMs || nowMs < state.dueAtMs;
  const dueAtMs = (isLate ? nowMs : state.dueAtMs) + intervalMs;
  return {
    state: { ...state, dueAtMs, announcedAtMs: nowMs },
    // Neighbours that missed a claim, in a split for one, learn of it with the next announcement.
    // They hear first: another holder answers the announcement by a claim, which is to be the last.
    effects: [arp, { type: "announce", priority }],
  };
}

/** Stands back, and says so: the peer takes over without waiting for silence. */
function giveUp(options: VrrpOptions, state: VrrpState, reason: Reason, nowMs: number): Step {
  if (state.role === "backup") return unchanged({ ...state, reason });
  const dueAtMs = nowMs + masterDownMs(options, state);
  return {
    state: { ...state, role: "backup", reason, dueAtMs },
    effects: [RELEASE, { type: "announce", priority: 0 }],
  };
}

function stepAdvertisement(
  options: VrrpOptions,
  before: VrrpState,
  advertisement: Advertisement,
  nowMs: number,
): Step {
  const state = { ...before, peer: { ...advertisement, heardAtMs: nowMs } };
  const { priority } = advertisement;
  if (state.role === "backup") {
    if (priority === 0) return unchanged({ ...state, dueAtMs: nowMs + skewMs(options, state) });
    // A higher priority that may take the address lets its time run out.
    const takesIt = options.preempt && priority < options.priority && isFit(state);
    if (takesIt) return unchanged(state);
    return unchanged({ ...state, dueAtMs: nowMs + masterDownMs(options, state) });
  }
  if (state.own === null) return unchanged(state);
  if (outranks(options, state.own, priority)) {
    // One more announcement first: a winner that heard nothing of this node, as after a split,
    // learns that there was another holder, and claims the address again.
    return {
      state: {
        ...state,
        role: "backup",
        reason: "the peer has a higher priority",
        dueAtMs: nowMs + masterDownMs(options, state),
        announcedAtMs: nowMs,
      },
      effects: [{ type: "announce", priority: options.priority }, RELEASE],
    };
  }
  // Another holder, or one that has just ceased to be: it and all neighbours are told at once.
  const answerAtMs = Math.max(nowMs, state.announcedAtMs + ANSWER_MS_MIN);
  if (answerAtMs > nowMs) {
    return unchanged({ ...state, dueAtMs: Math.min(state.dueAtMs, answerAtMs) });
  }
  return announce(options, state, CLAIM, nowMs);
}

/** Says whether the peer with this priority comes before this node, both being holders. */
function outranks(options: VrrpOptions, own: Uint8Array, priority: number): boolean {
  if (priority !== options.priority) return priority > options.priority;
  return getU32(options.peer, 0) > getU32(own, 0);
}

function stepHealth(
  options: VrrpOptions,
  before: VrrpState,
  isGood: boolean,
  nowMs: number,
): Step {
  if (isGood === before.isHealthy) return unchanged({ ...before, contrary: 0 });
  const state = { ...before, contrary: before.contrary + 1 };
  if (state.contrary < (isGood ? GOOD_MIN : FAILURES_MAX)) return unchanged(state);
  const next = { ...state, isHealthy: isGood, contrary: 0 };
  if (!isGood) return giveUp(options, next, "DNS does not answer on this node", nowMs);
  // A peer that is alive keeps the address for one whole time of silence more. Where nobody was
  // heard for as long already, nobody holds it and nothing is waited for.
  const { peer } = state;
  const isAlive = peer !== null && peer.priority > 0 &&
    nowMs - peer.heardAtMs < masterDownMs(options, state);
  const dueAtMs = isAlive ? nowMs + masterDownMs(options, state) : Math.max(state.dueAtMs, nowMs);
  return unchanged({ ...next, dueAtMs });
}

function stepInterface(
  options: VrrpOptions,
  before: VrrpState,
  own: Uint8Array | null,
  hasFloating: boolean,
  nowMs: number,
): Step {
  const isLost = before.own !== null && own === null;
  const isBack = before.own === null && own !== null;
  const state = { ...before, own, ...(isLost && { darkSinceMs: nowMs }) };
  if (state.role === "backup") {
    // It has heard nothing so far.
    const dueAtMs = isBack ? nowMs + masterDownMs(options, state) : state.dueAtMs;
    return { state: { ...state, dueAtMs }, effects: hasFloating ? [RELEASE] : [] };
  }
  if (own === null) return unchanged(state);
  if (hasFloating && !isBack) return unchanged(state);
  const { state: next, effects } = announce(options, state, CLAIM, nowMs);
  return { state: next, effects: hasFloating ? effects : [HOLD, ...effects] };
}
