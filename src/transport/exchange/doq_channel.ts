import { getU16, setU16 } from "../../bytes/mod.ts";
import {
  DoqError,
  INTO_ROOM,
  LENGTH_BYTES,
  newRoom,
  type ReadAccount,
  readMessage,
  writeFrame,
} from "../quic_message.ts";
import { type ChannelEvents, type EncryptedQuery, OpenChannel } from "./channel.ts";

/**
 * Streams of one connection at a time. The runtime keeps up to 1.25 MB of what comes in on each until
 * it can be read, and has no way to say less.
 */
export const STREAMS_MAX = 32;

/** What is read of a stream ends where its length does: 64 KiB on each of few streams. */
const NO_ACCOUNT: ReadAccount = { onRead: () => {}, onGrown: () => {} };

/**
 * DNS over QUIC (RFC 9250): each query on a stream of its own, with the ID 0. A stream that is no
 * answer fails its query and no other.
 */
export class DoqChannel extends OpenChannel {
  readonly #conn: Deno.QuicConn;
  /** Queries that wait for a stream. */
  readonly #unsent = new Set<EncryptedQuery>();
  readonly #sent = new Map<EncryptedQuery, QueryStream>();
  /** Streams that were opened for queries called off meanwhile; the server has not heard of them. */
  readonly #spare: QueryStream[] = [];
  /** Streams that the server has yet to allow. */
  #opening = 0;

  constructor(conn: Deno.QuicConn, events: ChannelEvents) {
    super(events);
    this.#conn = conn;
    const end = () => this.end();
    conn.closed.then(end, end);
  }

  override get room(): number {
    return this.isOpen ? STREAMS_MAX - this.pending : 0;
  }

  override get pending(): number {
    return this.#unsent.size + this.#sent.size;
  }

  override send(query: EncryptedQuery): void {
    query.channel = this;
    this.silence.asked();
    const spare = this.#spare.pop();
    if (spare !== undefined) return void this.#ask(query, spare);
    this.#unsent.add(query);
    if (this.#opening < this.#unsent.size) void this.#openStream();
  }

  override cancel(query: EncryptedQuery): void {
    this.#unsent.delete(query);
    const stream = this.#sent.get(query);
    if (stream === undefined) return;
    this.#sent.delete(query);
    stream.release();
  }

  protected override takeAll(): EncryptedQuery[] {
    const queries = [...this.#sent.keys(), ...this.#unsent];
    // Until each of its streams is let go of, the runtime keeps all of the connection.
    for (const stream of [...this.#sent.values(), ...this.#spare]) stream.release();
    this.#sent.clear();
    this.#unsent.clear();
    this.#spare.length = 0;
    return queries;
  }

  protected override destroy(): void {
    this.#conn.close({ closeCode: DoqError.NoError, reason: "" });
  }

  async #openStream(): Promise<void> {
    this.#opening++;
    let stream: QueryStream;
    try {
      // Where all streams that the server allows are taken, this waits for one to end.
      const opened = await this.#conn.createBidirectionalStream({ waitUntilAvailable: true });
      stream = new QueryStream(opened);
    } catch {
      this.end(); // Only a connection that is gone has none to come.
      return;
    } finally {
      this.#opening--;
    }
    if (!this.isOpen) return stream.release();
    for (const query of this.#unsent) {
      this.#unsent.delete(query);
      return void this.#ask(query, stream);
    }
    this.#spare.push(stream);
  }

  async #ask(query: EncryptedQuery, stream: QueryStream): Promise<void> {
    this.#sent.set(query, stream);
    let packet: Uint8Array | null;
    try {
      packet = await stream.ask(query.packet);
    } catch (error) {
      if (isOfConnection(error)) this.end();
      else this.#fail(query, stream, "broke off the answer");
      return;
    }
    if (packet === null || packet.length < 2 || getU16(packet, 0) !== 0) {
      return this.#fail(query, stream, "sent something else than one DNS message");
    }
    if (!this.#forget(query, stream)) return;
    setU16(packet, 0, getU16(query.packet, 0));
    this.events.onAnswer(query, packet);
  }

  #fail(query: EncryptedQuery, stream: QueryStream, reason: string): void {
    if (!this.#forget(query, stream)) return;
    stream.release();
    this.events.onFailure(query, reason);
  }

  /** Says whether the query was still waiting for what came on the stream. */
  #forget(query: EncryptedQuery, stream: QueryStream): boolean {
    if (this.#sent.get(query) !== stream) return false;
    this.#sent.delete(query);
    this.silence.heard(this.pending);
    return true;
  }
}

/** One stream: a query goes out, an answer comes in. */
class QueryStream {
  readonly #reader: ReadableStreamBYOBReader;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

  constructor({ readable, writable }: Deno.QuicBidirectionalStream) {
    this.#reader = readable.getReader(INTO_ROOM);
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(ignore); // What becomes of the query, reading tells.
  }

  /**
   * Sends a query and its end, and reads the answer; `null` if that is none.
   *
   * @throws If the server has reset the stream, or has gone.
   */
  async ask(packet: Uint8Array): Promise<Uint8Array | null> {
    const frame = new Uint8Array(LENGTH_BYTES + packet.length);
    writeFrame(frame, packet);
    setU16(frame, LENGTH_BYTES, 0); // The stream says whose answer it is (RFC 9250 §4.2.1).
    this.#writer.write(frame).catch(ignore);
    this.#writer.close().catch(ignore);
    return await readMessage(this.#reader, newRoom(), NO_ACCOUNT);
  }

  /** Lets go of it, and of what the runtime holds for it. */
  release(): void {
    this.#reader.cancel().catch(ignore); // Fails where the server has reset it itself.
    this.#writer.abort().catch(ignore);
  }
}

/** It is not the stream alone that has ended. */
function isOfConnection(error: unknown): boolean {
  return error instanceof Error && error.message.includes("connection lost");
}

function ignore(): void {}
