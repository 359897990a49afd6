import { HEADER_BYTES, nameKey } from "../../dns/mod.ts";
import type { Scrubber } from "../ask/mod.ts";

const NOTHING: Uint8Array = new Uint8Array(0);

/** The aliases that one question has led through: what its answer begins with. */
export class AliasTrail {
  /** What the answer goes behind: the question, or a message with the chain so far. */
  lead: Uint8Array = NOTHING;
  /** Some alias was followed. */
  isAlias = false;
  /** Seconds that the chain holds. */
  #ttl = Infinity;
  /** Names that it has led to, once there is an alias: one that comes again leads in a circle. */
  #passed: Set<string> | null = null;

  /** `lead` is the question, as it is kept. */
  start(lead: Uint8Array): void {
    this.lead = lead;
    this.isAlias = false;
    this.#ttl = Infinity;
    this.#passed = null;
  }

  /** Goes on to the target of the chain that was scrubbed last; false: it leads in a circle. */
  follow(scrubber: Scrubber): boolean {
    const key = nameKey(scrubber.target);
    this.#passed ??= new Set([nameKey(this.lead, HEADER_BYTES)]);
    if (this.#passed.has(key)) return false;
    this.#passed.add(key);
    this.lead = scrubber.message.slice(0, scrubber.length);
    this.#ttl = Math.min(this.#ttl, scrubber.ttl);
    this.isAlias = true;
    return true;
  }

  /** Seconds that an answer holds which itself does so for `ttl`. */
  boundTtl(ttl: number): number {
    return Math.min(ttl, this.#ttl);
  }
}
