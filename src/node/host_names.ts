import { isPrivateAt, parseIp, reverseName, unmapIpv4 } from "../addr/mod.ts";
import type { Config } from "../config/mod.ts";
import { Qtype } from "../dns/mod.ts";
import type { DnsSupervisor } from "../isolate/mod.ts";
import type { Devices } from "./devices.ts";
import type { Envelope, RecordSpec, State } from "../model/mod.ts";

/** How long a name is kept, and how long it is that there is none. */
const KEPT_MS = 24 * 3_600_000;
/** After a failure it is asked again sooner. */
const FAILED_MS = 600_000;
const NAMES_MAX = 10_000;
/** Addresses that wait to be asked about; who is one too many is asked about another time. */
const WAITING_MAX = 1_024;
/** Questions at a time, and how soon the next may follow one. */
const ASKING_MAX = 2;
const PAUSE_MS = 100;
const QUESTION_MS_MAX = 5_000;
/** A name of DNS in presentation form, each byte escaped, is no longer. */
const NAME_LENGTH_MAX = 1_024;

/** What the local network calls an address. */
export interface HostName {
  readonly hostname: string | null;
  readonly source: "ptr" | "record" | "hosts" | "lease" | null;
}

interface Kept {
  readonly hostname: string | null;
  readonly untilMs: number;
}

export interface HostNamesOptions {
  readonly devices: Pick<Devices, "hostnameOf" | "macOf">;
  readonly dns: Pick<DnsSupervisor, "lookup">;
  readonly upstreams: readonly Pick<Config["upstreams"][number], "domains">[];
  readonly state: () => Pick<State, "collections">;
  readonly nowMs: () => number;
}

const NOBODY: HostName = { hostname: null, source: null };

/**
 * The names of private addresses: by local records, by files of this host, and by PTR of the upstreams whose `domains` cover
 * the reverse zone: nobody else is told who is on this network. Asked off the way of queries, slowly,
 * and kept a day.
 */
export class HostNames {
  readonly #options: HostNamesOptions;
  readonly #kept = new Map<string, Kept>();
  /** Those that wait, and those that are being asked for. */
  readonly #wanted = new Set<string>();
  readonly #waiting: string[] = [];
  #asking = 0;
  #recordsOf: unknown = null;
  #records: ReadonlyMap<string, string> = new Map();

  constructor(options: HostNamesOptions) {
    this.#options = options;
  }

  /** What is known of an address now; what is not is asked for, for the next time. */
  nameOf(address: string): HostName {
    const record = this.#byRecord(address);
    if (record !== undefined) return { hostname: record, source: "record" };
    const device = this.#options.devices.hostnameOf(address);
    if (device !== null) return device;
    const kept = this.#kept.get(address);
    if (kept === undefined || this.#options.nowMs() >= kept.untilMs) this.#want(address);
    return kept === undefined || kept.hostname === null
      ? NOBODY
      : { hostname: kept.hostname, source: "ptr" };
  }

  /** The MAC address of who has an address, as far as is known. */
  macOf(address: string): string | null {
    return this.#options.devices.macOf(address);
  }

  #byRecord(address: string): string | undefined {
    const { records } = this.#options.state().collections;
    if (records !== this.#recordsOf) {
      this.#recordsOf = records;
      this.#records = new Map(
        [...records.values()].filter(isOfHost).map(({ spec }) => [spec.value, spec.name]),
      );
    }
    return this.#records.get(address);
  }

  #want(address: string): void {
    if (this.#wanted.has(address) || this.#wanted.size >= WAITING_MAX) return;
    if (this.#reverseOf(address) === null) return;
    this.#wanted.add(address);
    this.#waiting.push(address);
    void this.#ask();
  }

  /** Asks for one after another until none waits. Never throws. */
  async #ask(): Promise<void> {
    if (this.#asking >= ASKING_MAX) return;
    this.#asking++;
    for (let address = this.#waiting.shift(); address !== undefined;) {
      await this.#askFor(address);
      this.#wanted.delete(address);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      address = this.#waiting.shift();
    }
    this.#asking--;
  }

  async #askFor(address: string): Promise<void> {
    const { dns, nowMs } = this.#options;
    const name = this.#reverseOf(address);
    if (name === null) return;
    let hostname: string | null = this.#kept.get(address)?.hostname ?? null;
    let keptMs = FAILED_MS;
    try {
      const { addresses: names } = await dns.lookup(
        name,
        Qtype.PTR,
        AbortSignal.timeout(QUESTION_MS_MAX),
      );
      hostname = names.at(0)?.replace(/\.$/, "").slice(0, NAME_LENGTH_MAX) ?? null;
      keptMs = KEPT_MS;
    } catch {
      // It is away, or does not know; what it said before holds.
    }
    this.#kept.delete(address);
    this.#kept.set(address, { hostname, untilMs: nowMs() + keptMs });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > NAMES_MAX) this.#kept.delete(oldest);
  }

  /** The name to ask for; `null` where nobody may be asked. */
  #reverseOf(address: string): string | null {
    const parsed = parseIp(address);
    if (parsed === null) return null;
    const ip = unmapIpv4(parsed);
    if (!isPrivateAt(ip, 0, ip.length)) return null;
    const name = reverseName(ip);
    const isCovered = this.#options.upstreams.some(({ domains }) =>
      domains.some((domain) => `.${name}`.endsWith(`.${domain.toLowerCase().replace(/\.$/, "")}`))
    );
    return isCovered ? name : null;
  }
}

function isOfHost({ spec: { enabled, name, type } }: Envelope<RecordSpec>): boolean {
  return enabled && (type === "A" || type === "AAAA") && !name.startsWith("*.");
}
