import { createSocket } from "node:dgram";
import { formatIp, type HostPort } from "../addr/mod.ts";
import { decodeMessage, encodeQuery, Qtype } from "../dns/mod.ts";
import type { Lookup } from "../lists/mod.ts";

/** Longest wait for the answer to one question. */
const ANSWER_MS = 6_000;

/** Where a listener on every address is reached from this machine. */
function reachable({ ip, port }: HostPort): { host: string; port: number; v4: boolean } {
  const v4 = ip.length === 4;
  const any = ip.every((byte) => byte === 0);
  return { host: any ? (v4 ? "127.0.0.1" : "::1") : formatIp(ip), port, v4 };
}

/**
 * Looks names up through this service's own listener: the system's resolver may be this very
 * service, or one that it replaces.
 */
export function ownLookup(listening: () => readonly HostPort[]): Lookup {
  return async (hostname, signal) => {
    if (signal.aborted) return [];
    const server = reachable(listening()[0]);
    const answers = await Promise.all(
      [Qtype.A, Qtype.AAAA].map((type) => ask(server, hostname, type, signal)),
    );
    return answers.flat();
  };
}

function ask(
  { host, port, v4 }: { host: string; port: number; v4: boolean },
  hostname: string,
  type: number,
  signal: AbortSignal,
): Promise<string[]> {
  const { promise, resolve } = Promise.withResolvers<string[]>();
  const id = crypto.getRandomValues(new Uint16Array(1))[0];
  const query = encodeQuery(hostname, type, { id });
  const socket = createSocket(v4 ? "udp4" : "udp6");
  const done = (addresses: string[]) => {
    clearTimeout(timer);
    signal.removeEventListener("abort", none);
    socket.removeAllListeners("message");
    socket.close();
    resolve(addresses);
  };
  const none = () => done([]);
  const timer = setTimeout(none, ANSWER_MS);
  signal.addEventListener("abort", none, { once: true });
  socket.once("error", none);
  socket.on("message", (packet: Uint8Array) => {
    const message = decodeMessage(packet);
    if (message === null || message.id !== id) return;
    done(message.answers.filter((r) => r.type === type).map((r) => r.data));
  });
  socket.send(query, port, host);
  return promise;
}
