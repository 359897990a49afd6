/** A client of HTTP/2 made by hand, and a handler and a socket that note what happens. */
import { concat, getU16, getU32 } from "../../bytes/mod.ts";
import type { HttpHandler, HttpLimits, HttpRequest, HttpSocket } from "./http.ts";
import { Method, ResponseHead } from "./http.ts";
import { Http2Connection } from "./http2/connection.ts";
import { FRAME_HEADER_BYTES, FrameType, PREFACE, writeFrameHeader } from "./http2/frames.ts";
import { type HeaderField, HpackDecoder } from "./http2/hpack.ts";
import { Outbox } from "./outbox.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const LIMITS: HttpLimits = { requestsMax: 8, idleMs: 10_000, requestMs: 5_000 };

export const OK = new ResponseHead(200, { "content-type": "text/plain" });

/** Says what was asked. A target that starts with `/wait` waits; `/long/N` gets N bytes. */
export class EchoHandler implements HttpHandler {
  readonly waiting: { readonly request: HttpRequest; readonly text: string }[] = [];
  readonly seen: string[] = [];
  rejected = 0;

  onRequest(request: HttpRequest, body: Uint8Array, start: number, end: number): void {
    const target = decoder.decode(
      request.target.subarray(request.targetStart, request.targetEnd),
    );
    const method = ["OTHER", "GET", "HEAD", "POST"][request.method];
    const text = `${method} ${target} ${decoder.decode(body.subarray(start, end))}`;
    this.seen.push(text);
    const long = /\/long\/(\d+)/.exec(target);
    if (long !== null) respond(request, "x".repeat(Number(long[1])));
    else if (target.startsWith("/wait")) this.waiting.push({ request, text });
    else respond(request, text);
  }

  onRejected(): void {
    this.rejected++;
  }

  /** Answers the request that has waited longest. */
  answer(): void {
    const { request, text } = this.waiting.shift()!;
    respond(request, text);
  }
}

/** The answer stands somewhere in a buffer that is used again at once. */
function respond(request: HttpRequest, text: string): void {
  const bytes = encoder.encode(`##${text}##`);
  request.respond(OK, request.method === Method.Other ? -1 : 60, bytes, 2, bytes.length - 4);
  bytes.fill(0);
}

export class FakeSocket implements HttpSocket {
  readonly client = "192.0.2.9";
  readonly serverName: string | null = "dns.example";
  /** What was written, each call by itself. */
  writes: Uint8Array[] = [];
  ended = false;
  paused = false;

  write(bytes: Uint8Array): void {
    if (this.ended) throw new Error("written behind the end");
    this.writes.push(bytes);
  }

  end(): void {
    this.ended = true;
  }

  overLimit(): void {}

  stopReading(): void {
    this.paused = true;
  }

  goOnReading(): void {
    this.paused = false;
  }

  /** Everything written since the last call. */
  take(): Uint8Array {
    const bytes = concat(...this.writes);
    this.writes = [];
    return bytes;
  }
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Uint8Array;
}

/** A frame in wire format. */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  bytes.set(payload, writeFrameHeader(bytes, 0, payload.length, type, flags, streamId));
  return bytes;
}

export function readFrames(bytes: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + FRAME_HEADER_BYTES + ((bytes[at] << 16) | getU16(bytes, at + 1));
    if (end > bytes.length) throw new Error("a frame that is cut off was written");
    frames.push({
      type: bytes[at + 3],
      flags: bytes[at + 4],
      streamId: getU32(bytes, at + 5),
      payload: bytes.subarray(at + FRAME_HEADER_BYTES, end),
    });
    at = end;
  }
  return frames;
}

/** A header block of literal fields that are put into no table, so that blocks go in any order. */
export function headerBlock(fields: readonly (readonly [string, string])[]): Uint8Array {
  const length = (n: number) => n < 127 ? [n] : [127, ...continued(n - 127)];
  const continued = (n: number): number[] =>
    n < 128 ? [n] : [(n & 127) | 128, ...continued(n >> 7)];
  return concat(
    ...fields.flatMap(([name, value]) => {
      const [n, v] = [encoder.encode(name), encoder.encode(value)];
      return [Uint8Array.of(0, ...length(n.length)), n, Uint8Array.of(...length(v.length)), v];
    }),
  );
}

