import type { Change, LiveState, Refused, Settled, Write } from "../model/mod.ts";
import { proposalKey } from "./keys.ts";

/**
 * For so many entries of the log a proposal's ID is remembered: longer than anyone tries again.
 * Counted by their numbers, so that every member forgets alike.
 */
export const PROPOSALS_MAX = 8_192;
/** Longest ID of a proposal, in UTF-16 units. */
export const PROPOSAL_ID_LENGTH_MAX = 64;
/** Most of a refusal's message that is kept, in UTF-16 units. */
const MESSAGE_LENGTH_MAX = 1_024;

/** A proposal that was applied. */
export interface Remembered {
  readonly id: string;
  /** Of the entry that it was applied as. */
  readonly index: number;
  /** `null`: it was done. */
  readonly refused: Pick<Refused, "code" | "message"> | null;
}

/** The proposals that were applied lately, by ID. */
export class Proposals {
  /** Oldest first. */
  readonly #byId = new Map<string, Remembered>();

  constructor(remembered: Iterable<Remembered>) {
    for (const one of [...remembered].sort((a, b) => a.index - b.index)) this.add(one);
  }

  /** What is remembered of an ID by the entry of an index. */
  find(id: string, index: number): Remembered | null {
    const found = this.#byId.get(id);
    return found === undefined || index - found.index >= PROPOSALS_MAX ? null : found;
  }

  /** Of a later entry than those before. */
  add(one: Remembered): void {
    this.#byId.set(one.id, one);
    for (const { id, index } of this.#byId.values()) {
      if (one.index - index < PROPOSALS_MAX) break;
      this.#byId.delete(id);
    }
  }

  /** Those that are remembered after the entry of an index, oldest first. */
  after(index: number): Remembered[] {
    return [...this.#byId.values()].filter((one) => index - one.index < PROPOSALS_MAX);
  }
}

export function remember(id: string, index: number, settled: Settled): Remembered {
  if (settled.kind === "done") return { id, index, refused: null };
  const { code, message } = settled;
  return { id, index, refused: { code, message: message.slice(0, MESSAGE_LENGTH_MAX) } };
}

/** Takes the place of what is forgotten by then. */
export function writeOf(remembered: Remembered): Write {
  return { key: proposalKey(remembered.index % PROPOSALS_MAX), value: remembered };
}

export function isRemembered(json: unknown): json is Remembered {
  if (typeof json !== "object" || json === null) return false;
  const { id, index, refused } = json as Record<string, unknown>;
  if (typeof id !== "string" || id.length > PROPOSAL_ID_LENGTH_MAX) return false;
  if (!Number.isSafeInteger(index)) return false;
  if (refused === null) return true;
  const { code, message } = (refused ?? {}) as Record<string, unknown>;
  return typeof code === "string" && typeof message === "string";
}

/**
 * What is answered to a proposal that comes once more: its refusal, or what it made as that is by
 * now.
 */
export function settledAgain({ refused }: Remembered, change: Change, state: LiveState): Settled {
  if (refused !== null) return { kind: "refused", ...refused };
  switch (change.type) {
    case "create":
    case "replace":
      return there(change.id, state.collections[change.collection].get(change.id));
    case "rules_batch": {
      const { rules } = state.collections;
      const added = change.add.map(({ id }) => there(id, rules.get(id)));
      return added.find(({ kind }) => kind === "refused") ??
        { kind: "done", value: change.add.map(({ id }) => rules.get(id)) };
    }
    case "settings":
      return { kind: "done", value: state.settings };
    case "user_create":
      return there(change.user.id, state.users.get(change.user.id));
    case "user_change":
      return there(change.id, state.users.get(change.id));
    case "credential_create":
    case "credential_replace":
      return there(change.id, state.credentials[change.kind].get(change.id));
    case "credential_delete":
    case "delete":
    case "lists_preset":
    case "migrate":
    case "user_delete":
      return { kind: "done", value: null };
    case "restore": // Whoever proposed it has the report of what it was to make.
      return { kind: "done", value: null };
    case "seed": // Its counts are not kept: nobody but a node that starts seeds, and has no others.
      return { kind: "done", value: null };
  }
}

function there(id: string, value: unknown): Settled {
  if (value !== undefined) return { kind: "done", value };
  return { kind: "refused", code: "not_found", message: `${id}: was removed by another change` };
}
