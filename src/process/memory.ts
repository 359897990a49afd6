import { SvcError } from "../errors.ts";
import type { HandOver } from "../native/system.ts";
import { cString } from "./c_string.ts";

const MFD_CLOEXEC = 1;
const SEEK_END = 2;
/** Copied at a time: shared memory can't be handed to the system itself. */
const PIECE_BYTES = 1024 * 1024;

/** A file in memory that one process writes and the next one reads; gone when both are done. */
export class Memory {
  readonly #library: HandOver;
  readonly fd: number;

  constructor(library: HandOver, fd: number) {
    this.#library = library;
    this.fd = fd;
  }

  /** @throws {SvcError} `unavailable`. */
  static make(library: HandOver): Memory {
    const fd = library.symbols.memfd_create(cString("svc"), MFD_CLOEXEC);
    if (fd < 0) throw new SvcError("unavailable", "a file in memory: the system makes none");
    return new Memory(library, fd);
  }

  get length(): number {
    return Number(this.#library.symbols.lseek(this.fd, 0n, SEEK_END));
  }

  /**
   * Adds bytes behind those that are there.
   *
   * @throws {SvcError} `unavailable`, when there is no memory left.
   */
  append(bytes: Uint8Array<ArrayBufferLike>): void {
    let at = this.length;
    const { symbols } = this.#library;
    for (let from = 0; from < bytes.length;) {
      const piece = bytes.slice(from, from + PIECE_BYTES) as Uint8Array<ArrayBuffer>;
      const done = Number(symbols.pwrite(this.fd, piece, BigInt(piece.length), BigInt(at)));
      if (done <= 0) throw new SvcError("unavailable", "a file in memory: there is no memory left");
      from += done;
      at += done;
    }
  }

  /** Reads into all of `target`, from `offset` on; false where there is less. */
  read(target: Uint8Array<ArrayBufferLike>, offset: number): boolean {
    const { symbols } = this.#library;
    for (let to = 0; to < target.length;) {
      const piece = new Uint8Array(Math.min(PIECE_BYTES, target.length - to));
      const wanted = BigInt(piece.length);
      const done = Number(symbols.pread(this.fd, piece, wanted, BigInt(offset + to)));
      if (done <= 0) return false;
      target.set(piece.subarray(0, done), to);
      to += done;
    }
    return true;
  }

  close(): void {
    this.#library.symbols.close(this.fd);
  }
}
