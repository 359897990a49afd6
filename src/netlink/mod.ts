/**
 * The kernel's tables of interfaces, addresses and neighbours: what it is asked, what it says, and the
 * socket between. Scope: ffi. rtnetlink(7), RFC 3549. @module
 */
export {
  addressesRequest,
  addressRequest,
  type InterfaceAddress,
  type LinkFacts,
  linkRequest,
  linksRequest,
  type Neighbour,
  readReplies,
} from "./messages.ts";
export { Neighbours } from "./neighbours.ts";
export { News, openNetlink } from "./socket.ts";
