/**
 * What a process may do, and giving it up: stage 1 opens the sockets that take privileges, and
 * executes the program anew as stage 2, which inherits the sockets and has none but the capabilities
 * that are still needed, on every thread. A drop without the new start would leave the threads of
 * the runtime as they are. Scope: ffi. capabilities(7). @module
 */
export {
  capabilities,
  Capability,
  type CapabilityNumber,
  dropPrivileges,
  hasCapabilities,
  type Held,
  heldBy,
  lookUpUser,
  nameOf,
  type UserIds,
} from "./privileges.ts";
export {
  environmentOf,
  executeProgram,
  executeSelf,
  inherit,
  type Legacy,
  ownProgram,
  type Program,
} from "./self.ts";
export { cString } from "./c_string.ts";
export { landlockVersion, type PathRule, restrictPaths } from "./landlock.ts";
export { denySystemCalls } from "./seccomp.ts";
export { GONE, LATE, Line } from "./line.ts";
export { Memory } from "./memory.ts";
export { exitCodeOf, killProcess, startProgram } from "./spawn.ts";
export { type ListeningSocket, listeningSockets } from "./listening.ts";
export { Notifier } from "./notify.ts";
export { hearOrders, holdOrders } from "./signals.ts";
