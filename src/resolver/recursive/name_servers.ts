import type { HostPort } from "../../addr/mod.ts";
import { getU32 } from "../../bytes/mod.ts";
import { type Exchange, type Remote, Server } from "../ask/mod.ts";
import {
  ADDRESSES_PER_SERVER_MAX,
  DOWN_MS,
  FAMILY_DOWN_MS,
  LAME_MS,
  LAME_ZONES_MAX,
  NAME_SERVERS_MAX,
  PATIENCE_MS_MAX,
  PATIENCE_MS_MIN,
  PATIENCE_START_MS,
  SERVERS_MAX,
  SILENCES_MAX,
} from "./limits.ts";

const DNS_PORT = 53;
/** Addresses that one is chosen from. */
const CANDIDATES_MAX = NAME_SERVERS_MAX * ADDRESSES_PER_SERVER_MAX;
const IPV6_BYTES = 16;
/** What a server is taken for that nothing is known of: it is to be tried, and not before all. */
const UNKNOWN_MS = 60;
/** The same of IPv6 as long as nothing was heard over it. */
const UNKNOWN_IPV6_MS = 150;
/** Added for each silence in a row. */
const SILENCE_MS = 400;
/** Servers that are this much slower than the fastest are as good: a forger is not to know which. */
const BAND_MS = 40;
const BAND_PART = 0.5;
/** One in so many questions goes to any server, so that one that got faster is found. */
const EXPLORED_PART = 0.05;
/** Servers in use that are passed over to make room for one. */
const SPARED_MAX = 16;
/** Ranks behind all times: used where nobody else is left. */
const DOWN_RANK = 1e6;
const LAME_RANK = 1e7;

/** One address of one or more name servers, and what is known of it. */
export class NameServer extends Server {
  readonly isIpv6: boolean;
  /** Smoothed time to answer and its deviation (RFC 6298); -1 before the first. */
  #smoothedMs = -1;
  #deviationMs = 0;
  /** Silences since its last answer. */
  silences = 0;
  /** Asked since it was looked at last to make room. */
  isInUse = true;
  #downUntilMs = -Infinity;
  /** Hashes of zones that it does not serve, each with the end of its time. */
  readonly #lame: { readonly zone: number; readonly untilMs: number }[] = [];

  constructor(readonly endpoint: HostPort, remote: Remote) {
    super(remote, false);
    this.isIpv6 = endpoint.ip.length === IPV6_BYTES;
  }

  /** How long to wait before another server is asked as well. */
  get patienceMs(): number {
    const ms = this.#smoothedMs < 0
      ? PATIENCE_START_MS
      : this.#smoothedMs + Math.max(4 * this.#deviationMs, this.#smoothedMs);
    return Math.min(
      Math.max(ms, PATIENCE_MS_MIN) * 2 ** Math.min(this.silences, 4),
      PATIENCE_MS_MAX,
    );
  }

