/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Checks signatures for the dns isolates; nothing is open to it but what it checks with. @module */
import { SignatureVerifier } from "../../dnssec/verify.ts";
import { giveBackHeap } from "../../free_memory.ts";
import { handLogLines, log } from "../../log.ts";
import { LibCrypto, Waker } from "../../native/checking.ts";
import { Nice, stepBack } from "../../thread/mod.ts";
import { tellCrashes } from "../crash.ts";
import { Inbox } from "../inbox.ts";
import type { FromKept } from "../kept_isolate.ts";
import { LogLines } from "../log_lines.ts";
import { Rest } from "../rest.ts";
import { LibraryVerifier } from "./library_verifier.ts";
import type { FromCheck, ToCheck, WayToDns } from "./messages.ts";
import { Bell, CheckRing } from "./ring.ts";

/** Longest wait; each message of the main isolate ends one. */
const WAIT_MS_MAX = 60_000;

const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => tell({ type: "crashed", error }));
/** By dns isolate. */
const ways = new Map<number, WayToDns & { readonly queue: CheckRing }>();
let inbox: Inbox | null = null;
/** Signatures that were checked. */
let checks = 0;
const rest = new Rest(
  () => checks,
  () => Deno.memoryUsage().heapTotal,
  () => giveBackHeap("regular"),
);

function tell(message: FromCheck | FromKept): void {
  self.postMessage(message);
}

/** What the thread checks with. */
interface Tools {
  readonly library: LibraryVerifier | null;
  /** For what the library is not there for, or says nothing of. */
  readonly runtime: SignatureVerifier;
  readonly waker: Waker | null;
}

/** Opens what there is, and gives up the right to open any more. */
function openTools(): Tools {
  const opened = LibCrypto.open();
  const waker = Waker.open();
  Deno.permissions.revokeSync({ name: "ffi" }); // Of this isolate alone.
  const library = opened === null ? null : new LibraryVerifier(opened);
  const by = opened === null ? "the runtime" : `libcrypto ${opened.version}`;
  const left = library === null ? [] : library.lacking;
  log.info("signatures are checked", { by, ...(left.length > 0 && { notOfAlgorithms: left }) });
  return { library, runtime: new SignatureVerifier(), waker };
}

/** Checks for as long as the isolate lives: one of each way after another. */
async function serve({ library, runtime, waker }: Tools, bell: Bell, inbox: Inbox): Promise<void> {
  for (;;) {
    const { count } = bell;
    if (inbox.isExpecting) await inbox.arrivals();
    let hasWorked = false;
    for (const { queue, wake, port } of ways.values()) {
      const next = queue.take();
      if (next === null) continue;
      hasWorked = true;
      checks++;
      const fits = library?.verify(next.check) ?? await runtime.verify(next.check);
      if (!queue.put(next.id, fits)) continue;
      if (wake !== null) waker?.wake(wake);
      else port?.postMessage(null);
    }
    if (!hasWorked) bell.wait(count, WAIT_MS_MAX);
  }
}

self.onmessage = ({ data }: MessageEvent<ToCheck>) => {
  try {
    switch (data.type) {
      case "start": {
        if (data.handsLogOn) handLogLines(lines.take);
        stepBack(Nice.Build);
        const tools = openTools();
        inbox = new Inbox(data.inbox);
        giveBackHeap(); // What the start leaves.
        tell({ type: "ready" });
        serve(tools, new Bell(data.bell), inbox).catch(crash);
        break;
      }
      case "connect":
        ways.get(data.isolate)?.port?.close();
        ways.set(data.isolate, { ...data.way, queue: new CheckRing(data.way.ring) });
        break;
      case "ping":
        lines.reset();
        tell({ type: "pong" });
        rest.look();
    }
  } catch (error) {
    crash(error);
  }
  inbox?.heard();
};
