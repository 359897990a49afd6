import { SvcError } from "../errors.ts";
import { LIBCRYPTO_PATHS, WAKER_PATHS } from "../native/checking.ts";
import {
  hasSpareDescriptors,
  openHost,
  openNative,
  TimeSlice,
  withTimeSlice,
} from "../native/mod.ts";

/** More than an isolate opens while it starts: where they lack, the runtime ends the process. */
const START_DESCRIPTORS = 64;

/** The isolates that `svc run` starts. */
export type Isolate = "check" | "compile" | "dns" | "logexport" | "querylog";

/** What each isolate may touch; whatever is not named here is denied. */
export const SCOPES = {
  // Its own thread's priority; the library that checks signatures, and what tells of results.
  check: () => ({
    sys: maySetPriority() ? ["setPriority"] : false,
    ffi: mayFfi() ? [...LIBCRYPTO_PATHS, ...WAKER_PATHS] : false,
  }),
  compile: () => ({ sys: maySetPriority() ? ["setPriority"] : false }), // Its own thread's.
  dns: () => ({ net: true, ffi: mayFfi() }), // Any name server there is; UDP in batches.
  /** Addresses with ports, with commas between them; or the path of a socket. */
  logexport: (reach: string) => {
    const isPath = reach.startsWith("/");
    return {
      net: isPath ? [`unix:${reach}`] : reach.split(","),
      read: isPath ? [reach] : false,
      write: isPath ? [reach] : false,
      sys: maySetPriority() ? ["setPriority"] : false,
    };
  },
  querylog: (directory: string) => ({
    read: [directory],
    write: [directory],
    sys: maySetPriority() ? ["setPriority"] : false,
  }),
} as const satisfies Record<Isolate, (place: string) => Deno.PermissionOptions>;

/** Nobody can hand on what it was not given: without FFI the isolates go the portable way. */
function mayFfi(): boolean {
  return Deno.permissions.querySync({ name: "ffi" }).state === "granted";
}

function maySetPriority(): boolean {
  const descriptor = { name: "sys", kind: "setPriority" as "hostname" } as const; // Deno's types lag.
  return Deno.permissions.querySync(descriptor).state === "granted";
}

/** How long the time slices of each isolate are. */
const TIME_SLICES: Record<Isolate, TimeSlice> = {
  check: TimeSlice.Work,
  compile: TimeSlice.Work,
  dns: TimeSlice.Query,
  logexport: TimeSlice.Work,
  querylog: TimeSlice.Work,
};

/** Worker entries; each URL stands here in full, so that a compiler of programs finds it. */
const ENTRIES: Record<Isolate, () => URL> = {
  check: () => new URL("./check/check_worker.ts", import.meta.url),
  compile: () => new URL("./compile/compile_worker.ts", import.meta.url),
  dns: () => new URL("./dns/dns_worker.ts", import.meta.url),
  logexport: () => new URL("./logexport/logexport_worker.ts", import.meta.url),
  querylog: () => new URL("./querylog/querylog_worker.ts", import.meta.url),
};

/**
 * Starts an isolate with its scope and nothing beyond it; `place` is its own, if it has one.
 *
 * @throws {SvcError} `unavailable`, when too few descriptors are left for one.
 */
export function startIsolate(isolate: Isolate, place = ""): Worker {
  return startWorker(isolate, ENTRIES[isolate](), SCOPES[isolate](place));
}

/** Starts what stands at `url` as such an isolate. */
export function startWorker(
  isolate: Isolate,
  url: URL,
  permissions: Deno.PermissionOptions,
): Worker {
  const start = () => new Worker(url, { type: "module", name: isolate, deno: { permissions } });
  const native = openNative();
  if (native !== null && !hasSpareDescriptors(native, START_DESCRIPTORS)) {
    throw new SvcError(
      "unavailable",
      "too many open files to start an isolate: raise the limit on open files",
    );
  }
  // Its thread takes over the time slices of who starts it.
  const host = openHost();
  return host === null ? start() : withTimeSlice(host, TIME_SLICES[isolate], start);
}
