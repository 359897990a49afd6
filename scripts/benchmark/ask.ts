/** Asks a server on the loopback address, to see that it answers, and how. */
import { createSocket } from "node:dgram";
import { decodeMessage, encodeQuery, type Message, Qtype } from "../../src/dns/mod.ts";
import { BenchError } from "./bench_error.ts";

/** How often the question is repeated: how exactly the moment of the first answer is known. */
const REPEAT_MS = 5;

/** What an answer has to be. */
export type Wanted = (answer: Message) => boolean;

/** An answer of one address record that holds `address`. */
export function address(address: string): Wanted {
  return ({ answers }) => answers.some(({ type, data }) => type === Qtype.A && data === address);
}

/**
 * Asks for the A record of `name` until the answer is what is wanted; returns the milliseconds that
 * took.
 *
 * @throws {BenchError} When it was not within `timeoutMs`.
 */
export async function askUntil(
  port: number,
  name: string,
  wanted: Wanted,
  timeoutMs: number,
): Promise<number> {
  const startedMs = performance.now();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = createSocket("udp4");
  let last = "no answer";
  socket.on("error", reject);
  socket.on("message", (packet: Uint8Array) => {
    const message = decodeMessage(packet);
    if (message === null || !message.response) return;
    last = `RCODE ${message.rcode} ${message.answers.map(({ data }) => data).join(" ")}`;
    if (wanted(message)) resolve();
  });
  let id = 0;
  const send = () => void socket.send(encodeQuery(name, Qtype.A, { id: ++id }), port, "127.0.0.1");
  send();
  const repeat = setInterval(send, REPEAT_MS);
  const late = setTimeout(
    () => reject(new BenchError(`port ${port}: ${name} in ${timeoutMs} ms: ${last}`)),
    timeoutMs,
  );
  try {
    await promise;
    return performance.now() - startedMs;
  } finally {
    clearInterval(repeat);
    clearTimeout(late);
    socket.close();
  }
}

/** A port that is free for UDP and TCP on the loopback address at this moment. */
export function freePort(): number {
  const hostname = "127.0.0.1";
  const udp = Deno.listenDatagram({ transport: "udp", hostname, port: 0 });
  const { port } = udp.addr as Deno.NetAddr;
  try {
    Deno.listen({ hostname, port }).close();
    return port;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return freePort();
    throw error;
  } finally {
    udp.close();
  }
}
