/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/// <reference lib="deno.worker" />
/** Answers DNS queries on sockets that the main isolate opened. @module */
import { messageOf, SvcError } from "../errors.ts";
import { handLogLines } from "../log.ts";
import { LogLines } from "./log_lines.ts";
import { DnsIsolate } from "./dns_isolate.ts";
import type { FromDns, ToDns } from "./messages.ts";

let isolate: DnsIsolate | null = null;
const lines = new LogLines((line) => tell({ type: "logged", line }));

function tell(message: FromDns): void {
  self.postMessage(message);
}

function crash(error: unknown): void {
  // What a user can mend says so itself; anything else is ours to find.
  const isOurs = error instanceof Error && !(error instanceof SvcError);
  const detail = isOurs ? error.stack ?? error.message : messageOf(error);
  tell({ type: "crashed", error: detail });
}

async function handle(message: ToDns): Promise<void> {
  switch (message.type) {
    case "start": {
      if (message.start.handsLogOn) handLogLines(lines.take);
      isolate = new DnsIsolate(message.start, (lookup) => tell({ type: "leak", lookup }));
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
    case "lookup": {
      const { id } = message;
      isolate?.lookup(message.hostname, message.qtype, (found) => {
        tell({ type: "lookedUp", id, found });
      });
      return;
    }
    case "certificate":
      isolate?.renew(message.identity);
      return;
    case "odoh":
      await isolate?.renewOdoh(message.seeds);
      return;
    case "ping":
      lines.reset();
      if (isolate === null) return;
      tell({ type: "pong", report: isolate.report(), slow: isolate.takeSlow() });
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
self.onmessage = ({ data }: MessageEvent<ToDns>) => {
  void handle(data).catch(crash);
  isolate?.heard(); // Behind what is handled at once.
};
