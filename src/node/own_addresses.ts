import { formatHostPort, type HostPort, isLoopback, parseIp } from "../addr/mod.ts";
import type { DnsSupervisor } from "../isolate/mod.ts";

/** How long what the system said holds: it may be asked often. */
const KEPT_MS = 10_000;
/** Addresses that are told in place of a wildcard. */
const ADDRESSES_MAX = 32;

type Listener = DnsSupervisor["listeners"][number];

/** The addresses of this machine, for who has to be told one. */
export class OwnAddresses {
  #found: readonly HostPort["ip"][] = [];
  #readAtMs = -Infinity;

  /** Asks at once: later it may not be allowed. */
  constructor() {
    this.#read();
  }

  /** Listeners with real addresses in place of 0.0.0.0 and [::]. */
  of(listeners: readonly Listener[]): { protocol: string; address: string }[] {
    if (performance.now() - this.#readAtMs >= KEPT_MS) this.#read();
    const found = new Map<string, { protocol: string; address: string }>();
    for (const { protocol, address } of listeners) {
      for (const real of this.#realOf(address)) {
        const text = formatHostPort(real);
        found.set(`${protocol} ${text}`, { protocol, address: text });
      }
    }
    return [...found.values()];
  }

  #realOf({ ip, port }: HostPort): HostPort[] {
    if (ip.some((byte) => byte !== 0)) return [{ ip, port }];
    return this.#found.filter((own) => own.length === ip.length).map((own) => ({ ip: own, port }));
  }

  #read(): void {
    this.#readAtMs = performance.now();
    try {
      this.#found = Deno.networkInterfaces().flatMap(({ address }) => parseIp(address) ?? [])
        .filter((ip) => !isLoopback(ip) && !isLinkLocal(ip)).slice(0, ADDRESSES_MAX);
    } catch {
      // What was found before holds.
    }
  }
}

/** Of IPv6 one needs a zone as well, which differs from machine to machine. */
function isLinkLocal(ip: Uint8Array): boolean {
  return ip.length === 16 && ip[0] === 0xfe && (ip[1] & 0xc0) === 0x80;
}
