/**
 * Certificates from an authority that speaks ACME: an account, orders, proofs over HTTP or DNS, and
 * the renewal in time. Requests, files, the clock and the wait are ports. One order is under way at
 * a time, is written down before it is sent, and is gone on with after a restart; so many are made a
 * day, whatever fails. Scope: none. RFC 8555, 7638, 7515. @module
 */
export { AcmeKeeper, type AcmeOptions, type AcmePorts, type AcmeStatus } from "./keeper.ts";
export { makeStandIn } from "./stand_in.ts";
export { type Proof, PROOF_PATH } from "./order.ts";
