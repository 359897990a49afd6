import { membersOf, WireError } from "../raft/mod.ts";
import { decodeCommand } from "./command_codec.ts";
import type { Consensus } from "./consensus.ts";
import { otherVersions, type Peers, versionRefusal } from "./facts.ts";
import { nodeOf, type Outcome } from "./frames.ts";

type Answer = (outcome: Outcome) => void;

/** What a leader takes: changes of its own and of the other members, while all run one version. */
export class Intake {
  readonly #node: string;
  readonly #version: string;
  readonly #consensus: Pick<Consensus, "state" | "take" | "problems">;
  readonly #peers: Peers;

  constructor(
    { node, version }: { readonly node: string; readonly version: string },
    consensus: Pick<Consensus, "state" | "take" | "problems">,
    peers: Peers,
  ) {
    this.#node = node;
    this.#version = version;
    this.#consensus = consensus;
    this.#peers = peers;
  }

  /** A change of this member. */
  append(data: Uint8Array, answer: Answer): void {
    const { state } = this.#consensus;
    if (state.role !== "leader") return answer({ kind: "notLeader" });
    const others = otherVersions(state, this.#version, this.#peers.all);
    const refusal = versionRefusal(this.#node, this.#version, others);
    if (refusal !== null) return answer({ kind: "refused", code: "unavailable", message: refusal });
    this.#consensus.take({ type: "propose", commands: [data] }, (taken) => {
      if (taken === null) answer({ kind: "taken" });
      else if (taken === "not leader") answer({ kind: "notLeader" });
      else {
        const { problems } = this.#consensus;
        const why = taken === "lost" ? problems.join("; ") : `the leader can't take it: ${taken}`;
        answer({ kind: "retry", message: why });
      }
    });
  }

  /** A change of another member. `false`: it is none, or not of who sends it. */
  appendFor(from: string, data: Uint8Array, answer: Answer): boolean {
    try {
      // Whoever asks is who the audit log will say was asked.
      if (decodeCommand(data).command.node !== from) return false;
    } catch (error) {
      if (error instanceof WireError) return false;
      throw error;
    }
    const { configuration } = this.#consensus.state.log;
    // One that was removed takes no changes.
    if (membersOf(configuration).some((id) => nodeOf(id) === from)) this.append(data, answer);
    else answer({ kind: "notLeader" });
    return true;
  }
}
