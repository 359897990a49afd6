import { DROP_REASONS, type DropReason } from "../vrrp/mod.ts";

/** What has happened since the start. */
export class Counters {
  sent = 0;
  sendFailures = 0;
  received = 0;
  checks = 0;
  failedChecks = 0;
  /** Times that this node began to hold the address. */
  takeovers = 0;
  readonly #dropped = new Map<DropReason, number>(DROP_REASONS.map((reason) => [reason, 0]));

  drop(reason: DropReason): number {
    const count = (this.#dropped.get(reason) ?? 0) + 1;
    this.#dropped.set(reason, count);
    return count;
  }

  /** Ignored packets by reason, those that there were. */
  get dropped(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#dropped].filter(([, count]) => count > 0));
  }
}
