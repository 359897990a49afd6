/**
 * The floating address of two nodes, by VRRP version 3: the advertisement in wire format, and the
 * state machine that says who holds the address. Packets, health checks, what is known of the
 * interface, and the time come in as events; what is to be done comes out as effects. Scope: none.
 * RFC 9568 (which replaces RFC 5798 and has the same packets), IPv4 alone. @module
 */
export {
  type Advertisement,
  DROP_REASONS,
  type DropReason,
  type Expected,
  readAdvertisement,
  type Reading,
  VRRP_GROUP,
  VRRP_PROTOCOL,
  VRRP_TTL,
  writeAdvertisement,
} from "./advertisement.ts";
export {
  type Effect,
  type Event,
  initialState,
  isFit,
  masterDownMs,
  nextDueMs,
  type PeerState,
  type Reason,
  type Role,
  type Step,
  step,
  type VrrpOptions,
  type VrrpState,
} from "./machine.ts";
