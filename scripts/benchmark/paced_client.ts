/**
 * Asks a server over UDP at a steady pace, whatever comes back, as a household does:
 * `paced_client.ts PORT SECONDS NAME`; writes how long each answer took, in milliseconds, as JSON,
 * and `null` for what was not answered.
 */
import { createSocket } from "node:dgram";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { PACED } from "./floods.ts";

const QUERIES_PER_SECOND = 200;
/** Longest wait for the last answers. */
const LAST_MS = 1_500;

const [port, seconds, name] = Deno.args;
const count = Number(seconds) * QUERIES_PER_SECOND;
const sentAtMs = new Float64Array(count);
const tookMs: (number | null)[] = Array(count).fill(null);
const message = encodeQuery(name, Qtype.A, { id: 0 });

const socket = createSocket("udp4");
await new Promise<void>((resolve) => socket.bind(0, PACED, resolve));
socket.on("message", (answer) => {
  const id = (answer[0] << 8) | answer[1];
  tookMs[id] ??= performance.now() - sentAtMs[id];
});
const startMs = performance.now();
for (let id = 0; id < count; id++) {
  const dueMs = startMs + 1_000 * id / QUERIES_PER_SECOND;
  const waitMs = dueMs - performance.now();
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
  const query = message.slice();
  query[0] = id >> 8;
  query[1] = id & 255;
  sentAtMs[id] = performance.now();
  socket.send(query, Number(port), "127.0.0.1");
}
await new Promise((resolve) => setTimeout(resolve, LAST_MS));
console.log(JSON.stringify(tookMs));
Deno.exit(0);
