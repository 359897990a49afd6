/**
 * Floods one transport of a server and waits for nothing: `flood.ts KIND PORT NAME CA_FILE SECONDS`.
 * It comes from an address of its own, so that a limit of queries per client meets nobody else.
 */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { FLOODER, type FloodKind } from "./floods.ts";

/** Connections of the flood; each sends on as long as the system takes more. */
const CONNECTIONS = 4;
const QUIC_STREAMS = 64;
/** Bytes given to a socket at once. */
const CHUNK_BYTES = 64 * 1024;
/** After a connection was closed or refused. */
const AGAIN_MS = 5;

const [kindText, portText, serverName, caFile, seconds] = Deno.args;
const kind = kindText as FloodKind;
const port = Number(portText);
const ca = Deno.readTextFileSync(caFile);
const endsAtMs = performance.now() + 1_000 * Number(seconds);
const message = encodeQuery("www.flood.example", Qtype.A, { id: 0 });
const framed = Uint8Array.of(message.length >> 8, message.length & 255, ...message);
const encoder = new TextEncoder();

/** Frames of HTTP/2 by hand: no client does what these do. */
function frame(type: number, flags: number, stream: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint16(1, payload.length);
  bytes[3] = type;
  bytes[4] = flags;
  view.setUint32(5, stream);
  bytes.set(payload, 9);
  return bytes;
}

const base64url = btoa(String.fromCharCode(...message)).replaceAll("+", "-").replaceAll("/", "_")
  .replace(/=+$/, "");
const path = encoder.encode(`/dns-query?dns=${base64url}`);
/** GET and https of the static table, and a path that is put into none (RFC 7541). */
const HEADERS = Uint8Array.of(0x82, 0x87, 0x04, path.length, ...path);
const HELLO = Uint8Array.of(
  ...encoder.encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  ...frame(4, 0, 0, new Uint8Array(0)),
  ...frame(8, 0, 0, Uint8Array.of(0x3f, 0, 0, 0)),
);
const REQUEST1 = encoder.encode(
  `GET /dns-query?dns=${base64url} HTTP/1.1\r\nhost: ${serverName}\r\n\r\n`,
);

/** What a connection sends without end. */
function* pieces(): Generator<Uint8Array> {
  if (kind !== "tcp" && kind !== "dot" && kind !== "doh1") yield HELLO;
  for (let stream = 1;; stream += 2) {
    if (kind === "tcp" || kind === "dot") yield framed;
    else if (kind === "doh1") yield REQUEST1;
    else if (kind === "pings") yield frame(6, 0, 0, new Uint8Array(8));
    else {
      yield frame(1, 5, stream, HEADERS);
      if (kind === "resets") yield frame(3, 0, stream, Uint8Array.of(0, 0, 0, 8));
    }
  }
}

function chunks(): () => Uint8Array {
  const source = pieces();
  return () => {
    const chunk = new Uint8Array(CHUNK_BYTES);
    let at = 0;
    while (at < CHUNK_BYTES - 512) {
      const { value } = source.next();
      chunk.set(value!, at);
      at += value!.length;
    }
    return chunk.subarray(0, at);
  };
}

function open(): Socket {
  const raw = connect({ host: "127.0.0.1", port, localAddress: FLOODER });
  if (kind === "tcp") return raw;
  const alpn = kind === "dot" ? "dot" : kind === "doh1" ? "http/1.1" : "h2";
  return connectTls({ socket: raw, servername: serverName, ca, ALPNProtocols: [alpn] });
}

/** One connection after the other, for as long as each lasts. */
async function floodStreams(): Promise<void> {
  while (performance.now() < endsAtMs) {
    const socket = open();
    const { promise, resolve } = Promise.withResolvers<void>();
    const next = chunks();
    const send = () => {
      while (performance.now() < endsAtMs && !socket.destroyed && socket.write(next())) {
        /* On. */
      }
    };
    socket.on("drain", send);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve());
    socket.on(kind === "tcp" ? "connect" : "secureConnect", () => {
      if (kind === "handshakes") socket.destroy();
      else send();
    });
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), endsAtMs - performance.now());
    await promise;
    clearTimeout(timer);
    if (kind !== "handshakes") await new Promise((again) => setTimeout(again, AGAIN_MS));
  }
}

async function floodQuic(): Promise<void> {
  const endpoint = new Deno.QuicEndpoint({ hostname: FLOODER, port: 0 });
  while (performance.now() < endsAtMs) {
    try {
      const conn = await Deno.connectQuic<false>({
        hostname: "127.0.0.1",
        port,
        serverName,
        caCerts: [ca],
        alpnProtocols: ["doq"],
        endpoint,
      });
      const ask = async () => {
        while (performance.now() < endsAtMs) {
          const { readable, writable } = await conn.createBidirectionalStream({
            waitUntilAvailable: true,
          });
          const writer = writable.getWriter();
          await writer.write(framed);
          await writer.close();
          for await (const _ of readable) { /* Of no interest. */ }
        }
      };
      await Promise.all(Array.from({ length: QUIC_STREAMS }, ask));
    } catch {
      await new Promise((again) => setTimeout(again, AGAIN_MS));
    }
  }
}

const flood = kind === "doq" ? floodQuic : floodStreams;
setTimeout(() => Deno.exit(0), endsAtMs - performance.now() + 500);
await Promise.all(Array.from({ length: CONNECTIONS }, flood));
Deno.exit(0);
