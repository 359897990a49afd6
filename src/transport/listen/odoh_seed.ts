/** Bytes of the seed that a key pair is derived from (RFC 9180 §7.1.3). */
export const ODOH_SEED_BYTES = 32;
