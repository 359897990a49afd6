/**
 * Decides whether answers are proven. `Validator` takes a question and a response's RRsets and says
 * secure, insecure, bogus or indeterminate of each and of the whole, with what failed. Time, DS and
 * DNSKEY records, memory and the checking of signatures are handed in: `verifySignature` is what a
 * thread runs. Work is bounded by the constants of `limits.ts`. Beside that: trust anchors and their
 * rolling, and answers from gaps proven before.
 * Scope: none. RFC 3110, 4033 to 4035, 4509, 5011, 5155, 5702, 6605, 6672, 6840, 7646, 8080, 8198,
 * 8624, 8914, 9276, 9904. @module
 */
export { readSections, type RrSet, type Sections } from "./rrset.ts";
export { type Finding, Security } from "./outcome.ts";
export type { Limit } from "./limits.ts";
export { type ValidatedRrSet, Validator, type Verdict } from "./validator.ts";
export type { ChainPorts, Cut, CutCache, RrSetResponse } from "./chain.ts";
export { knownInsecure } from "./known.ts";
export type { Zone } from "./zone_keys.ts";
export { followAliases, type Question, type Trail } from "./aliases.ts";
export {
  type SignatureCheck,
  type SignatureChecker,
  verifySignature,
  verifySignatureAsync,
} from "./verify.ts";
export {
  type AnchorProblem,
  type ParsedAnchors,
  parseTrustAnchors,
  ROOT_ANCHORS_TEXT,
  type TrustAnchor,
  TrustAnchors,
} from "./anchors.ts";
export {
  anchorsInForce,
  describeAnchors,
  isDue,
  observe,
  readRolloverState,
  type RolloverState,
  type Sighting,
  startRollover,
  stepRollover,
} from "./rollover.ts";
export { deduce, type Deduced, deniesName, readDenials } from "./aggressive.ts";
export type { Denials, Nsec3Record, NsecRecord } from "./denial.ts";
export { publicKeySpki } from "./keys.ts";
export { ancestor, compareNames, wildcardOf } from "./names.ts";