  /** It has answered. */
  heard(tookMs: number): void {
    if (this.#smoothedMs < 0) {
      this.#smoothedMs = tookMs;
      this.#deviationMs = tookMs / 2;
    } else {
      const off = Math.abs(tookMs - this.#smoothedMs);
      this.#deviationMs += (off - this.#deviationMs) / 4;
      this.#smoothedMs += (tookMs - this.#smoothedMs) / 8;
    }
    this.silences = 0;
    this.#downUntilMs = -Infinity;
  }

  /** It had its time and said nothing, or can't be reached. */
  silent(nowMs: number): void {
    this.silences++;
    if (this.silences >= SILENCES_MAX) this.#downUntilMs = nowMs + DOWN_MS;
  }

  /** It has been silent of late: one query at a time finds out whether it still is. */
  isDown(nowMs: number): boolean {
    return nowMs < this.#downUntilMs;
  }

  /** It does not serve a zone. */
  isLameFor(zone: number, nowMs: number): boolean {
    for (const lame of this.#lame) if (lame.zone === zone && nowMs < lame.untilMs) return true;
    return false;
  }

  noteLame(zone: number, nowMs: number): void {
    const known = this.#lame.findIndex((lame) => lame.zone === zone);
    if (known >= 0) this.#lame.splice(known, 1);
    else if (this.#lame.length >= LAME_ZONES_MAX) this.#lame.shift();
    this.#lame.push({ zone, untilMs: nowMs + LAME_MS });
  }

  /** The less, the sooner it is asked, for a zone by its hash. */
  rank(zone: number, nowMs: number, isIpv6Proven: boolean): number {
    if (this.isLameFor(zone, nowMs)) return LAME_RANK;
    if (this.isDown(nowMs)) return DOWN_RANK;
    const unknownMs = this.isIpv6 && !isIpv6Proven ? UNKNOWN_IPV6_MS : UNKNOWN_MS;
    return (this.#smoothedMs < 0 ? unknownMs : this.#smoothedMs) + SILENCE_MS * this.silences;
  }
}

/** All that is reached by IPv4, or by IPv6. */
interface Family {
  heardAtMs: number;
  /** There is no way to any of it before then. */
  downUntilMs: number;
}

/** Every name server that is known, by its address; those that were not asked for long go first. */
export class NameServers {
  /** By the number that an IPv4 address is, and by the characters of one of IPv6. */
  readonly #byAddress = new Map<number | string, NameServer>();
  readonly #exchange: Pick<Exchange, "remote">;
  readonly #random: () => number;
  readonly #ipv4: Family = { heardAtMs: -Infinity, downUntilMs: -Infinity };
  readonly #ipv6: Family = { heardAtMs: -Infinity, downUntilMs: -Infinity };
  /** Of the choice at hand: nobody else's while it lasts. */
  readonly #candidates: NameServer[] = [];
  readonly #ranks = new Float64Array(CANDIDATES_MAX);
  #candidateCount = 0;

  constructor(exchange: Pick<Exchange, "remote">, random: () => number) {
    this.#exchange = exchange;
    this.#random = random;
  }

  get count(): number {
    return this.#byAddress.size;
  }

  /** The server at an address, which is copied. */
  at(address: Uint8Array): NameServer {
    const isIpv6 = address.length === IPV6_BYTES;
    const key = isIpv6 ? String.fromCharCode(...address) : getU32(address, 0);
    let server = this.#byAddress.get(key);
    if (server === undefined) {
      const endpoint = { ip: address.slice(), port: DNS_PORT };
      const plain = { transport: "udp" as const, endpoint };
      server = new NameServer(endpoint, this.#exchange.remote(plain));
      if (this.#byAddress.size >= SERVERS_MAX) this.#makeRoom();
      this.#byAddress.set(key, server);
    }
    return server;
  }

  /** Forgets one that was not asked of late: those that were get another round. */
  #makeRoom(): void {
    let spared = 0;
    for (const [key, server] of this.#byAddress) {
      if (server.open > 0) continue;
      this.#byAddress.delete(key);
      if (!server.isInUse || spared++ >= SPARED_MAX) return;
      server.isInUse = false;
      this.#byAddress.set(key, server);
    }
  }

  heard(server: NameServer, tookMs: number, nowMs: number): void {
    server.heard(tookMs);
    const family = this.#familyOf(server.isIpv6);
    family.heardAtMs = nowMs;
    family.downUntilMs = -Infinity;
  }

  /** The system has no way to a server: where nobody else is heard, that is so of its family. */
  unreachable(server: NameServer, nowMs: number): void {
    server.silent(nowMs);
    const family = this.#familyOf(server.isIpv6);
    if (nowMs - family.heardAtMs < FAMILY_DOWN_MS) return;
    family.downUntilMs = nowMs + FAMILY_DOWN_MS;
  }

  /** Says whether addresses of a family are of any use here. */
  hasWay(isIpv6: boolean, nowMs: number): boolean {
    return nowMs >= this.#familyOf(isIpv6).downUntilMs;
  }

  #familyOf(isIpv6: boolean): Family {
    return isIpv6 ? this.#ipv6 : this.#ipv4;
  }

  /** Begins a choice between the servers that are added. */
  startChoice(): void {
    this.#candidateCount = 0;
  }

  /** Adds a server to choose from, once. */
  addCandidate(server: NameServer): void {
    const count = this.#candidateCount;
    if (count >= CANDIDATES_MAX) return;
    for (let i = 0; i < count; i++) if (this.#candidates[i] === server) return;
    this.#candidates[count] = server;
    this.#candidateCount++;
  }

  /**
   * The one to ask next for a zone by its hash: any of those that answer about as fast as the
   * fastest, and now and then any at all.
   */
  choose(zone: number, nowMs: number): NameServer | null {
    const count = this.#candidateCount;
    const ranks = this.#ranks;
    const isIpv6Proven = this.#ipv6.heardAtMs > -Infinity;
    let best = Infinity;
    for (let i = 0; i < count; i++) {
      const server = this.#candidates[i];
      const rank = server.rank(zone, nowMs, isIpv6Proven);
      ranks[i] = this.hasWay(server.isIpv6, nowMs) ? rank : rank + DOWN_RANK;
      if (ranks[i] < best) best = ranks[i];
    }
    if (count === 0) return null;
    const explores = this.#random() < EXPLORED_PART;
    const worst = explores && best < DOWN_RANK ? DOWN_RANK : best * (1 + BAND_PART) + BAND_MS;
    let good = 0;
    for (let i = 0; i < count; i++) if (ranks[i] < worst) good++;
    let left = Math.floor(this.#random() * good);
    for (let i = 0; i < count; i++) {
      if (ranks[i] >= worst || left-- > 0) continue;
      this.#candidates[i].isInUse = true;
      return this.#candidates[i];
    }
    return null;
  }
}
