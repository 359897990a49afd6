import { SvcError } from "../errors.ts";
import { isJoint, isMember, membersOf, planRemoval } from "../raft/mod.ts";
import type { Consensus } from "./consensus.ts";
import { nodeOf, type Outcome } from "./frames.ts";
import { PROPOSAL_TICKS_MAX, REQUESTS_MAX, RETRY_TICKS } from "./limits.ts";
import type { Leadership } from "./proposals.ts";
import type { Waits } from "./waits.ts";

/** Removals of members: those that this one carries out as the leader, and those it asks for. */
export class Removals {
  readonly #consensus: Pick<Consensus, "state" | "take">;
  readonly #waits: Waits;
  #underWay = 0;

  constructor(consensus: Pick<Consensus, "state" | "take">, waits: Waits) {
    this.#consensus = consensus;
    this.#waits = waits;
  }

  /** Of a leader: answers once the member is out, for good. */
  remove(node: string, answer: (outcome: Outcome) => void): void {
    const { state } = this.#consensus;
    if (state.role !== "leader") return answer({ kind: "notLeader" });
    const id = membersOf(state.log.configuration).find((one) => nodeOf(one) === node);
    if (id === undefined) {
      const message = `${node}: is no member of the cluster`;
      return answer({ kind: "refused", code: "not_found", message });
    }
    const target = planRemoval(state, id);
    if (target === null) {
      const message = `${node}: is the only member that can lead: promote another one instead`;
      return answer({ kind: "refused", code: "conflict", message });
    }
    if (this.#underWay >= REQUESTS_MAX) {
      return answer({ kind: "retry", message: "too many removals" });
    }
    this.#underWay++;
    this.#consensus.take({ type: "changeMembership", target }, async (taken) => {
      const isTaken = taken === null;
      if (isTaken) await this.#waits.until(() => this.#isOut(id), PROPOSAL_TICKS_MAX);
      this.#underWay--;
      if (this.#isOut(id)) answer({ kind: "taken" });
      else if (taken === "not leader") answer({ kind: "notLeader" });
      else answer({ kind: "retry", message: taken ?? "most voters have not heard of it yet" });
    });
  }

  #isOut(id: string): boolean {
    const { log, commitIndex } = this.#consensus.state;
    const { configuration, configurationIndex } = log;
    return !isMember(configuration, id) && !isJoint(configuration) &&
      configurationIndex <= commitIndex;
  }

  /**
   * Has the leader remove a member, whoever leads meanwhile.
   *
   * @throws {SvcError}
   */
  async ask(
    leadership: () => Leadership,
    hand: (leader: string, answer: (outcome: Outcome) => void) => void,
  ): Promise<void> {
    let reason: string | null = null;
    let hasAsked = false;
    for (let ticks = 0; ticks < PROPOSAL_TICKS_MAX; ticks += RETRY_TICKS) {
      const { leader, reason: obstacle } = leadership();
      let outcome: Outcome | null = null;
      if (leader === null) reason = obstacle();
      else hand(leader, (answered) => (outcome = answered, this.#waits.look()));
      await this.#waits.until(() => outcome !== null, RETRY_TICKS);
      const ended = outcome as Outcome | null;
      if (ended?.kind === "taken") return;
      if (ended?.kind === "refused") {
        // It went through the time before, and the answer was lost.
        if (ended.code === "not_found" && hasAsked) return;
        throw new SvcError(ended.code, ended.message);
      }
      if (ended?.kind === "retry") reason = ended.message;
      if (leader !== null) hasAsked ||= ended === null;
      if (ended !== null) await this.#waits.until(() => false, RETRY_TICKS);
    }
    throw new SvcError("unavailable", `cluster: ${reason ?? "the leader has not answered"}`);
  }
}
