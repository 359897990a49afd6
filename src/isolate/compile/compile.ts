import { SvcError } from "../../errors.ts";
import { areLogLinesHanded, relayLogLine } from "../../log.ts";
import type { CompileRequest, CompileResponse } from "../messages.ts";
import { startIsolate } from "../scopes.ts";

/** Longest that a compile may take; five million rules need a few seconds on a small board. */
const COMPILE_MS_MAX = 120_000;

/** What became of the texts. */
export type CompiledRules = Omit<Extract<CompileResponse, { type: "compiled" }>, "type">;

/**
 * Compiles the texts of lists in an isolate of its own. The texts are moved, not copied.
 *
 * @throws {SvcError} `unavailable`, when it fails or takes too long.
 */
export async function compileRules(
  source: Omit<CompileRequest, "handsLogOn">,
): Promise<CompiledRules> {
  const request: CompileRequest = { ...source, handsLogOn: areLogLinesHanded() };
  const worker = startIsolate("compile");
  let timer: ReturnType<typeof setTimeout> | undefined;
  return await new Promise<CompiledRules>((resolve, reject) => {
    const fail = (error: string) => reject(new SvcError("unavailable", `filter: ${error}`));
    timer = setTimeout(() => fail(`no result after ${COMPILE_MS_MAX} ms`), COMPILE_MS_MAX);
    worker.onmessage = ({ data }: MessageEvent<CompileResponse>) => {
      switch (data.type) {
        case "logged":
          return relayLogLine(data.line);
        case "compiled":
          return resolve(data);
        case "failed":
          fail(data.error);
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      fail(event.message);
    };
    worker.postMessage(request, request.sources.map(({ bytes }) => bytes.buffer));
  }).finally(() => {
    clearTimeout(timer);
    worker.terminate();
  });
}
