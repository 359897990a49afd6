import { type Actor, RULES_BATCH_MAX, type State } from "../model/mod.ts";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import type { Replicator } from "../store/mod.ts";
import { every } from "./every.ts";

/** How often rules are looked for that have come to their end: nobody decides by them since. */
const LOOK_MS = 30_000;
const SYSTEM: Actor = { kind: "system", name: null, address: null };

export interface ExpiredRulesOptions {
  readonly replicator: Pick<Replicator, "propose" | "state">;
  /** `null` while nobody knows the time: then nothing is deleted. */
  readonly nowMs: () => number | null;
  /** This member makes the changes of its cluster. */
  readonly isLeader: () => boolean;
}

/** Deletes rules that have come to their end; of a cluster the leader does. */
export class ExpiredRules {
  readonly #options: ExpiredRulesOptions;
  #end = () => {};
  #isBusy = false;

  constructor(options: ExpiredRulesOptions) {
    this.#options = options;
  }

  start(): void {
    this.#end = every(LOOK_MS, () => void this.look());
  }

  stop(): void {
    this.#end();
  }

  /** Deletes those whose end has come. Never throws. */
  async look(): Promise<void> {
    const { replicator, nowMs, isLeader } = this.#options;
    const now = nowMs();
    if (this.#isBusy || now === null || !isLeader()) return;
    const remove = expiredAt(replicator.state, now);
    if (remove.length === 0) return;
    this.#isBusy = true;
    try {
      const settled = await replicator.propose({ type: "rules_batch", add: [], remove }, SYSTEM);
      // Somebody has just deleted one of them: the next look finds the others.
      if (settled.kind === "refused") return;
      log.info("rules that came to their end are deleted", { rules: remove.length });
    } catch (error) {
      log.warn("rules that came to their end can't be deleted", { error: messageOf(error) });
    } finally {
      this.#isBusy = false;
    }
  }
}

function expiredAt({ collections: { rules }, limitedRules }: Rules, nowMs: number): string[] {
  const expired: string[] = [];
  for (const id of limitedRules.keys()) {
    const time = rules.get(id)?.spec.expires_at ?? null;
    if (time !== null && Date.parse(time) <= nowMs) expired.push(id);
    if (expired.length === RULES_BATCH_MAX) break;
  }
  return expired;
}

type Rules = Pick<State, "collections"> & Pick<Replicator["state"], "limitedRules">;
