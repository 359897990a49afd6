import { formatIp, formatMac, isLoopback, parseMac } from "../addr/mod.ts";
import type { DevicesConfig } from "../config/mod.ts";
import { messageOf } from "../errors.ts";
import { type Device, readHosts, readLeases } from "../hosts/mod.ts";
import { log } from "../log.ts";
import type { ClientSpec, Envelope, State } from "../model/mod.ts";
import type { Neighbour, Neighbours } from "../netlink/mod.ts";
import { every } from "./every.ts";

/** How often files are looked at for a change. */
const LOOK_MS = 30_000;
/** Longest file that is read; one of ten thousand leases has less. */
const FILE_BYTES_MAX = 4 * 2 ** 20;
/** Addresses that are remembered in all, and of one device: the newest. */
const ADDRESSES_MAX = 16_384;
const ADDRESSES_PER_MAC_MAX = 64;
/** Changes of addresses take hold together, that much apart at least. */
const APART_MS = 1_000;

type Clients = ReadonlyMap<string, Envelope<ClientSpec>>;

/** The files of a host, as far as they are read. */
export interface DeviceFiles {
  /** What changes with the content; rejects where there is no such file. */
  versionOf(path: string): Promise<string>;
  /** @throws What the platform throws, and for a file of more bytes. */
  read(path: string, bytesMax: number): Promise<string>;
}

export interface DevicesOptions {
  readonly config: DevicesConfig;
  readonly files: DeviceFiles;
  /** `null`: this system does not tell. */
  readonly neighbours: Pick<Neighbours, "start" | "stop"> | null;
}

interface ReadFile {
  readonly version: string | null;
  readonly devices: readonly Device[];
  readonly problem: string | null;
}

/**
 * Who is on the network: names and MAC addresses by files of this host, and MAC addresses by its
 * neighbours. A client with a MAC address is found at each address that the device has.
 */
export class Devices {
  /** Called when clients may be found at other addresses. */
  onMove: () => Promise<void> = async () => {};
  readonly #options: DevicesOptions;
  readonly #files = new Map<string, ReadFile>();
  #hosts: ReadonlyMap<string, Device> = new Map();
  #leases: ReadonlyMap<string, Device> = new Map();
  /** MAC addresses by address, the one last heard of at the end. */
  readonly #heard = new Map<string, string>();
  readonly #addresses = new Map<string, Set<string>>();
  #isWatching = false;
  #neighbourProblem: string | null = null;
  #stopLooking: () => void = () => {};
  #moveTimer: ReturnType<typeof setTimeout> | null = null;
  #movedAtMs = -Infinity;
  /** What was told last, and of what. */
  #last: { of: Clients | null; moves: number; is: Clients } = { of: null, moves: 0, is: new Map() };
  /** How often a client's device was found elsewhere. */
  #moves = 0;
  /** Clients with a MAC address, as the state has them and as they were told to be last. */
  #located = new Map<string, { readonly of: Envelope<ClientSpec>; is: Envelope<ClientSpec> }>();

  constructor(options: DevicesOptions) {
    this.#options = options;
  }

