/**
 * The system's C library, for what Deno has no call for: UDP in batches with the address that was
 * asked (`recvmmsg`, `sendmmsg`, packet info), listening sockets that outlive an isolate, and one
 * wait for all of them (`epoll`). The one `Deno.dlopen` of the project; Linux only, and every user
 * of it has another way where `openNative` returns `null`. Scope: ffi.
 * RFC 3542 (packet info). @module
 */
export { type Native, openNative, wouldBlock } from "./libc.ts";
export {
  dropPages,
  type Host,
  openHost,
  returnFreeAllocations,
  returnLargeAllocations,
} from "./host.ts";
export {
  closeSocket,
  dupSocket,
  type ListenKind,
  openListener,
  openServer,
  portOf,
} from "./sockets.ts";
export { UdpBatch } from "./udp_batch.ts";
export { Opened, Received, UdpEphemeral } from "./udp_ephemeral.ts";
export { type FileLimit, fileLimit, raiseFileLimit } from "./file_limit.ts";
export { stepHelpersBack } from "./helpers.ts";
export { anonymousBytes, dropCode } from "./own_memory.ts";
export { hasSpareDescriptors, threadCpuMs, threadId } from "./threads.ts";
export { setTimeSlice, TimeSlice, withTimeSlice } from "./time_slice.ts";
export { EventQueue, EVENTS_MAX, openEpoll, openWake, wake } from "./event_queue.ts";
export { Watcher } from "./watcher.ts";
