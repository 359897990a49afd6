import { SvcError } from "../errors.ts";
import { addressOf, errnoHint, type Native } from "./libc.ts";

const EPOLL_CLOEXEC = 0o2000000;
const EPOLL_CTL_ADD = 1;
const EPOLLIN = 1;
/** Tells once of what is new. */
const EPOLLET = 0x8000_0000;
/** `epoll_event` is packed on x86-64 and aligned elsewhere. */
const [EVENT_BYTES, DATA_AT] = Deno.build.arch === "x86_64" ? [12, 4] : [16, 8];
/** Ready sockets taken from one wait; the rest are taken by the next. */
export const EVENTS_MAX = 256;
const EFD_CLOEXEC_NONBLOCK = 0o2004000;

/**
 * One wait for any number of sockets: on the isolate's own thread, or parked on one of the runtime's
 * pool, so that the runtime's events get their turn. Sockets may be added while it is parked.
 */
export class EventQueue {
  readonly #native: Native;
  readonly #fd: number;
  /** Shared memory that outlives a terminated isolate while its thread is still parked. */
  readonly #events: Uint8Array<SharedArrayBuffer>;
  readonly #view: DataView;
  readonly #pointer: Deno.PointerValue;
  readonly #control = new Uint8Array(EVENT_BYTES);
  readonly #controlView = new DataView(this.#control.buffer);
  /** Ready sockets that the next waits take, `EVENTS_MAX` at most; the rest stay ready. */
  atOnce: number = EVENTS_MAX;

  /** Bytes of the memory that the constructor is given. */
  static readonly MEMORY_BYTES = EVENTS_MAX * EVENT_BYTES;

  /** Uses the descriptor `fd` of `openEpoll`, and `memory` of `MEMORY_BYTES`. */
  constructor(native: Native, fd: number, memory: SharedArrayBuffer) {
    this.#native = native;
    this.#fd = fd;
    this.#events = new Uint8Array(memory);
    this.#view = new DataView(memory);
    this.#pointer = Deno.UnsafePointer.create(BigInt(addressOf(this.#events)));
  }

  /** Adds a socket; `token` (0 to 2^31 - 1) comes back for as long as it can be read. */
  add(fd: number, token: number): boolean {
    return this.#add(fd, token, EPOLLIN);
  }

  /** As `add` for what nobody reads here: `token` comes back once each time that more has come. */
  watch(fd: number, token: number): boolean {
    return this.#add(fd, token, EPOLLIN | EPOLLET);
  }

  #add(fd: number, token: number, events: number): boolean {
    this.#controlView.setUint32(0, events, true);
    this.#controlView.setUint32(DATA_AT, token, true);
    return this.#native.epoll_ctl(this.#fd, EPOLL_CTL_ADD, fd, this.#control) === 0;
  }

  /**
   * Waits until a socket can be read, or so many milliseconds; -1 is for ever. Returns the number of
   * ready ones, negative on an interrupted wait.
   */
  wait(timeoutMs: number): Promise<number> {
    return this.#native.epoll_wait_parked(this.#fd, this.#pointer, this.atOnce, timeoutMs);
  }

  /** As `wait`, and nothing else of this thread gets a turn meanwhile. */
  block(timeoutMs: number): number {
    return this.#native.epoll_wait(this.#fd, this.#pointer, this.atOnce, timeoutMs);
  }

  /** The ready sockets at this moment, without waiting. */
  poll(): number {
    return this.#native.epoll_wait(this.#fd, this.#pointer, this.atOnce, 0);
  }

  /** The token of the ready socket `index` of the last wait. */
  token(index: number): number {
    return this.#view.getUint32(index * EVENT_BYTES + DATA_AT, true);
  }
}

/**
 * A descriptor to wait with.
 *
 * @throws {SvcError} `unavailable`, when the system has none left.
 */
export function openEpoll(native: Native): number {
  const fd = native.epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw new SvcError("unavailable", `epoll: ${errnoHint(native)}`);
  return fd;
}

/**
 * A descriptor that ends a parked wait: of an isolate that stops, or was terminated.
 *
 * @throws {SvcError} `unavailable`, when the system has none left.
 */
export function openWake(native: Native): number {
  const fd = newWake(native);
  if (fd < 0) throw new SvcError("unavailable", `eventfd: ${errnoHint(native)}`);
  return fd;
}

/** The same; negative, when the system has none left. */
export function newWake(native: Native): number {
  return native.eventfd(0, EFD_CLOEXEC_NONBLOCK);
}

export function wake(native: Native, fd: number): void {
  native.eventfd_write(fd, 1n);
}
