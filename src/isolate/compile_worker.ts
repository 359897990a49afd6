/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/// <reference lib="deno.worker" />
/** Compiles lists to a snapshot of rules; ended after it, so that its heap goes away. @module */
import { compile } from "../filter/mod.ts";
import { messageOf } from "../errors.ts";
import { Nice, stepBack } from "../thread/mod.ts";
import type { CompileRequest, CompileResponse } from "./messages.ts";

function respond(response: CompileResponse): void {
  self.postMessage(response);
}

self.onmessage = ({ data }: MessageEvent<CompileRequest>) => {
  stepBack(Nice.Build);
  try {
    const { snapshot, stats, badfilters } = compile(data);
    respond({ type: "compiled", rules: snapshot, stats, badfilters });
  } catch (error) {
    respond({ type: "failed", error: messageOf(error) });
  }
};
