import type { Native } from "../native/mod.ts";
import type { Packets, Process } from "../native/system.ts";
import { environmentOf } from "./self.ts";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC_NONBLOCK = 0o2004002;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const CLOCK_MONOTONIC = 1;
const SOCKET_VARIABLE = "NOTIFY_SOCKET";
const WATCHDOG_VARIABLE = "WATCHDOG_USEC";

/** Tells who supervises this service how it is: sd_notify(3). */
export class Notifier {
  /** It is restarted unless it says so often that it is well; `null`: nobody watches. */
  readonly watchdogMs: number | null;
  readonly #native: Native;
  readonly #packets: Packets;
  readonly #fd: number;
  readonly #address: Uint8Array<ArrayBuffer>;

  private constructor(
    native: Native,
    packets: Packets,
    fd: number,
    address: Uint8Array<ArrayBuffer>,
    watchdogMs: number | null,
  ) {
    this.#native = native;
    this.#packets = packets;
    this.#fd = fd;
    this.#address = address;
    this.watchdogMs = watchdogMs;
  }

  /** `null`: nobody supervises this process, or nobody can be told. */
  static of(process: Process, native: Native, packets: Packets): Notifier | null {
    const name = environmentOf(process, SOCKET_VARIABLE);
    if (name === null || !/^[/@]./.test(name)) return null;
    const fd = native.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC_NONBLOCK, 0);
    if (fd < 0) return null;
    const path = new TextEncoder().encode(name.replace(/^@/, "\0"));
    const address = new Uint8Array(2 + path.length);
    new DataView(address.buffer).setUint16(0, AF_UNIX, true);
    address.set(path, 2);
    const microseconds = Number(environmentOf(process, WATCHDOG_VARIABLE) ?? 0);
    const watchdogMs = microseconds > 0 ? microseconds / 1_000 : null;
    return new Notifier(native, packets, fd, address, watchdogMs);
  }

  /** It answers, or does so again. */
  ready(): void {
    this.#tell("READY=1");
  }

  /** It reads again what may have changed, until it is ready. */
  reloading(): void {
    const time = new BigInt64Array(2); // timespec: seconds, nanoseconds.
    this.#native.clock_gettime(CLOCK_MONOTONIC, new Uint8Array(time.buffer));
    this.#tell("RELOADING=1", `MONOTONIC_USEC=${time[0] * 1_000_000n + time[1] / 1_000n}`);
  }

  stopping(): void {
    this.#tell("STOPPING=1");
  }

  /** It is well. */
  alive(): void {
    this.#tell("WATCHDOG=1");
  }

  /** Another process is the service from now on. */
  handedOver(pid: number): void {
    this.#tell(`MAINPID=${pid}`);
  }

  #tell(...lines: readonly string[]): void {
    const message = new TextEncoder().encode(lines.join("\n"));
    const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    const { length } = this.#address;
    this.#packets.sendto(this.#fd, message, BigInt(message.length), flags, this.#address, length);
  }
}