  /** Reads the files, and goes on looking at them. */
  async open(): Promise<void> {
    await this.#readFiles();
    const { hostsFiles, leaseFiles } = this.#options.config;
    if (hostsFiles.length + leaseFiles.length === 0) return;
    let isReading = false;
    this.#stopLooking = every(LOOK_MS, async () => {
      if (isReading) return;
      isReading = true;
      await this.#readFiles();
      isReading = false;
    });
  }

  stop(): void {
    this.#stopLooking();
    this.#options.neighbours?.stop();
    if (this.#moveTimer !== null) clearTimeout(this.#moveTimer);
  }

  /** Files that can't be read, and what can't be heard. */
  get problems(): string[] {
    const found = [...this.#files.values()].flatMap(({ problem }) => problem ?? []);
    return this.#neighbourProblem === null ? found : [...found, this.#neighbourProblem];
  }

  /** What files call who has an address. */
  hostnameOf(address: string): { hostname: string; source: "hosts" | "lease" } | null {
    const [host, lease] = [this.#hosts.get(address), this.#leases.get(address)];
    if (typeof host?.hostname === "string") return { hostname: host.hostname, source: "hosts" };
    if (typeof lease?.hostname === "string") return { hostname: lease.hostname, source: "lease" };
    return null;
  }

  /** The MAC address of who has an address, as far as is known. */
  macOf(address: string): string | null {
    this.#watch();
    return this.#heard.get(address) ?? this.#leases.get(address)?.mac ?? null;
  }

  /** The state with each client at the addresses that its devices have. */
  locate<S extends Pick<State, "collections">>(state: S): S {
    const { clients } = state.collections;
    if (clients !== this.#last.of || this.#last.moves !== this.#moves) {
      this.#last = { of: clients, moves: this.#moves, is: this.#locateAll(clients) };
    }
    if (this.#last.is === clients) return state;
    return { ...state, collections: { ...state.collections, clients: this.#last.is } };
  }

  #locateAll(clients: Clients): Clients {
    const withMac = [...clients.values()].filter(hasMac);
    const former = this.#located;
    this.#located = new Map();
    if (withMac.length === 0) return clients;
    this.#watch();
    const taken = new Set([...clients.values()].flatMap(({ spec }) => spec.addresses));
    const located = new Map(clients);
    for (const client of withMac) {
      const addresses = client.spec.addresses.flatMap((text) => [
        text,
        ...this.#addressesOf(text).filter((address) => !taken.has(address)),
      ]);
      const known = former.get(client.id);
      const isSame = known?.of === client && isEqual(known.is.spec.addresses, addresses);
      const is = isSame ? known.is : { ...client, spec: { ...client.spec, addresses } };
      this.#located.set(client.id, { of: client, is });
      located.set(client.id, is);
    }
    return located;
  }

  #addressesOf(mac: string): readonly string[] {
    if (parseMac(mac) === null) return [];
    const heard = this.#addresses.get(mac) ?? new Set();
    const leased = [...this.#leases.values()].filter((lease) =>
      lease.mac === mac && !this.#heard.has(lease.address)
    );
    return [...heard, ...leased.map(({ address }) => address).slice(-ADDRESSES_PER_MAC_MAX)];
  }

  /** Hears of neighbours from now on: nobody wakes for it before somebody asks. */
  #watch(): void {
    const { neighbours, config } = this.#options;
    if (this.#isWatching || neighbours === null || !config.neighbours) return;
    this.#isWatching = true;
    try {
      neighbours.start((found) => this.#hear(found));
    } catch (error) {
      this.#neighbourProblem =
        `devices.neighbours: ${messageOf(error)}: clients are not found by ` +
        "MAC address; set it to false where that is meant";
    }
  }

  #hear(found: readonly Neighbour[]): void {
    let isMoved = false;
    for (const neighbour of found) {
      if (isLoopback(neighbour.address)) continue;
      const address = formatIp(neighbour.address);
      const mac = parseMac(formatMac(neighbour.mac));
      if (mac === null) continue;
      const former = this.#heard.get(address);
      if (former !== mac) {
        isMoved ||= this.#isOfClient(mac) || (former !== undefined && this.#isOfClient(former));
        this.#forget(address);
      }
      this.#remember(address, mac);
    }
    if (isMoved) this.#move();
  }

  #remember(address: string, mac: string): void {
    this.#heard.delete(address);
    this.#heard.set(address, mac);
    const all = this.#addresses.get(mac) ?? new Set();
    this.#addresses.set(mac, all);
    all.delete(address);
    all.add(address);
    const [oldest] = all;
    if (all.size > ADDRESSES_PER_MAC_MAX) this.#forget(oldest);
    const [first] = this.#heard.keys();
    if (this.#heard.size > ADDRESSES_MAX) this.#forget(first);
  }

  #forget(address: string): void {
    const mac = this.#heard.get(address);
    if (mac === undefined) return;
    this.#heard.delete(address);
    const all = this.#addresses.get(mac);
    all?.delete(address);
    if (all?.size === 0) this.#addresses.delete(mac);
  }

  #isOfClient(mac: string): boolean {
    for (const { of } of this.#located.values()) if (of.spec.addresses.includes(mac)) return true;
    return false;
  }

  #move(): void {
    this.#moves++;
    if (this.#moveTimer !== null) return;
    const waitMs = Math.max(0, this.#movedAtMs + APART_MS - performance.now());
    this.#moveTimer = setTimeout(() => {
      this.#moveTimer = null;
      this.#movedAtMs = performance.now();
      this.onMove().catch((error) => log.error("devices have moved unheard", { error }));
    }, waitMs);
  }

  async #readFiles(): Promise<void> {
    const { hostsFiles, leaseFiles } = this.#options.config;
    const before = this.#leases;
    let isChanged = false;
    for (const path of hostsFiles) isChanged = await this.#readFile(path, readHosts) || isChanged;
    for (const path of leaseFiles) isChanged = await this.#readFile(path, readLeases) || isChanged;
    if (!isChanged) return;
    this.#hosts = this.#join(hostsFiles);
    this.#leases = this.#join(leaseFiles);
    const moved = (one: Device) => one.mac !== null && this.#isOfClient(one.mac);
    if ([...before.values(), ...this.#leases.values()].some(moved)) this.#move();
  }

  /** Says whether there is anything new. What was read before holds while a file can't be read. */
  async #readFile(path: string, parse: (text: string) => Device[]): Promise<boolean> {
    const { files } = this.#options;
    const former = this.#files.get(path) ?? { version: null, devices: [], problem: null };
    try {
      const version = await files.versionOf(path);
      if (version === former.version) return false;
      const devices = parse(await files.read(path, FILE_BYTES_MAX)).slice(0, ADDRESSES_MAX);
      this.#files.set(path, { version, devices, problem: null });
      return true;
    } catch (error) {
      // Many a machine has no hosts file; a server of DHCP writes its own.
      const isLacking = error instanceof Deno.errors.NotFound && parse === readHosts;
      const problem = isLacking ? null : `devices: ${path}: ${messageOf(error)}: name another file`;
      this.#files.set(path, { ...former, version: null, problem });
      return false;
    }
  }

  /** What an earlier file says of an address counts. */
  #join(paths: readonly string[]): ReadonlyMap<string, Device> {
    const joined = new Map<string, Device>();
    for (const path of paths) {
      for (const device of this.#files.get(path)?.devices ?? []) {
        if (!joined.has(device.address)) joined.set(device.address, device);
      }
    }
    return joined;
  }
}

function hasMac({ spec }: Envelope<ClientSpec>): boolean {
  return spec.addresses.some((text) => parseMac(text) !== null);
}

function isEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}

/** The disk of this machine. */
export const deviceFiles: DeviceFiles = {
  async versionOf(path) {
    const { isFile, dev, ino, size, mtime } = await Deno.stat(path);
    if (!isFile) throw new Error("it is no file");
    return [dev, ino, size, mtime?.getTime()].join(" ");
  },
  async read(path, bytesMax) {
    using file = await Deno.open(path);
    // Whatever it is by now: a pipe, or a file that grows, ends here as well.
    const bytes = new Uint8Array(bytesMax + 1);
    let end = 0;
    for (let read: number | null = 0; read !== null && end < bytes.length; end += read ?? 0) {
      read = await file.read(bytes.subarray(end));
    }
    if (end > bytesMax) throw new Error(`it has more than ${bytesMax} bytes`);
    return new TextDecoder().decode(bytes.subarray(0, end));
  },
};
