import { FOLD } from "../../dns/mod.ts";
import type { Scrubber } from "../ask/mod.ts";
import type { Query } from "../query.ts";

const NOTHING: Uint8Array = new Uint8Array(0);

/** The aliases that one question has led through: what its answer begins with. */
export class AliasTrail {
  /** What the answer goes behind: the question, or a message with the chain so far. */
  lead: Uint8Array = NOTHING;
  /** Some alias was followed. */
  isAlias = false;
  /** Seconds that the chain holds. */
  #ttl = Infinity;
  /** Names that it has led to: a name that comes again leads in a circle. */
  readonly #passed = new Set<string>();

  start({ packet, qname, questionEnd }: Query): void {
    this.lead = packet.subarray(0, questionEnd);
    this.isAlias = false;
    this.#ttl = Infinity;
    this.#passed.clear();
    this.#passed.add(keyOf(packet, qname));
  }

  /** Goes on to the target of the chain that was scrubbed last; false: it leads in a circle. */
  follow(scrubber: Scrubber): boolean {
    const key = keyOf(scrubber.target);
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

function keyOf(name: Uint8Array, offset = 0): string {
  let key = "";
  for (let at = offset; name[at] !== 0;) {
    const end = at + 1 + name[at];
    for (; at < end; at++) key += String.fromCharCode(FOLD[name[at]]);
  }
  return key;
}
