/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Checks signatures for the dns isolates; nothing is open to it. @module */
import { SignatureVerifier } from "../../dnssec/verify.ts";
import { giveBackHeap } from "../../free_memory.ts";
import { handLogLines } from "../../log.ts";
import { Nice, stepBack } from "../../thread/mod.ts";
import { tellCrashes } from "../crash.ts";
import type { FromKept } from "../kept_isolate.ts";
import { LogLines } from "../log_lines.ts";
import { type CheckResult, type FromCheck, type ToCheck, unpackChecks } from "./messages.ts";

const lines = new LogLines((line) => tell({ type: "logged", line }));
const verifier = new SignatureVerifier();
const crash = tellCrashes((error) => tell({ type: "crashed", error }));

function tell(message: FromCheck | FromKept): void {
  self.postMessage(message);
}

function connect(port: MessagePort): void {
  // WebCrypto takes half as long as `node:crypto`. Its threads are started by this one, and so stand
  // back as it does; how many checks there are at one time is up to those who send them.
  port.onmessage = async ({ data }: MessageEvent<Uint8Array>) => {
    const results: CheckResult[] = [];
    // One after another: no more of the machine than a thread for each message.
    for (const { id, check } of unpackChecks(data)) {
      results.push({ id, fits: await verifier.verify(check) });
    }
    port.postMessage(results);
  };
}

self.onmessage = ({ data }: MessageEvent<ToCheck>) => {
  try {
    switch (data.type) {
      case "start":
        if (data.handsLogOn) handLogLines(lines.take);
        stepBack(Nice.Build);
        giveBackHeap(); // What the start leaves.
        tell({ type: "ready" });
        return;
      case "connect":
        connect(data.port);
        return;
      case "ping":
        lines.reset();
        tell({ type: "pong" });
    }
  } catch (error) {
    crash(error);
  }
};
