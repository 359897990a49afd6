import type { RaftState } from "../raft/mod.ts";

/**
 * Of a leader: the members that lack what was committed a check ago, and have got no further since.
 * They answer, so nothing else tells of them: a witness's disk may be full, which serves no status.
 */
export class Lagging {
  /** What those hold that lacked something at the last look, by ID. */
  #behind: ReadonlyMap<string, number> = new Map();
  #stuck: ReadonlyMap<string, number> = new Map();

  /** To be called a check apart; a state is on its way to whom `isSending` holds for. */
  look({ role, progress, commitIndex }: RaftState, isSending: (id: string) => boolean): void {
    const behind = new Map<string, number>();
    const stuck = new Map<string, number>();
    if (role === "leader") {
      for (const [id, { matchIndex }] of progress) {
        if (matchIndex >= commitIndex || isSending(id)) continue;
        behind.set(id, matchIndex);
        if (this.#behind.get(id) === matchIndex) stuck.set(id, matchIndex);
      }
    }
    [this.#behind, this.#stuck] = [behind, stuck];
  }

  /** Whose IDs those are that have got no further until now. */
  of({ role, progress }: RaftState): string[] {
    if (role !== "leader") return [];
    return [...this.#stuck].flatMap(([id, held]) =>
      progress.get(id)?.matchIndex === held ? [id] : []
    );
  }
}
