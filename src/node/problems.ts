import { formatHostPort, isLoopback } from "../addr/mod.ts";
import { messageOf } from "../errors.ts";
import type { Config } from "../config/mod.ts";
import type { DnsSupervisor, DnsUpstream } from "../isolate/mod.ts";
import type { Settings } from "../model/mod.ts";

/** What is wrong with the node, for its status. */
export class Problems {
  readonly #lasting: string[] = [];
  readonly #sources: (() => readonly string[])[] = [];

  /** Notes something that stays wrong until the next start. */
  add(problem: string): void {
    this.#lasting.push(problem);
  }

  /** Asks `source` each time what is wrong at that moment. */
  watch(source: () => readonly string[]): void {
    this.#sources.push(source);
  }

  now(): string[] {
    return [...this.#lasting, ...this.#sources.flatMap((source) => this.#ask(source))];
  }

  /** Whoever fails at saying what is wrong is what is wrong; the others are heard all the same. */
  #ask(source: () => readonly string[]): readonly string[] {
    try {
      return source();
    } catch (error) {
      return [`a part can't tell what is wrong with it: ${messageOf(error)}`];
    }
  }
}

/** What is wrong with those who answer queries; `configured` are their upstreams. */
export function dnsProblems(
  { running, reports }: Pick<DnsSupervisor, "reports" | "running">,
  configured: readonly Pick<DnsUpstream, "address">[],
): string[] {
  const found: string[] = [];
  const { now, wanted } = running;
  if (now < wanted) {
    found.push(`${now} of ${wanted} isolates answer queries: one that crashed is started again`);
  }
  for (const [index, { address }] of configured.entries()) {
    // Each isolate has its own connections; what one of them says is bad enough.
    const failing = reports.map((report) => report.upstreams[index])
      .find((upstream) => upstream !== undefined && !upstream.healthy);
    if (failing !== undefined) found.push(`upstream ${address} ${failing.reason}`);
  }
  if (reports.some(({ lacksSockets }) => lacksSockets)) {
    found.push("no socket is left for queries to upstreams: raise the limit on open files");
  }
  if (reports.some(({ clockSuspect }) => clockSuspect)) {
    const now = new Date().toISOString().slice(0, 16);
    found.push(
      `signed answers are bogus: the keys of a trust anchor are out of their time by the system's ` +
        `clock, which says ${now}Z: see that NTP keeps it, or that the anchor's zone is signed anew`,
    );
  }
  const upstreams = reports.flatMap((report) => report.upstreams);
  if (upstreams.length > 0 && upstreams.every(({ healthy }) => !healthy)) {
    found.push("no upstream answers");
  }
  return found;
}

/** Says where anybody who reaches this node is answered: such a resolver is soon used for attacks. */
export function openResolverProblems(
  { access }: Pick<Settings, "access">,
  { requireClientId }: Pick<Config["server"]["tls"], "requireClientId">,
  listeners: DnsSupervisor["listeners"],
): string[] {
  // Who asks has to know an ID then.
  if (access.allowed.length > 0 || requireClientId) return [];
  const beyond = listeners.find(({ address }) => !isLoopback(address.ip));
  if (beyond === undefined) return [];
  return [
    `anybody who reaches ${formatHostPort(beyond.address)} is answered: the setting ` +
    "access.allowed is empty: put your networks there (PUT /api/v1/settings; left out, it is the " +
    "local ones)",
  ];
}
