/** The target of Oblivious DoH, and with it all of HPKE. Scope: none. RFC 9180, 9230. @module */
export { ObliviousTarget } from "./listen/odoh_target.ts";
