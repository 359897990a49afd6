/** The isolates that `svc run` starts. */
export type Isolate = "compile" | "dns";

/** What each isolate may touch; whatever is not named here is denied. */
export const SCOPES = {
  compile: () => "none",
  dns: () => ({ net: true, ffi: mayFfi() }), // Any name server there is; UDP in batches.
} as const satisfies Record<Isolate, () => Deno.PermissionOptions>;

/** Nobody can hand on what it was not given: without FFI the isolates go the portable way. */
function mayFfi(): boolean {
  return Deno.permissions.querySync({ name: "ffi" }).state === "granted";
}

/** Worker entries; each URL stands here in full, so that a compiler of programs finds it. */
const ENTRIES: Record<Isolate, () => URL> = {
  compile: () => new URL("./compile_worker.ts", import.meta.url),
  dns: () => new URL("./dns_worker.ts", import.meta.url),
};

/** Starts an isolate with its scope and nothing beyond it. */
export function startIsolate(isolate: Isolate): Worker {
  return new Worker(ENTRIES[isolate](), {
    type: "module",
    name: isolate,
    deno: { permissions: SCOPES[isolate]() },
  });
}
