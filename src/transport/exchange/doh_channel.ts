import { Buffer } from "node:buffer";
import type { TLSSocket } from "node:tls";
import { fieldOf } from "../listen/http2/hpack_writer.ts";
import {
  type ChannelEvents,
  type EncryptedQuery,
  QUERIES_PER_CONNECTION_MAX,
  SocketChannel,
} from "./channel.ts";
import { Http2Client, type Http2Events, type Http2Stream } from "./http2_client.ts";

const DNS_MESSAGE = "application/dns-message";
/** No DNS message is longer (RFC 1035 §4.2.2). */
const BODY_BYTES_MAX = 0xffff;
/** How often the connection may again carry frames that say nothing. */
const RENEW_MS = 1_000;

type QueryStream = Http2Stream<EncryptedQuery>;

/**
 * DNS over HTTPS (RFC 8484) in HTTP/2: each query a POST of its own, over one HTTP/2 connection. It is
 * spoken here: the runtime's own client of HTTP/2 can end the process where a server says goodbye.
 */
export class DohChannel extends SocketChannel implements Http2Events<EncryptedQuery> {
  readonly #client: Http2Client<EncryptedQuery>;
  /** Fields of every request, but for its length. */
  readonly #fields: Uint8Array;
  readonly #streams = new Map<EncryptedQuery, QueryStream>();
  /** Frames of this turn: they leave together, in one TLS record. */
  #outgoing: Uint8Array[] = [];
  #isLeaving = false;
  #renewedAtMs = 0;

  /** `authority` is the host of the URL, with its port unless that is 443. */
  constructor(socket: TLSSocket, authority: string, path: string, events: ChannelEvents) {
    super(socket, events);
    this.#fields = Uint8Array.from([
      ...fieldOf(":method", "POST"),
      ...fieldOf(":scheme", "https"),
      ...fieldOf(":authority", authority),
      ...fieldOf(":path", path),
      ...fieldOf("accept", DNS_MESSAGE),
      ...fieldOf("content-type", DNS_MESSAGE),
    ]);
    this.#client = new Http2Client(BODY_BYTES_MAX, this);
    socket.on("data", (chunk: Uint8Array) => this.#client.receive(chunk));
    this.endOn("end", "error", "close");
  }

  override get room(): number {
    if (!this.isOpen || this.socket.destroyed) return 0;
    return Math.min(this.#client.room, QUERIES_PER_CONNECTION_MAX - this.#streams.size);
  }

  override get pending(): number {
    return this.#streams.size;
  }

  override send(query: EncryptedQuery): void {
    query.channel = this;
    const length = fieldOf("content-length", String(query.packet.length));
    const head = new Uint8Array(this.#fields.length + length.length);
    head.set(this.#fields);
    head.set(length, this.#fields.length);
    this.#streams.set(query, this.#client.request(query, head, query.packet));
    this.silence.asked();
  }

  override cancel(query: EncryptedQuery): void {
    const stream = this.#streams.get(query);
    if (stream === undefined) return;
    this.#streams.delete(query);
    this.#client.cancel(stream);
    this.#endIfLeft();
  }

  override sweep(nowMs: number): void {
    if (nowMs - this.#renewedAtMs >= RENEW_MS) {
      this.#renewedAtMs = nowMs;
      this.#client.renew();
    }
    super.sweep(nowMs);
  }

  write(bytes: Uint8Array): void {
    if (this.#outgoing.length === 0) queueMicrotask(() => this.#flush());
    this.#outgoing.push(bytes);
  }

  onHeard(): void {
    this.silence.heard(this.#streams.size);
  }

  onResponse(stream: QueryStream): void {
    const { owner: query, status, contentType } = stream;
    if (status !== 200) return this.#fail(stream, `answered with HTTP status ${status}`);
    if (contentType !== DNS_MESSAGE) {
      return this.#fail(stream, "answered with something else than a DNS message");
    }
    this.#forget(query);
    this.events.onAnswer(query, stream.body);
    this.#endIfLeft();
  }

  onOverlong(stream: QueryStream): void {
    this.#fail(stream, "sent more than a DNS message");
  }

  /** Refused, reset, or past the last one that the server takes: on another it may do. */
  onBroken({ owner: query }: QueryStream): void {
    this.#forget(query);
    this.events.onLost(query);
    this.#endIfLeft();
  }

  onLeaving(): void {
    this.#isLeaving = true;
    this.#endIfLeft();
  }

  onFailed(): void {
    this.end();
  }

  protected override takeAll(): EncryptedQuery[] {
    const queries = [...this.#streams.keys()];
    this.#streams.clear();
    this.#client.close();
    return queries;
  }

  #fail({ owner: query }: QueryStream, reason: string): void {
    this.#forget(query);
    this.events.onFailure(query, reason);
    this.#endIfLeft();
  }

  #forget(query: EncryptedQuery): void {
    this.#streams.delete(query);
    this.onHeard();
  }

  #endIfLeft(): void {
    if (this.#isLeaving && this.#streams.size === 0) this.end();
  }

  #flush(): void {
    const frames = this.#outgoing;
    this.#outgoing = [];
    if (this.isOpen) this.socket.write(Buffer.concat(frames));
  }
}
