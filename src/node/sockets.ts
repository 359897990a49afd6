import { formatHostPort, type HostPort, isUnspecified, serverAddresses } from "../addr/mod.ts";
import type { ApiSockets } from "../api/mod.ts";
import type { ChannelSockets } from "../cluster/mod.ts";
import type { Config } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { closeSeats, type DnsSeats, openSeats, type SocketUse } from "../isolate/seats.ts";
import { closeSocket, dupSocket, type Native, openServer } from "../native/mod.ts";

/**
 * Every socket that a node listens on but those of QUIC, which the runtime opens itself: numbers of
 * this process and addresses, nothing else, so that one process can open them for another.
 */
export interface Sockets {
  readonly dns: DnsSeats;
  readonly api: OpenedApi;
  /** By address as text; `null`: it could not be listened on yet. */
  readonly cluster: ReadonlyMap<string, number | null>;
  /** For proofs over HTTP; the same. */
  readonly acme: ReadonlyMap<string, number | null>;
}

/** In the order of `api.listen`; or why there are none: DNS goes on without the API. */
type OpenedApi =
  | { readonly kind: "open"; readonly sockets: readonly number[] }
  | { readonly kind: "failed"; readonly reason: string };

const IPV4_EVERY = new Uint8Array(4);
/** Without a certificate there is nothing to speak there. */
const NOT_ENCRYPTED = { dot: [], doh: [] };

/** What an inherited socket is for, and where it listens as the configuration has it. */
export interface SocketName {
  readonly use: SocketUse | "api" | "cluster" | "acme";
  readonly address: string;
}

/** Sockets that another process opened for this one, and those that nobody has taken yet. */
export class LeftSockets {
  readonly #native: Native;
  readonly #left: Map<string, number[]>;

  /** `names` are those of `descriptors`, one by one. */
  constructor(native: Native, names: readonly SocketName[], descriptors: readonly number[]) {
    this.#native = native;
    this.#left = new Map();
    for (const [i, { use, address }] of names.entries()) {
      const key = `${use} ${address}`;
      this.#left.set(key, [...this.#left.get(key) ?? [], descriptors[i]]);
    }
  }

  /** See `TakeSocket`. */
  readonly take = (use: SocketName["use"], address: HostPort): number | null =>
    this.#left.get(`${use} ${formatHostPort(address)}`)?.shift() ?? null;

