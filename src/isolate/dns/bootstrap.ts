import { parseIp } from "../../addr/mod.ts";
import { log } from "../../log.ts";
import type { Found } from "../../resolver/mod.ts";
import type { DnsUpstream } from "../messages.ts";

/** Types of records that hold addresses: A, AAAA. */
const ADDRESS_TYPES = [1, 28] as const;
/** Addresses are looked up again when their time is over, within these bounds. */
const REFRESH_MS_MIN = 60_000;
const REFRESH_MS_MAX = 24 * 60 * 60 * 1_000;
/** First pause after a look-up that failed; doubles up to the longest. */
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 60_000;
/** Most addresses of one upstream that are tried. */
const ADDRESSES_MAX = 16;

export interface BootstrapOptions {
  readonly upstreams: readonly DnsUpstream[];
  /** Calls `work` in so many milliseconds; returns what calls that off. */
  readonly after: (ms: number, work: () => void) => () => void;
  /** Asks the other upstreams; `qtype` is A or AAAA. */
  readonly lookup: (hostname: string, qtype: number, done: (found: Found) => void) => void;
  readonly onAddresses: (upstream: number, ips: readonly Uint8Array[]) => void;
  /** Nobody knows where the upstream is. */
  readonly onFailure: (upstream: number, reason: string) => void;
}

/**
 * Finds out where upstreams with a name are, and keeps it right. Once known, an address is good until
 * there is a better one.
 */
export class Bootstrap {
  readonly #options: BootstrapOptions;
  /** By upstream: calls its next look-up off. */
  readonly #waits = new Map<number, () => void>();
  #isClosed = false;

  constructor(options: BootstrapOptions) {
    this.#options = options;
  }

  /** Indexes of the upstreams whose addresses have to be looked up. */
  static unresolved(upstreams: readonly DnsUpstream[]): number[] {
    return [...upstreams.keys()].filter((i) => {
      const upstream = upstreams[i];
      return upstream.transport !== "udp" && upstream.ips.length === 0;
    });
  }

  /** Begins to look up. */
  start(): void {
    for (const index of Bootstrap.unresolved(this.#options.upstreams)) {
      this.#lookUp(index, RETRY_MS_MIN, false);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const callOff of this.#waits.values()) callOff();
  }

  #lookUp(index: number, retryMs: number, isKnown: boolean): void {
    const upstream = this.#options.upstreams[index];
    if (upstream.transport === "udp") return;
    const found: Found[] = [];
    for (const qtype of ADDRESS_TYPES) {
      this.#options.lookup(upstream.host, qtype, (one) => {
        found[qtype === ADDRESS_TYPES[0] ? 0 : 1] = one;
        if (found[0] !== undefined && found[1] !== undefined) {
          this.#take(index, found, retryMs, isKnown);
        }
      });
    }
  }

  #take(index: number, found: readonly Found[], retryMs: number, isKnown: boolean): void {
    if (this.#isClosed) return;
    const { upstreams, onAddresses, onFailure } = this.#options;
    const upstream = upstreams[index];
    const ips = found.flatMap(({ addresses }) => addresses).map((text) => parseIp(text))
      .filter((ip) => ip !== null).slice(0, ADDRESSES_MAX);
    if (ips.length > 0) {
      if (!isKnown) log.info("found an upstream", { upstream: upstream.address });
      onAddresses(index, ips);
      const known = found.filter(({ addresses }) => addresses.length > 0);
      const ttlMs = 1_000 * Math.min(...known.map(({ ttl }) => ttl));
      const waitMs = Math.min(Math.max(ttlMs, REFRESH_MS_MIN), REFRESH_MS_MAX);
      this.#after(waitMs, index, RETRY_MS_MIN, true);
      return;
    }
    const failure = found.map((one) => one.failure).find((text) => text !== null);
    const reason = `has a name that can't be looked up: ${failure ?? "it has no address"}`;
    if (retryMs === RETRY_MS_MIN) {
      log.warn("an upstream can't be found", {
        upstream: upstream.address,
        reason,
        effect: isKnown ? "its former addresses are kept" : "it is not asked",
      });
    }
    if (!isKnown) onFailure(index, reason);
    this.#after(retryMs, index, Math.min(2 * retryMs, RETRY_MS_MAX), isKnown);
  }

  #after(waitMs: number, index: number, retryMs: number, isKnown: boolean): void {
    const callOff = this.#options.after(waitMs, () => this.#lookUp(index, retryMs, isKnown));
    this.#waits.set(index, callOff);
  }
}
