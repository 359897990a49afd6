import { openFirst, pathsOf } from "./library_paths.ts";

const SYMBOLS = {
  eventfd_write: { parameters: ["i32", "u64"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

/** The C library, by its files: no other may be opened. */
export const WAKER_PATHS: readonly string[] = pathsOf("libc.so.6");

/** Ends the waits of others by their descriptors, and has nothing else of the C library. */
export class Waker {
  readonly #symbols: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"];

  private constructor(symbols: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"]) {
    this.#symbols = symbols;
  }

  /** `null` where the C library is elsewhere, or another. */
  static open(): Waker | null {
    const library = openFirst(WAKER_PATHS, SYMBOLS);
    return library === null ? null : new Waker(library.symbols);
  }

  /** Ends the wait of whoever waits for what `openWake` has made. */
  wake(fd: number): void {
    this.#symbols.eventfd_write(fd, 1n);
  }
}
