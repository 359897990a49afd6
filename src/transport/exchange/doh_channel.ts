import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import {
  type ChannelEvents,
  type EncryptedQuery,
  QUERIES_PER_CONNECTION_MAX,
  SocketChannel,
} from "./channel.ts";

const DNS_MESSAGE = "application/dns-message";
/** No DNS message is longer (RFC 1035 §4.2.2). */
const BODY_BYTES_MAX = 0xffff;

/** DNS over HTTPS (RFC 8484) in HTTP/2: each query a POST of its own, over one HTTP/2 connection. */
export class DohChannel extends SocketChannel {
  readonly #session: ClientHttp2Session;
  readonly #head: Readonly<Record<string, string>>;
  readonly #streams = new Map<EncryptedQuery, ClientHttp2Stream>();
  /** The server takes no further streams (RFC 9113 §6.8). */
  #isLeaving = false;
  #streamsMax = QUERIES_PER_CONNECTION_MAX;

  /** `authority` is the host of the URL, with its port unless that is 443. */
  constructor(socket: TLSSocket, authority: string, path: string, events: ChannelEvents) {
    super(socket, events);
    this.#head = {
      ":method": "POST",
      ":path": path,
      accept: DNS_MESSAGE,
      "content-type": DNS_MESSAGE,
    };
    const session = this.#session = connect(`https://${authority}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
    });
    session.on("remoteSettings", ({ maxConcurrentStreams }) => {
      this.#streamsMax = Math.min(maxConcurrentStreams ?? Infinity, QUERIES_PER_CONNECTION_MAX);
    });
    session.on("goaway", () => this.#leave());
    for (const event of ["error", "close"]) session.on(event, () => this.end());
    this.endOn("error", "close");
  }

  override get room(): number {
    const isClosing = this.#isLeaving || this.#session.closed || this.socket.destroyed;
    return this.isOpen && !isClosing ? Math.max(0, this.#streamsMax - this.#streams.size) : 0;
  }

  override get pending(): number {
    return this.#streams.size;
  }

  override send(query: EncryptedQuery): void {
    query.channel = this;
    let stream: ClientHttp2Stream;
    try {
      const length = String(query.packet.length);
      stream = this.#session.request({ ...this.#head, "content-length": length });
    } catch {
      // The connection ended in this very turn, and nobody has said so yet.
      this.end();
      this.events.onLost(query);
      return;
    }
    this.#streams.set(query, stream);
    this.#listen(query, stream);
    stream.end(query.packet);
    this.silence.asked();
  }

  override cancel(query: EncryptedQuery): void {
    const stream = this.#streams.get(query);
    if (stream === undefined) return;
    this.#streams.delete(query);
    stream.close(constants.NGHTTP2_CANCEL);
    this.#closeIfLeft();
  }

  protected override takeAll(): EncryptedQuery[] {
    const queries = [...this.#streams.keys()];
    this.#streams.clear();
    return queries;
  }

  protected override destroy(): void {
    // The runtime may be in the middle of this session, and destroying it there frees what it still
    // works with: the process dies of it. So it goes in a turn of its own.
    setTimeout(() => {
      this.#session.destroy();
      super.destroy();
    }, 0);
  }

  #listen(query: EncryptedQuery, stream: ClientHttp2Stream): void {
    const chunks: Uint8Array[] = [];
    let length = 0;
    let refusal: string | null = null;
    /** Bytes that the head promised; -1 where it did not say. */
    let promised = Infinity;
    const broken = () => {
      if (this.#streams.get(query) !== stream) return;
      this.#streams.delete(query);
      // Refused, reset, or past the last one that the server takes: on another it may do.
      this.events.onLost(query);
      this.#closeIfLeft();
    };
    stream.on("response", (head: IncomingHttpHeaders) => {
      this.silence.heard(this.#streams.size);
      refusal = refusalOf(head);
      promised = Number(head["content-length"] ?? -1);
    });
    stream.on("data", (chunk: Uint8Array) => {
      this.silence.heard(this.#streams.size);
      length += chunk.length;
      if (length > BODY_BYTES_MAX) this.#fail(query, stream, "sent more than a DNS message");
      else chunks.push(chunk);
    });
    stream.on("end", () => {
      if (this.#streams.get(query) !== stream) return;
      if (refusal !== null) return this.#fail(query, stream, refusal);
      // What a lost connection leaves behind ends as well, before its head or in the middle.
      if (promised >= 0 && promised !== length) return broken();
      this.#streams.delete(query);
      this.silence.heard(this.#streams.size);
      this.events.onAnswer(query, joined(chunks, length));
      this.#closeIfLeft();
    });
    stream.on("error", broken);
    stream.on("close", broken);
  }

  #fail(query: EncryptedQuery, stream: ClientHttp2Stream, reason: string): void {
    this.#streams.delete(query);
    stream.close(constants.NGHTTP2_CANCEL);
    this.events.onFailure(query, reason);
    this.#closeIfLeft();
  }

  #leave(): void {
    this.#isLeaving = true;
    this.#closeIfLeft();
  }

  #closeIfLeft(): void {
    if (this.#isLeaving && this.#streams.size === 0) this.end();
  }
}

/** Why a response holds no answer, or `null` when it may. */
function refusalOf(head: IncomingHttpHeaders): string | null {
  const status = Number(head[":status"]);
  if (status !== 200) return `answered with HTTP status ${status}`;
  const type = head["content-type"]?.split(";", 1)[0].trim().toLowerCase();
  return type === DNS_MESSAGE ? null : "answered with something else than a DNS message";
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
