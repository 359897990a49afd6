import type { Remote } from "./ports.ts";

/** How long a server without EDNS is asked without; then it may have learned. */
const WITHOUT_EDNS_MS = 3_600_000;

/** A server that can be asked, and what is known of how it wants to be. */
export class Server {
  /** Queries on their way to it. */
  open = 0;
  #plainUntilMs = -Infinity;

  /** `resolves`: it recurses for us; others are asked for what they are authoritative for. */
  constructor(readonly remote: Remote, readonly resolves: boolean) {}

  /** It knows no EDNS, and is asked without for a while. */
  refusesEdns(nowMs: number): void {
    this.#plainUntilMs = nowMs + WITHOUT_EDNS_MS;
  }

  /** Says whether queries go without EDNS. */
  isPlain(nowMs: number): boolean {
    return nowMs < this.#plainUntilMs;
  }
}
