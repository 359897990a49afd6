/**
 * The C library for who needs more of it than answering takes: raw packets and the kernel's own
 * tables for the floating address, and the calls by which a process gives up what it may do and
 * executes itself. An isolate that answers never loads this. Scope: ffi. @module
 */
export { openPackets, type Packets } from "./packets.ts";
export { openProcess, type Process } from "./process.ts";
export { environmentPointer, type HandOver, openHandOver } from "./hand_over.ts";
