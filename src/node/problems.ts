import { formatHostPort, isLoopback } from "../addr/mod.ts";
import { messageOf } from "../errors.ts";
import type { Config } from "../config/mod.ts";
import type { DnsSupervisor, DnsUpstream } from "../isolate/mod.ts";
import type { Settings } from "../model/mod.ts";
import { every } from "./every.ts";

/** Something that is wrong. */
export interface Problem {
  /** What kind of problem. */
  readonly code: string;
  /** What is wrong, and how to mend it. */
  readonly message: string;
  /** What it is about, as the audit log names it; `null`: the node. */
  readonly resource: { readonly type: string; readonly id: string | null } | null;
}

/** A problem, and since when it was seen. */
export interface SeenProblem extends Problem {
  readonly sinceMs: number;
}

/** What a source tells: problems of its kind as texts, others whole. */
type Told = readonly (string | Problem)[];

/** How often somebody looks what is wrong, whoever asks: so is known since when. */
const LOOK_MS = 15_000;

/** What is wrong with the node, for its status. */
export class Problems {
  readonly #lasting: Problem[] = [];
  readonly #sources: (() => readonly Problem[])[] = [];
  readonly #nowMs: () => number;
  /** Since when each was seen, by what stays the same of it. */
  #since: ReadonlyMap<string, number> = new Map();

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** Notes something that stays wrong until the next start. */
  add(code: string, message: string): void {
    this.#lasting.push({ code, message, resource: null });
  }

  /** Asks `source` each time what is wrong at that moment; `code` is what its texts are. */
  watch(code: string, source: () => Told): void {
    this.#sources.push(() => ask(code, source));
  }

  /** What is wrong now, as texts. */
  texts(): string[] {
    return this.now().map(({ message }) => message);
  }

  now(): SeenProblem[] {
    const nowMs = this.#nowMs();
    const since = new Map<string, number>();
    const found = [...this.#lasting, ...this.#sources.flatMap((source) => source())];
    const seen = found.map((problem) => {
      const key = problemKey(problem);
      const sinceMs = this.#since.get(key) ?? nowMs;
      since.set(key, sinceMs);
      return { ...problem, sinceMs };
    });
    this.#since = since;
    return seen;
  }

  /** Looks now and then; returns what ends that. */
  look(): () => void {
    return every(LOOK_MS, () => void this.now());
  }
}

/** Whoever fails at saying what is wrong is what is wrong; the others are heard all the same. */
function ask(code: string, source: () => Told): readonly Problem[] {
  try {
    return source().map((told) =>
      typeof told === "string" ? { code, message: told, resource: null } : told
    );
  } catch (error) {
    const message = `a part can't tell what is wrong with it: ${messageOf(error)}`;
    return [{ code, message, resource: null }];
  }
}

/** Figures in a message may change while the problem stays. */
export function problemKey({ code, message, resource }: Problem): string {
  const what = resource === null
    ? message.replaceAll(/\d+/g, "0")
    : `${resource.type} ${resource.id}`;
  return `${code} ${what}`;
}

/** What is wrong with those who answer queries; `configured` are their upstreams. */
export function dnsProblems(
  { running, reports }: Pick<DnsSupervisor, "reports" | "running">,
  configured: readonly Pick<DnsUpstream, "address">[],
): (string | Problem)[] {
  const found: (string | Problem)[] = [];
  const { now, wanted } = running;
  if (now < wanted) {
    found.push(`${now} of ${wanted} isolates answer queries: one that crashed is started again`);
  }
  for (const [index, { address }] of configured.entries()) {
    // Each isolate has its own connections; what one of them says is bad enough.
    const failing = reports.map((report) => report.upstreams[index])
      .find((upstream) => upstream !== undefined && !upstream.healthy);
    if (failing === undefined) continue;
    const message = `upstream ${address} ${failing.reason}`;
    found.push({ code: "upstream", message, resource: { type: "upstream", id: address } });
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
