/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Answers DNS queries on sockets that the main isolate opened. @module */
import { handLogLines } from "../log.ts";
import { tellCrashes } from "./crash.ts";
import { DnsIsolate } from "./dns_isolate.ts";
import { LogLines } from "./log_lines.ts";
import type { FromDns, ToDns } from "./messages.ts";

let isolate: DnsIsolate | null = null;
const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => tell({ type: "crashed", error }));

function tell(message: FromDns): void {
  self.postMessage(message);
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

self.onmessage = ({ data }: MessageEvent<ToDns>) => {
  void handle(data).catch(crash);
  isolate?.heard(); // Behind what is handled at once.
};
