/** A receiver of dnstap over Frame Streams, which takes the protobuf apart by the numbers of its fields. */
import assert from "node:assert/strict";
import { formatIp } from "../../src/addr/mod.ts";
import { decodeMessage, type Message } from "../../src/dns/mod.ts";
import { Fields } from "./collector.ts";
import { until } from "./harness.ts";

const CONTENT_TYPE = "protobuf:dnstap.Dnstap";
const Control = { Accept: 1, Start: 2, Stop: 3, Ready: 4, Finish: 5 } as const;

export interface Tapped {
  readonly identity: string;
  readonly version: string;
  readonly extra: Readonly<Record<string, unknown>>;
  readonly type: number;
  readonly family: number;
  readonly protocol: number;
  /** "": there is none. */
  readonly address: string;
  readonly queryMs: number;
  readonly responseMs: number;
  readonly response: Message;
  readonly policy: { type: string; rule: string; action: number; value: string } | null;
}

/** How it behaves: as it should, or it says garbage. */
export type Mood = "good" | "garbage";

export type Place =
  | { readonly path: string }
  | { readonly port: number; readonly tls?: { readonly cert: string; readonly key: string } };

export class DnstapReceiver implements AsyncDisposable {
  readonly tapped: Tapped[] = [];
  mood: Mood = "good";
  connections = 0;
  /** Streams that ended with STOP. */
  farewells = 0;
  readonly #listener: Deno.Listener<Deno.Conn>;
  readonly #open = new Set<Deno.Conn>();

  constructor(place: Place) {
    this.#listener = "path" in place
      ? Deno.listen({ transport: "unix", path: place.path })
      : place.tls === undefined
      ? Deno.listen({ hostname: "127.0.0.1", port: place.port })
      : Deno.listenTls({ hostname: "127.0.0.1", port: place.port, ...place.tls });
    void this.#accept();
  }

  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  /** The message about a name, once it has come. */
  async about(name: string): Promise<Tapped> {
    await until(`dnstap of ${name}`, () => this.#find(name) !== undefined);
    return this.#find(name)!;
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  #find(name: string): Tapped | undefined {
    return this.tapped.find(({ response }) => response.questions[0].name === name);
  }

  async #accept(): Promise<void> {
    for (;;) {
      let conn: Deno.Conn;
      try {
        conn = await this.#listener.accept();
      } catch (error) {
        if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) {
          return;
        }
        continue; // A handshake that failed.
      }
      this.connections++;
      this.#open.add(conn);
      this.#serve(conn).catch(() => {}).finally(() => this.#close(conn));
    }
  }

  async #serve(conn: Deno.Conn): Promise<void> {
    const { mood } = this;
    if (mood === "garbage") {
      await conn.write(new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"));
      await conn.read(new Uint8Array(1_024));
      return;
    }
    const input = new Input(conn);
    assert.deepEqual(await input.control(), [Control.Ready, CONTENT_TYPE]);
    await writeAll(conn, control(Control.Accept, CONTENT_TYPE));
    assert.deepEqual(await input.control(), [Control.Start, CONTENT_TYPE]);
    for (;;) {
      const length = await input.word();
      if (length > 0) {
        this.tapped.push(tapped(await input.take(length)));
        continue;
      }
      assert.deepEqual(await input.controlBody(), [Control.Stop, null]);
      this.farewells++;
      await writeAll(conn, control(Control.Finish, null));
      return;
    }
  }

  #close(conn: Deno.Conn): void {
    if (this.#open.delete(conn)) conn.close();
  }

  /** Ends every connection, as a receiver does that is started again. */
  drop(): void {
    for (const conn of this.#open) this.#close(conn);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.drop();
    return Promise.resolve();
  }
}

class Input {
  #kept = new Uint8Array(0);

  constructor(readonly conn: Deno.Conn) {}

  async take(length: number): Promise<Uint8Array> {
    const chunk = new Uint8Array(65_536);
    while (this.#kept.length < length) {
      const read = await this.conn.read(chunk);
      if (read === null) throw new Error("the connection ended");
      this.#kept = new Uint8Array([...this.#kept, ...chunk.subarray(0, read)]);
    }
    const taken = this.#kept.slice(0, length);
    this.#kept = this.#kept.slice(length);
    return taken;
  }

  async word(): Promise<number> {
    return wordAt(await this.take(4), 0);
  }

  async control(): Promise<[number, string | null]> {
    assert.equal(await this.word(), 0, "a control frame");
    return await this.controlBody();
  }

  async controlBody(): Promise<[number, string | null]> {
    const frame = await this.take(await this.word());
    const type = wordAt(frame, 0);
    if (frame.length === 4) return [type, null];
    assert.equal(wordAt(frame, 4), 1, "the content type");
    assert.equal(wordAt(frame, 8), frame.length - 12);
    return [type, new TextDecoder().decode(frame.subarray(12))];
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
}

function control(type: number, contentType: string | null): Uint8Array {
  const text = new TextEncoder().encode(contentType ?? "");
  const fields = contentType === null ? [] : [1, text.length];
  const words = [0, 4 + 4 * fields.length + text.length, type, ...fields];
  const frame = new Uint8Array(4 * words.length + text.length);
  for (const [i, word] of words.entries()) new DataView(frame.buffer).setUint32(4 * i, word);
  frame.set(text, 4 * words.length);
  return frame;
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}

function tapped(frame: Uint8Array): Tapped {
  const dnstap = new Fields(frame);
  assert.equal(dnstap.integer(15), 1, "it is a message");
  const [message] = dnstap.messages(14);
  const [policy] = message.messages(15);
  const timeMs = (seconds: number) =>
    message.integer(seconds) * 1_000 + message.integer(seconds + 1) / 1e6;
  const response = decodeMessage(message.bytes(14));
  assert.ok(response !== null, "the response is a message");
  return {
    identity: dnstap.text(1),
    version: dnstap.text(2),
    extra: JSON.parse(dnstap.text(3)),
    type: message.integer(1),
    family: message.integer(2),
    protocol: message.integer(3),
    address: message.has(4) ? formatIp(message.bytes(4)) : "",
    queryMs: timeMs(8),
    responseMs: timeMs(12),
    response,
    policy: policy === undefined ? null : {
      type: policy.text(1),
      rule: policy.text(2),
      action: policy.integer(3),
      value: policy.text(5),
    },
  };
}