export function requestFields(
  method: string,
  path: string,
  more: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] {
  return [
    [":method", method],
    [":scheme", "https"],
    [":authority", "dns.example"],
    [":path", path],
    ...more,
  ];
}

export const uint32 = (value: number) =>
  Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);

/** A setting as SETTINGS carries it. */
export const setting = (id: number, value: number) => concat(Uint8Array.of(0, id), uint32(value));

/** One connection with its client at hand. */
export class Http2Bench {
  readonly socket = new FakeSocket();
  readonly handler = new EchoHandler();
  readonly connection: Http2Connection;
  /** Windows of the server, as it told them. */
  readonly frames: Frame[] = [];
  readonly #decoder = new HpackDecoder();

  constructor(limits: HttpLimits = LIMITS) {
    this.connection = new Http2Connection(this.socket, this.handler, limits, new Outbox());
  }

  /** A connection whose preface and settings are exchanged. */
  static open(limits?: HttpLimits, ...settings: Uint8Array[]): Http2Bench {
    const bench = new Http2Bench(limits);
    bench.send(PREFACE, frame(FrameType.Settings, 0, 0, concat(...settings)));
    bench.send(frame(FrameType.Settings, 1, 0));
    bench.read();
    return bench;
  }

  /** The frames arrive in one chunk, whose memory is used again at once. */
  send(...frames: readonly Uint8Array[]): void {
    const chunk = concat(...frames);
    this.connection.receive(chunk);
    chunk.fill(0xa5);
  }

  request(id: number, path: string, body?: string, flags = 0): void {
    const isPost = body !== undefined;
    const block = headerBlock(requestFields(isPost ? "POST" : "GET", path));
    const head = frame(FrameType.Headers, 4 | (isPost ? 0 : 1) | flags, id, block);
    this.send(head, ...(isPost ? [frame(FrameType.Data, 1, id, encoder.encode(body))] : []));
  }

  /** What was written since, a line a frame. */
  read(): string[] {
    return readFrames(this.socket.take()).map((f) => this.#describe(f));
  }

  #describe({ type, flags, streamId, payload }: Frame): string {
    const ends = (flags & 1) !== 0 ? " end" : "";
    switch (type) {
      case FrameType.Headers: {
        const fields: string[] = [];
        const onField = (f: HeaderField) => {
          const text = (b: Uint8Array, s: number, e: number) => decoder.decode(b.slice(s, e));
          const name = text(f.nameBytes, f.nameStart, f.nameEnd);
          const value = text(f.value, f.valueStart, f.valueEnd);
          if (name === "date") {
            if (Number.isNaN(Date.parse(value))) throw new Error(`date: ${value}`);
          } else {
            fields.push(name === ":status" ? value : `${name}=${value}`);
          }
        };
        if (this.#decoder.read(payload, 0, payload.length, { onField }) !== 0) {
          throw new Error("a malformed header block was written");
        }
        return `${streamId} ${fields.join(" ")}${ends}`;
      }
      case FrameType.Data: {
        const text = decoder.decode(payload);
        return `${streamId} "${text.length > 60 ? `${text.length} bytes` : text}"${ends}`;
      }
      case FrameType.RstStream:
        return `${streamId} reset ${getU32(payload, 0)}`;
      case FrameType.Goaway:
        return `goaway ${getU32(payload, 0)} ${getU32(payload, 4)}`;
      case FrameType.WindowUpdate:
        return `${streamId} window +${getU32(payload, 0)}`;
      case FrameType.Settings:
        return flags === 1 ? "settings ack" : `settings of ${payload.length / 6}`;
      case FrameType.Ping:
        return `ping ${flags} ${payload.join(".")}`;
      default:
        throw new Error(`a frame of type ${type} was written`);
    }
  }
}
