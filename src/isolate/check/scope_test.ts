// Goal: whoever takes over a thread that checks signatures can open two libraries until it has started,
// and nothing at all from then on. Method: an isolate with its scope attempts more.
import assert from "node:assert/strict";
import { LibCrypto } from "../../native/checking.ts";
import { SCOPES, startWorker } from "../scopes.ts";

const ATTEMPTS = `
const opens = (path) => () => Deno.dlopen(path, { getpid: { parameters: [], result: "i32" } }).close();
const attempts = {
  "the library by its name": opens("libcrypto.so.3"),
  "the C library by its name": opens("libc.so.6"),
  "another library": opens("/usr/lib/x86_64-linux-gnu/libssl.so.3"),
  "a pointer": () => Deno.UnsafePointer.of(new Uint8Array(8)),
  "a file": () => Deno.readTextFileSync("/etc/passwd"),
  "the network": () => Deno.listen({ hostname: "127.0.0.1", port: 0 }).close(),
  "a program": () => new Deno.Command("true").outputSync(),
  "the environment": () => Deno.env.get("HOME"),
};
const outcome = (work) => {
  try {
    work();
    return "done";
  } catch (error) {
    return error.name;
  }
};
self.onmessage = ({ data: paths }) => {
  const open = (path) => outcome(opens(path));
  const before = paths.map(open);
  const refused = Object.entries(attempts).map(([what, work]) => [what, outcome(work)]);
  Deno.permissions.revokeSync({ name: "ffi" });
  self.postMessage({ before, refused, after: paths.map(open) });
};
`;

Deno.test(
  "SCOPES let who checks signatures open two libraries by their files, and then nothing",
  {
    permissions: { ffi: true, net: true, read: true, env: true, run: true },
    ignore: LibCrypto.open() === null,
  },
  async () => {
    const permissions = SCOPES.check();
    const paths = (permissions.ffi as string[]).filter((path) => {
      try {
        return Deno.statSync(path).isFile;
      } catch {
        return false;
      }
    });
    assert.ok(paths.some((path) => path.includes("libcrypto")));
    const url = new URL(`data:text/javascript,${encodeURIComponent(ATTEMPTS)}`);
    const worker = startWorker("check", url, permissions);
    const { promise, resolve } = Promise.withResolvers<
      { before: string[]; refused: [string, string][]; after: string[] }
    >();
    worker.onmessage = ({ data }) => resolve(data);
    worker.postMessage(paths);
    const { before, refused, after } = await promise;
    worker.terminate();
    assert.deepEqual(before, paths.map(() => "done"));
    for (const [what, outcome] of refused) assert.equal(outcome, "NotCapable", what);
    assert.deepEqual(after, paths.map(() => "NotCapable"));
  },
);
