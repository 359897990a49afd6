/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Checks signatures for the dns isolates; nothing is open to it. @module */
import { verifySignature } from "../../dnssec/verify.ts";
import { handLogLines } from "../../log.ts";
import { Nice, stepBack } from "../../thread/mod.ts";
import { tellCrashes } from "../crash.ts";
import type { FromKept } from "../kept_isolate.ts";
import { LogLines } from "../log_lines.ts";
import type { CheckResult, FromCheck, NumberedCheck, ToCheck } from "./messages.ts";

const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => tell({ type: "crashed", error }));

function tell(message: FromCheck | FromKept): void {
  self.postMessage(message);
}

function connect(port: MessagePort): void {
  port.onmessage = ({ data: { id, check } }: MessageEvent<NumberedCheck>) => {
    const result: CheckResult = { id, fits: verifySignature(check) };
    port.postMessage(result);
  };
}

self.onmessage = ({ data }: MessageEvent<ToCheck>) => {
  try {
    switch (data.type) {
      case "start":
        if (data.handsLogOn) handLogLines(lines.take);
        stepBack(Nice.Build);
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
