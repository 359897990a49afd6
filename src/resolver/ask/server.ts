import type { Query } from "../query.ts";
import type { Remote, ServerTransport } from "./ports.ts";
import type { ResponseReader } from "./response.ts";

/** How long a server without EDNS is asked without; then it may have learned. */
const WITHOUT_EDNS_MS = 3_600_000;
/** The same of one that was silent to EDNS alone: less speaks for it than what a server says. */
export const DROPS_EDNS_MS = 900_000;
/** How often one that is silent, whatever it is asked with, is asked without EDNS. */
export const TRY_PLAIN_MS_MIN = 60_000;
/** How long an answer to a query with EDNS proves that silence has other reasons. */
export const KNOWS_EDNS_MS = 86_400_000;

/** Queries that the connections to one server take at a time; further ones wait for these. */
const OPEN_AT_ONCE: Readonly<Record<ServerTransport, number>> = {
  udp: Infinity,
  tls: 512,
  https: 400,
  quic: 128,
};

/** A server that can be asked, and what is known of how it wants to be. */
export class Server {
  /** Queries on their way to it. */
  open = 0;
  /** Queries that it takes at a time. */
  readonly openAtOnce: number;
  #plainUntilMs = -Infinity;
  #triedPlainAtMs = -Infinity;
  #answeredEdnsAtMs = -Infinity;
  /** What it has sent as a cookie, which queries to it carry (RFC 7873); `null`: nothing. */
  cookie: Uint8Array | null = null;

  /** `resolves`: it recurses for us; others are asked for what they are authoritative for. */
  constructor(readonly remote: Remote, readonly resolves: boolean) {
    this.openAtOnce = OPEN_AT_ONCE[remote.transport];
  }

  /** Data of the client subnet option that a query to it carries (RFC 7871); `null`: none. */
  subnetFor(_query: Query): Uint8Array | null {
    return null;
  }

  /** Keeps the cookie of its answer, where there is one. */
  keepCookie({ packet, cookieAt, cookieLength }: ResponseReader): void {
    if (cookieLength > 0) this.cookie = packet.slice(cookieAt, cookieAt + cookieLength);
  }

  /** It knows no EDNS, and is asked without for a while. */
  refusesEdns(nowMs: number): void {
    this.#plainUntilMs = nowMs + WITHOUT_EDNS_MS;
  }

  /** It has answered a query with EDNS. */
  answersEdns(nowMs: number): void {
    this.#answeredEdnsAtMs = nowMs;
  }

  /** It is asked without EDNS, to find out whether that is why it is silent. */
  triesPlain(nowMs: number): void {
    this.#triedPlainAtMs = nowMs;
  }

  /** It has answered that, and nothing else before: it, or a box on the way, drops EDNS. */
  dropsEdns(nowMs: number): void {
    if (this.mayDropEdns(nowMs)) this.#plainUntilMs = nowMs + DROPS_EDNS_MS;
  }

  /** Says whether EDNS may be why it is silent: who has answered it of late has other reasons. */
  mayDropEdns(nowMs: number): boolean {
    return !this.isPlain(nowMs) && nowMs - this.#answeredEdnsAtMs >= KNOWS_EDNS_MS;
  }

  /** Says whether it is time to find out. */
  mayTryPlain(nowMs: number): boolean {
    return this.mayDropEdns(nowMs) && nowMs - this.#triedPlainAtMs >= TRY_PLAIN_MS_MIN;
  }

  /** Nothing speaks against EDNS. */
  takesEdns(): void {
    this.#plainUntilMs = this.#triedPlainAtMs = -Infinity;
  }

  /** Says whether queries go without EDNS. */
  isPlain(nowMs: number): boolean {
    return nowMs < this.#plainUntilMs;
  }
}
