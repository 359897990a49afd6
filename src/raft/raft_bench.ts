// What a change costs in consensus alone: no disk, no network. A step is one event of one member.
import { FakeCluster } from "./fakes.ts";
import { type RaftState, restore, step } from "./mod.ts";

const command = new Uint8Array(256);
const propose = { type: "propose", commands: [command] } as const;

/** A leader of `voters`, and what the others answer, step by step. */
function leaderOf(voters: readonly string[]): FakeCluster {
  const cluster = new FakeCluster({ voters });
  cluster.elect(voters[0]);
  return cluster;
}

const alone = leaderOf(["a"]).state("a");
const group = { group: "a change", permissions: "none" } as const;

Deno.bench("one member alone: propose and commit", { ...group, baseline: true }, () => {
  step(alone, propose);
});

const three = leaderOf(["a", "b", "c"]);
const states = new Map<string, RaftState>(["a", "b", "c"].map((id) => [id, three.state(id)]));

Deno.bench("leader and two followers: 9 steps until all have committed", group, () => {
  const now = new Map(states);
  const first = step(three.state("a"), propose);
  now.set("a", first.state);
  const waiting = [...first.ready.messages];
  for (let i = 0; i < waiting.length; i++) {
    const message = waiting[i];
    const { state, ready } = step(now.get(message.to) ?? alone, { type: "message", message });
    now.set(message.to, state);
    waiting.push(...ready.messages);
  }
});

let leader = three.state("a");
const answers = { b: 0, c: 0 };

Deno.bench("leader's part: a proposal and an answer of each follower, 3 steps", group, () => {
  leader = step(leader, propose).state;
  for (const from of ["b", "c"] as const) {
    answers[from] = leader.log.lastIndex;
    leader = step(leader, {
      type: "message",
      message: {
        ...{ type: "appendEntriesResponse", term: leader.currentTerm, success: true } as const,
        ...{ matchIndex: answers[from], rejectedIndex: 0, hintIndex: 0, hintTerm: 0, round: 0 },
        ...{ from, to: "a" },
      },
    }).state;
  }
  if (leader.log.lastIndex - leader.log.base.index > 4_000) {
    leader = step(leader, { type: "compact", index: leader.commitIndex }).state;
  }
});

const idle = restore({ id: "a", random: 1 }, three.disk("a"));

Deno.bench("a tick of a follower", group, () => void step(idle, { type: "tick" }));
