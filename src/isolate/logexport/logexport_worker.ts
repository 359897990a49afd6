/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Sends the query log to one receiver, which is all that is open to it. @module */
import { handLogLines } from "../../log.ts";
import {
  dial,
  DnstapEncoder,
  openFrameStream,
  otlpLine,
  type Receiver,
  Sender,
} from "../../logexport/mod.ts";
import { Nice, stepBack } from "../../thread/mod.ts";
import { tellCrashes } from "../crash.ts";
import type { FromKept } from "../kept_isolate.ts";
import { LogLines } from "../log_lines.ts";
import { pause } from "../pause.ts";
import type { ExportStart, ExportTo, FromExport, ToExport } from "./messages.ts";

let stop: (graceMs: number) => void = () => {};
const stopped = new AbortController();
const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => tell({ type: "crashed", error }));

function tell(message: FromExport | FromKept): void {
  self.postMessage(message);
}

function dnstapReceiver(
  { place, identity, isAnonymized }: Extract<ExportTo, { kind: "dnstap" }>,
  version: string,
): Receiver<Uint8Array> {
  const encoder = new DnstapEncoder({ identity, version: `svc ${version}`, isAnonymized });
  return {
    open: async (signal) => await openFrameStream(await dial(place, signal)),
    itemOf: (entry, response) => encoder.encode(entry, response),
  };
}

/** Loaded only where it is asked for: the libraries are large. */
async function otlpReceiver(
  { endpoint, addresses, headers, caPem, node }: Extract<ExportTo, { kind: "otlp" }>,
  version: string,
): Promise<Receiver<ReturnType<typeof otlpLine>>> {
  const { nodeHttpPostStatus } = await import("../../http/node_http.ts");
  const { OtlpRecords } = await import("../../otlp/mod.ts");
  const lookup = () => Promise.resolve(addresses);
  const records = new OtlpRecords({
    ...{ endpoint, headers, node, version, stopped: stopped.signal },
    ports: {
      post: nodeHttpPostStatus({ lookup, ...(caPem !== null && { caPem }) }),
      nowMs: Date.now,
      deadline: (ms, signal) => AbortSignal.any([AbortSignal.timeout(ms), signal]),
      pause,
    },
  });
  const never = new Promise<void>(() => {});
  return {
    // A request is a connection of its own.
    open: () =>
      Promise.resolve({
        ended: never,
        send: (items) => records.send(items),
        close: () => Promise.resolve(),
      }),
    itemOf: (entry) => otlpLine(entry),
  };
}

async function run<Item>(options: ExportStart, receiver: Receiver<Item>): Promise<void> {
  const { queue, figures, upstreams, fields } = options;
  const sender = new Sender<Item>({
    ...{ queue, figures, upstreams, receiver, fields },
    ports: {
      monotonicMs: () => performance.now(),
      chance: Math.random,
      pause,
      onFailure: () => tell({ type: "failed" }),
    },
  });
  stop = (graceMs) => {
    sender.stop(graceMs);
    void pause(graceMs, stopped.signal).then(() => stopped.abort());
  };
  tell({ type: "ready" });
  await sender.run();
  tell({ type: "stopped" });
}

async function start(options: ExportStart): Promise<void> {
  const { to, version } = options;
  if (to.kind === "dnstap") await run(options, dnstapReceiver(to, version));
  else await run(options, await otlpReceiver(to, version));
}

self.onmessage = ({ data }: MessageEvent<ToExport>) => {
  switch (data.type) {
    case "start":
      if (data.handsLogOn) handLogLines(lines.take);
      stepBack(Nice.Last);
      start(data.options).catch(crash);
      return;
    case "ping":
      lines.reset();
      tell({ type: "pong" });
      return;
    case "stop":
      stop(data.graceMs);
  }
};
