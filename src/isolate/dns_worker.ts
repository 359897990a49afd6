/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/// <reference lib="deno.worker" />
/** Answers DNS queries on sockets that the main isolate opened. @module */
import { messageOf } from "../errors.ts";
import { DnsIsolate } from "./dns_isolate.ts";
import type { FromDns, ToDns } from "./messages.ts";

let isolate: DnsIsolate | null = null;

function tell(message: FromDns): void {
  self.postMessage(message);
}

function crash(error: unknown): void {
  const detail = error instanceof Error ? error.stack ?? error.message : messageOf(error);
  tell({ type: "crashed", error: detail });
}

async function handle(message: ToDns): Promise<void> {
  switch (message.type) {
    case "start": {
      isolate = new DnsIsolate(message.start);
      const ports = await isolate.listen();
      isolate.run().catch(crash);
      tell({ type: "ready", ports });
      return;
    }
    case "snapshot":
      isolate?.swap(message.snapshot);
      tell({ type: "swapped", generation: message.snapshot.generation });
      return;
    case "drain":
      await isolate?.drain(message.graceMs);
      tell({ type: "drained" });
      return;
    case "flush":
      isolate?.flush();
      tell({ type: "flushed" });
      return;
    case "ping":
      if (isolate !== null) tell({ type: "pong", report: isolate.report() });
  }
}

self.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  crash(event.reason);
});
self.addEventListener("error", (event) => {
  event.preventDefault();
  crash(event.error);
});
self.onmessage = ({ data }: MessageEvent<ToDns>) => void handle(data).catch(crash);
