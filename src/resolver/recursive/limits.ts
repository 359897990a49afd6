/** Every bound on the work that one query can cause, and on what recursion keeps. */

/** Queries sent for one client's query, those for addresses of name servers included. */
export const QUERIES_MAX = 100;
/** Referrals followed for one name; the root's and the reverse zones of IPv6 take some. */
export const REFERRALS_MAX = 30;
/** Name servers of a delegation that are looked at; the root has 13. */
export const NAME_SERVERS_MAX = 16;
/** Addresses of one name server that are looked at. */
export const ADDRESSES_PER_SERVER_MAX = 8;
/** Addresses of name servers that are looked up for one delegation (NXNSAttack: CVE-2020-12662). */
export const LOOKUPS_MAX = 6;
/** Addresses of name servers that are looked up for one client's query. */
export const LOOKUPS_ALL_MAX = 24;
/** Look-ups of addresses that wait for each other in a row. */
export const LOOKUP_DEPTH_MAX = 5;
/** Queries sent for one step: to different servers for the most part, and never to one for long. */
export const STEP_QUERIES_MAX = 8;
/** Times one server is sent the same question; where there is but one, it gets one more. */
export const SAME_SERVER_MAX = 2;
/** Queries of one step on their way, beside tries without EDNS: a late answer is as good as any. */
export const STEP_OPEN_MAX = 3;
/** Names that are sent short of the whole one, and how many of them grow by one label (RFC 9156 §2.3). */
export const MINIMISE_STEPS_MAX = 10;
export const MINIMISE_ONE_LABEL_MAX = 4;
/** Questions that wait for one zone's servers, so that one under attack leaves the others room. */
export const ZONE_FLIGHTS_MAX = 512;
/** Queries on their way to one server. */
export const SERVER_OPEN_MAX = 512;

/** Name servers that something is known of, in each isolate: some 800 bytes each. */
export const SERVERS_MAX = 8_192;
/** Zones that a server is known not to serve. */
export const LAME_ZONES_MAX = 4;
/** Questions of which it is known who has answered them, to ask another one where that is bogus. */
export const BELIEVED_MAX = 1_024;
/** Zones that questions wait for; more than this is swept. */
export const ZONES_MAX = 8_192;
/** Bytes of delegations, of all isolates together. */
export const DELEGATIONS_BYTES = 12 * 1024 * 1024;
/** Bytes that one isolate has for them at least. */
export const DELEGATIONS_BYTES_MIN = 2 * 1024 * 1024;
/** Delegations that are kept ready to be asked. */
export const READ_DELEGATIONS = 512;
/** Longest message about a zone that is kept: DS sets, and denials with their proofs. */
export const KEPT_BYTES_MAX = 4_096;
/** Seconds that a delegation is kept at most, whatever its TTL. */
export const DELEGATION_TTL_MAX = 86_400;
/** Seconds that a name is known to be no zone cut. */
export const INNER_TTL_MAX = 3_600;
/** How often the root's own name servers are asked for again while nobody answers (RFC 8109). */
export const PRIMING_MS_MIN = 60_000;

/** Wait for a first answer of a server that nothing is known of. */
export const PATIENCE_START_MS = 400;
export const PATIENCE_MS_MIN = 80;
export const PATIENCE_MS_MAX = 1_500;
/** Wait for addresses of a name server before those of another are looked up as well. */
export const LOOKUP_PATIENCE_MS = 500;
/** Silences of a zone's servers after which those are asked without EDNS that never answered it. */
export const EDNS_SILENCES_MIN = 4;
/** Silences in a row after which a server is asked by one query at a time. */
export const SILENCES_MAX = 3;
/** How long such a server is passed over while another can be asked. */
export const DOWN_MS = 30_000;
/** How long a server that does not serve a zone is asked behind all others. */
export const LAME_MS = 300_000;
/** How long addresses of a family are left alone which this host has no way to. */
export const FAMILY_DOWN_MS = 60_000;
