/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />
/** Sends what `ApiLoad` orders. @module */
import { openHost, setTimeSlice, TimeSlice } from "../../src/native/mod.ts";
import { Api } from "./api_client.ts";
import { type ApiOrder, type ApiTimes, PAUSE_MS } from "./api_load.ts";

const host = openHost();
// The load has the same processor: whoever asks there must not wait until it has had its turn.
if (host !== null) setTimeSlice(host, TimeSlice.Query);

self.onmessage = async (event: MessageEvent<ApiOrder>) => {
  self.postMessage(await timeRequests(event.data));
};

async function timeRequests({ port, seconds }: ApiOrder): Promise<ApiTimes> {
  const api = new Api(port);
  const [readMs, writeMs]: number[][] = [[], []];
  try {
    await api.call("GET", "/status"); // Opens the connection.
    const endsAtMs = performance.now() + 1_000 * seconds;
    for (let i = 0; performance.now() < endsAtMs; i++) {
      const made = await api.call("POST", "/rules", { rule: `||bench${i}.example^` });
      writeMs.push(made.tookMs);
      await sleep(PAUSE_MS);
      readMs.push((await api.call("GET", "/status")).tookMs);
      readMs.push((await api.call("GET", "/groups")).tookMs);
      await sleep(PAUSE_MS);
      const { id } = made.json as { id: string };
      writeMs.push((await api.call("DELETE", `/rules/${id}`)).tookMs);
      await sleep(PAUSE_MS);
    }
  } finally {
    api.close();
  }
  return { readMs, writeMs };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
