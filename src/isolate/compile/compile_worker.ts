/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Compiles lists to rules; ended after it, so that its heap goes away. @module */
import { createHash } from "node:crypto";
import { compile } from "../../filter/mod.ts";
import { messageOf } from "../../errors.ts";
import { handLogLines } from "../../log.ts";
import { Nice, stepBack } from "../../thread/mod.ts";
import { LogLines } from "../log_lines.ts";
import type { CompileRequest, CompileResponse } from "../messages.ts";

function respond(response: CompileResponse): void {
  self.postMessage(response);
}

/** Shared memory can't be hashed: it goes through a piece that is used over and over. */
const PIECE_BYTES = 256 * 1024;

function sha256Of(shared: SharedArrayBuffer): Uint8Array<ArrayBuffer> {
  const hash = createHash("sha256");
  const bytes = new Uint8Array(shared);
  const piece = new Uint8Array(PIECE_BYTES);
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const part = bytes.subarray(at, at + PIECE_BYTES);
    piece.set(part);
    hash.update(piece.subarray(0, part.length));
  }
  return new Uint8Array(hash.digest());
}

self.onmessage = ({ data }: MessageEvent<CompileRequest>) => {
  if (data.handsLogOn) handLogLines(new LogLines((line) => respond({ type: "logged", line })).take);
  stepBack(Nice.Build);
  try {
    const { sources } = data;
    // Gone before the rules are written, which takes the most.
    const onRead = (source: number) => void sources[source].bytes.buffer.transfer(0);
    const { rules, stats, badfilters } = compile({ ...data, onRead });
    respond({ type: "compiled", rules, rulesSha256: sha256Of(rules), stats, badfilters });
  } catch (error) {
    respond({ type: "failed", error: messageOf(error) });
  }
};
