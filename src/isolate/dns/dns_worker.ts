/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Answers DNS queries on sockets that the main isolate opened. @module */
import { giveBackHeap } from "../../free_memory.ts";
import { handLogLines } from "../../log.ts";
import { openNative, threadId } from "../../native/mod.ts";
import { tellCrashes } from "../crash.ts";
import { DnsIsolate } from "./dns_isolate.ts";
import type { FromKept } from "../kept_isolate.ts";
import { LogLines } from "../log_lines.ts";
import type { DnsStart, FromDns, ToDns } from "../messages.ts";
import { Rest } from "../rest.ts";
import { queriesOf } from "./queries_of.ts";

/** What an isolate is told once it is started. */
type Told = Exclude<ToDns, { readonly type: "start" }>;

let isolate: DnsIsolate | null = null;
let rest: Rest | null = null;
/** Came while the isolate was opened, and wait for it. */
const early: Told[] = [];
/** More than who sends them ever has on their way. */
const EARLY_MAX = 1_024;
const lines = new LogLines((line) => tell({ type: "logged", line }));
const crash = tellCrashes((error) => tell({ type: "crashed", error }));

function tell(message: FromDns | FromKept): void {
  self.postMessage(message);
}

async function open(start: DnsStart): Promise<void> {
  const native = openNative();
  const thread = native === null ? null : threadId(native);
  if (thread !== null) tell({ type: "thread", thread });
  if (start.handsLogOn) handLogLines(lines.take);
  const opened = await DnsIsolate.open(start, (lookup) => tell({ type: "leak", lookup }));
  isolate = opened;
  rest = new Rest(() => queriesOf(start.counters), () => Deno.memoryUsage().heapTotal, () => {
    giveBackHeap("regular");
    tell({ type: "gaveBack" });
  });
  opened.heard(); // Of its start.
  const listening = opened.listen();
  for (const message of early.splice(0)) take(opened, message);
  const ports = await listening;
  if (start.isShutIn) Deno.permissions.revokeSync({ name: "ffi" }); // Of this isolate alone.
  giveBackHeap(); // What the start leaves, before anybody waits for an answer.
  tell({ type: "ready", ports });
  opened.run().catch(crash); // Last: it may not return for seconds.
}

function take(opened: DnsIsolate, message: Told): void {
  opened.heard(handle(opened, message).catch(crash)); // Behind what is handled at once.
}

async function handle(opened: DnsIsolate, message: Told): Promise<void> {
  switch (message.type) {
    case "snapshot":
      opened.swap(message.snapshot);
      tell({ type: "swapped", generation: message.snapshot.generation });
      return;
    case "drain":
      await opened.drain(message.graceMs, message.successor);
      tell({ type: "drained" });
      return;
    case "save":
      tell({ type: "saved", answers: opened.save() });
      return;
    case "flush":
      opened.flush();
      tell({ type: "flushed" });
      return;
    case "lookup": {
      const { id } = message;
      opened.lookup(message.hostname, message.qtype, (found) => {
        tell({ type: "lookedUp", id, found });
      });
      return;
    }
    case "ask": {
      const { id } = message;
      opened.ask(message.packet, message.how, (answer) => tell({ type: "asked", id, answer }));
      return;
    }
    case "certificate":
      opened.renew(message.identity);
      return;
    case "trust":
      // What counted as unsigned, for want of a clock, is none that can be kept.
      if (opened.validation?.trust(message.trust) === true) opened.flush();
      return;
    case "checker":
      opened.leadToThread(message.way);
      return;
    case "odoh":
      await opened.renewOdoh(message.seeds);
      return;
    case "ping":
      lines.reset();
      tell({ type: "pong", report: opened.report(), slow: opened.takeSlow() });
      rest?.look();
  }
}

self.onmessage = ({ data }: MessageEvent<ToDns>) => {
  if (data.type === "start") void open(data.start).catch(crash);
  else if (isolate !== null) take(isolate, data);
  else if (early.length < EARLY_MAX) early.push(data);
  else crash(new Error(`more than ${EARLY_MAX} messages came before it was open`));
};
