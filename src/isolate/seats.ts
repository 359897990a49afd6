/**
 * The sockets of dns isolates, for who opens them before there is any isolate, in a process that
 * has nothing else to do. Scope: ffi. @module
 */
export {
  closeSeats,
  type DnsSeats,
  openSeats,
  type SocketUse,
  type TakeSocket,
} from "./dns/seats.ts";
