import { SvcError } from "../errors.ts";
import type { HandOver } from "../native/system.ts";

const AF_UNIX = 1;
const SOCK_STREAM_CLOEXEC = 0o2000001;
const POLLIN = 1;
const SHUT_RDWR = 2;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** Longest message. */
const MESSAGE_BYTES_MAX = 4_096;

/** Nothing more will come: the other process has closed its end, or has ended. */
export const GONE = Symbol("gone");
/** Nothing has come in time. */
export const LATE = Symbol("late");

/** A line between two processes of this program: short messages, each a JSON text and a line feed. */
export class Line {
  readonly #library: HandOver;
  readonly fd: number;
  #text = "";
  #isClosed = false;

  constructor(library: HandOver, fd: number) {
    this.#library = library;
    this.fd = fd;
  }

  /**
   * Both ends of a new one.
   *
   * @throws {SvcError} `unavailable`.
   */
  static pair(library: HandOver): [Line, Line] {
    const ends = new Int32Array(2);
    const bytes = new Uint8Array(ends.buffer);
    if (library.symbols.socketpair(AF_UNIX, SOCK_STREAM_CLOEXEC, 0, bytes) !== 0) {
      throw new SvcError("unavailable", "a line to another process: no more file descriptors");
    }
    return [new Line(library, ends[0]), new Line(library, ends[1])];
  }

  /** Says something; nobody may be there any more to hear it. */
  tell(message: unknown): void {
    if (this.#isClosed) return;
    const bytes = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
    const { symbols } = this.#library;
    symbols.send(this.fd, bytes, BigInt(bytes.length), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  /** The next message, or why there is none. */
  async hear(timeoutMs: number): Promise<unknown> {
    const endsAtMs = performance.now() + timeoutMs;
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end >= 0) {
        const line = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 1);
        return parsed(line);
      }
      if (this.#isClosed || this.#text.length > MESSAGE_BYTES_MAX) return GONE;
      const leftMs = Math.ceil(endsAtMs - performance.now());
      if (leftMs <= 0) return LATE;
      const hasNews = await this.#wait(leftMs);
      if (this.#isClosed || (hasNews && !this.#read())) return GONE;
    }
  }

  /** Says whether there is something to read, be it the end. */
  async #wait(timeoutMs: number): Promise<boolean> {
    const entry = new Uint8Array(8); // `pollfd`
    const view = new DataView(entry.buffer);
    view.setInt32(0, this.fd, true);
    view.setInt16(4, POLLIN, true);
    await this.#library.symbols.poll(entry, 1n, timeoutMs);
    return view.getInt16(6, true) !== 0;
  }

  #read(): boolean {
    const bytes = new Uint8Array(MESSAGE_BYTES_MAX);
    const { symbols } = this.#library;
    const length = Number(symbols.recv(this.fd, bytes, BigInt(bytes.length), MSG_DONTWAIT));
    if (length <= 0) return false;
    this.#text += new TextDecoder().decode(bytes.subarray(0, length));
    return true;
  }

  /**
   * Ends the line for everybody who has an end of it: a wait that is parked in the system, this
   * end's too, is over.
   */
  close(): void {
    if (!this.#isClosed) this.#library.symbols.shutdown(this.fd, SHUT_RDWR);
    this.leave();
  }

  /** Leaves this end to whoever has inherited it. */
  leave(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#library.symbols.close(this.fd);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
