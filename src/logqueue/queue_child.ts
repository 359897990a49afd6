/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/**
 * Writes records in bursts, for a test: each holds its number in every word. One that is patient
 * waits for room, and drops none.
 */
import { RecordAt } from "./layout.ts";
import { NO_ROOM, QueueWriter } from "./queue.ts";

const BURST = 300;

interface Work {
  readonly memory: SharedArrayBuffer;
  readonly records: number;
  readonly isPatient?: boolean;
}

self.onmessage = async ({ data }: MessageEvent<Work>) => {
  const writer = new QueueWriter(data.memory);
  for (let value = 1; value <= data.records; value++) {
    if (value % BURST === 0) await new Promise((resolve) => setTimeout(resolve));
    const words = RecordAt.End + value % 50;
    let at = writer.begin(words * 4);
    while (at === NO_ROOM && data.isPatient === true) at = writer.begin(words * 4);
    if (at === NO_ROOM) {
      writer.drop(0);
      continue;
    }
    writer.words.fill(value, at, at + words);
    writer.commit(words * 4);
  }
  self.postMessage("done");
};