  /** Closes those that nobody has a use for. */
  closeRest(): void {
    for (const fd of [...this.#left.values()].flat()) closeSocket(this.#native, fd);
    this.#left.clear();
  }
}

type Listens = Pick<Config, "server" | "api" | "cluster" | "acme">;

/**
 * Has the sockets that a configuration asks for, for so many dns isolates: those of `left`, and new
 * ones where none was left.
 *
 * @throws {SvcError} `unavailable`, with the address of DNS that can't be listened on.
 */
export function openSockets(
  native: Native,
  config: Listens,
  isolates: number,
  left: LeftSockets = new LeftSockets(native, [], []),
): Sockets {
  const dns = openSeats(native, dnsAddresses(config), isolates, left.take);
  const sockets = {
    dns,
    api: openApi(native, config.api, left),
    cluster: openOthers(native, "cluster", serverAddresses(config.cluster?.listen ?? []), left),
    acme: openOthers(native, "acme", proofAddresses(config.acme), left),
  };
  left.closeRest();
  return sockets;
}

function dnsAddresses({ server: { listen, tls } }: Listens) {
  const { dot, doh } = tls.files === null ? NOT_ENCRYPTED : tls;
  return { listen, dot, doh };
}

function openApi(native: Native, { listen }: Config["api"], left: LeftSockets): OpenedApi {
  const sockets: number[] = [];
  try {
    for (const address of listen) {
      const { ip, port } = address;
      // Whoever names an address of IPv4 at this port has a socket for it.
      const isIpv6Only = ip.length === 16 &&
        listen.some((other) => other.ip.length === 4 && other.port === port);
      sockets.push(left.take("api", address) ?? openServer(native, address, isIpv6Only));
    }
    return { kind: "open", sockets };
  } catch (error) {
    for (const fd of sockets) closeSocket(native, fd);
    return { kind: "failed", reason: messageOf(error) };
  }
}

/** Proofs over DNS are shown by sockets of the runtime's. */
function proofAddresses(acme: Config["acme"]): readonly HostPort[] {
  return acme?.challenge === "http-01" ? serverAddresses(acme.listen) : [];
}

/** Those that the service does without as long as they can't be had: who listens tries again. */
function openOthers(
  native: Native,
  use: "cluster" | "acme",
  addresses: readonly HostPort[],
  left: LeftSockets,
): Map<string, number | null> {
  const sockets = new Map<string, number | null>();
  for (const address of addresses) {
    const text = formatHostPort(address);
    try {
      sockets.set(text, left.take(use, address) ?? openEveryFamily(native, address));
    } catch {
      sockets.set(text, null);
    }
  }
  return sockets;
}

/** Where a machine has no IPv6, `::` is every address of IPv4. */
function openEveryFamily(native: Native, { ip, port }: HostPort): number {
  const isEvery = ip.length === 16 && isUnspecified(ip);
  return openServer(native, { ip: isEvery && !hasIpv6(native) ? IPV4_EVERY : ip, port });
}

function hasIpv6(native: Native): boolean {
  try {
    closeSocket(native, openServer(native, { ip: new Uint8Array(16), port: 0 }));
    return true;
  } catch {
    return false;
  }
}

/** The sockets as another process may inherit them, by the names of `LeftSockets`. */
export function namedSockets(
  { dns: { seats }, api, cluster, acme }: Sockets,
  config: Listens,
): { readonly name: SocketName; readonly fd: number }[] {
  const { listen, dot, doh } = dnsAddresses(config);
  const named = (
    use: SocketName["use"],
    addresses: readonly HostPort[],
    descriptors: readonly number[],
  ) => descriptors.map((fd, i) => ({ name: { use, address: formatHostPort(addresses[i]) }, fd }));
  return [
    ...seats.flatMap((seat) => [
      ...named("udp", listen, seat.udp),
      ...named("tcp", listen, seat.tcp),
      ...named("dot", dot, seat.dot),
      ...named("doh", doh, seat.doh),
    ]),
    ...named("api", config.api.listen, api.kind === "open" ? api.sockets : []),
    ...([["cluster", cluster], ["acme", acme]] as const).flatMap(([use, opened]) =>
      [...opened].flatMap(([address, fd]) => fd === null ? [] : [{ name: { use, address }, fd }])
    ),
  ];
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

/** Those of the cluster's channel, or of proofs, which are there for the next program too. */
export class LateListeners implements ChannelSockets {
  readonly #native: Native;
  readonly #opened: Map<string, number | null>;
  readonly #key: string;
  #isClosed = false;

  /** `key`: where the configuration has them. */
  constructor(native: Native, opened: ReadonlyMap<string, number | null>, key: string) {
    this.#native = native;
    this.#opened = new Map(opened);
    this.#key = key;
  }

  /** As they are by now. */
  get opened(): Sockets["cluster"] {
    return this.#opened;
  }

  copy(address: HostPort): number {
    const text = formatHostPort(address);
    if (this.#isClosed) throw new SvcError("unavailable", `${this.#key}: ${text} is closed`);
    const fd = this.#opened.get(text) ?? openEveryFamily(this.#native, address);
    this.#opened.set(text, fd);
    const copy = dupSocket(this.#native, fd);
    if (copy < 0) throw new SvcError("unavailable", `${this.#key}: no more file descriptors`);
    return copy;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const fd of this.#opened.values()) if (fd !== null) closeSocket(this.#native, fd);
    this.#opened.clear();
  }
}
