import type { ApiSockets } from "../api/mod.ts";
import type { Config } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { closeSeats, type DnsSeats, openSeats } from "../isolate/mod.ts";
import { closeSocket, dupSocket, type Native, openServer } from "../native/mod.ts";

/**
 * Every socket that a node listens on but those of QUIC, which the runtime opens itself: numbers of
 * this process and addresses, nothing else, so that one process can open them for another.
 */
export interface Sockets {
  readonly dns: DnsSeats;
  readonly api: OpenedApi;
}

/** In the order of `api.listen`; or why there are none: DNS goes on without the API. */
type OpenedApi =
  | { readonly kind: "open"; readonly sockets: readonly number[] }
  | { readonly kind: "failed"; readonly reason: string };

/** Without a certificate there is nothing to speak there. */
const NOT_ENCRYPTED = { dot: [], doh: [] };

/**
 * Opens the sockets that a configuration asks for, for so many dns isolates.
 *
 * @throws {SvcError} `unavailable`, with the address of DNS that can't be listened on.
 */
export function openSockets(
  native: Native,
  { server: { listen, tls }, api }: Pick<Config, "server" | "api">,
  isolates: number,
): Sockets {
  const { dot, doh } = tls.files === null ? NOT_ENCRYPTED : tls;
  return { dns: openSeats(native, { listen, dot, doh }, isolates), api: openApi(native, api) };
}

function openApi(native: Native, { listen }: Config["api"]): OpenedApi {
  const sockets: number[] = [];
  try {
    for (const address of listen) sockets.push(openServer(native, address));
    return { kind: "open", sockets };
  } catch (error) {
    for (const fd of sockets) closeSocket(native, fd);
    return { kind: "failed", reason: messageOf(error) };
  }
}

/** Closes those of DNS; nobody may read them any more. */
export function closeDnsSockets(native: Native, { dns }: Sockets): void {
  closeSeats(native, dns.seats);
}

/** Those of the API as its server takes them. */
export class ApiListeners implements ApiSockets {
  readonly #native: Native;
  readonly #opened: OpenedApi;
  #isClosed = false;

  constructor(native: Native, { api }: Sockets) {
    this.#native = native;
    this.#opened = api;
  }

  copy(index: number): number {
    const opened = this.#opened;
    if (opened.kind === "failed") throw new SvcError("unavailable", `api.listen: ${opened.reason}`);
    const copy = this.#isClosed ? -1 : dupSocket(this.#native, opened.sockets[index]);
    if (copy < 0) throw new SvcError("unavailable", "api.listen: no more file descriptors");
    return copy;
  }

  close(): void {
    if (this.#isClosed || this.#opened.kind === "failed") return;
    this.#isClosed = true;
    for (const fd of this.#opened.sockets) closeSocket(this.#native, fd);
  }
}
