// Goal: no order of messages, losses, duplicates, crashes and timeouts breaks a property of Raft, in
// clusters small enough to go every way there is; and the search would find it if one did. Method:
// `explore` visits each world within a budget; then each rule of `Rules` is broken on purpose.
// `-- --more-ticks=1` goes further than a usual run has time for.
import assert from "node:assert/strict";
import {
  type Configuration,
  type Entry,
  type Message,
  type RaftEvent,
  type RaftState,
  restore,
  type Rules,
  type Setup,
  step,
  votersOf,
} from "../../src/raft/mod.ts";
import { type Exploration, explore } from "./explorer.ts";
import { optionOf } from "./options.ts";

const MORE_TICKS = optionOf("more-ticks", 0);
const STATES_MAX = optionOf("states-max", MORE_TICKS > 0 ? 14_000_000 : 1_500_000);

/** A tick is an election timeout: whoever is not heard from in time is on its own at once. */
const timing = {
  heartbeatTicks: 1,
  electionTicks: 1,
  electionMarginTicks: 0,
  electionSpreadTicks: 0,
};

interface MemberOf {
  /** Terms of the entries after the first, which every log begins after. */
  readonly log?: readonly number[];
  /** How many of them a Raft snapshot stands for. */
  readonly compacted?: number;
  readonly term?: number;
  readonly isEmpty?: boolean;
  /** In force instead of the cluster's. */
  readonly configuration?: Configuration;
}

interface Cluster {
  readonly voters: string;
  readonly learners?: string;
  readonly witnesses?: string;
  readonly members?: Readonly<Record<string, MemberOf>>;
  readonly dead?: string;
  readonly rules?: Partial<Rules>;
  /** Leads already, by rules that are not broken yet. */
  readonly leader?: string;
}

/** A cluster after a restart of everybody, in the term of its logs. */
function clusterOf(
  cluster: Cluster,
): Required<Pick<Exploration, "members" | "setups" | "dead">> {
  const { voters, learners = "", witnesses = "", dead = "", rules = {}, leader } = cluster;
  const configuration = {
    voters: [...voters],
    outgoing: [],
    learners: [...learners],
    witnesses: [...witnesses],
  };
  const ids = [...voters, ...learners];
  const setups: Setup[] = ids.map((id) => ({
    id,
    isWitness: witnesses.includes(id),
    random: 1,
    timing,
  }));
  const states = setups.map((setup): RaftState => {
    const member = cluster.members?.[setup.id] ?? {};
    const { log = [], compacted = 0, isEmpty = false } = member;
    const own = member.configuration ?? configuration;
    const term = Math.max(1, member.term ?? 1, ...log);
    const entries = log.map((of, i): Entry => ({
      index: 2 + i,
      term: of,
      type: "command",
      data: Uint8Array.of(of),
    }));
    const none = { index: 0, term: 0, configuration: { ...own, voters: [], learners: [] } };
    const snapshot = { index: 1 + compacted, term: [1, ...log][compacted], configuration: own };
    return restore(setup, {
      hardState: { currentTerm: isEmpty ? 0 : term, votedFor: null, damagedTerm: 0 },
      snapshot: isEmpty ? none : snapshot,
      entries: entries.slice(compacted),
      appliedIndex: isEmpty ? 0 : 1 + compacted,
    });
  });
  const elected = leader === undefined ? states : electedOf(states, leader);
  return {
    setups: setups.map((setup) => ({ ...setup, rules })),
    members: elected.map((state) => ({ ...state, rules: { ...state.rules, ...rules } })),
    dead: [...dead],
  };
}

/** The members once `leader` was elected, and nothing is on the network any more. */
function electedOf(states: readonly RaftState[], leader: string): RaftState[] {
  const members = [...states];
  const take = (id: string, event: RaftEvent): readonly Message[] => {
    const at = members.findIndex((state) => state.id === id);
    const { state, ready: { messages } } = step(members[at], event);
    members[at] = state;
    return messages;
  };
  const waiting = [...take(leader, { type: "tick" })];
  for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
    waiting.push(...take(message.to, { type: "message", message }));
  }
  return members;
}

interface Case extends Cluster, Omit<Exploration, "members" | "setups" | "dead" | "statesMax"> {
  /** Who leads on some way, or it would show little. */
  readonly leads: string;
  /** An index that is committed on some way. */
  readonly commits: number;
}

const WITNESS = { voters: "abw", witnesses: "w" };

/** By what is explored. */
const CASES: Readonly<Record<string, Case>> = {
  "three members, two timeouts, a proposal": {
    voters: "abc",
    ...{ budget: { ticks: 2, proposals: 1 }, termMax: 3, linkMax: 1, leads: "abc", commits: 3 },
  },
  "three members, an election, any order of two messages a way": {
    voters: "abc",
    ...{ budget: { ticks: 1, duplicates: 1 }, termMax: 2, linkMax: 2, leads: "abc", commits: 2 },
  },
  "three members, two timeouts, a crash": {
    voters: "abc",
    ...{ budget: { ticks: 2, crashes: 1 }, termMax: 3, linkMax: 1, leads: "abc", commits: 2 },
  },
  "three members whose logs differ": {
    voters: "abc",
    members: { a: { log: [2] }, b: { log: [2], term: 3 }, c: { log: [3] } },
    ...{ budget: { ticks: 3 }, termMax: 5, linkMax: 1, leads: "abc", commits: 3 },
  },
  "two members and a witness, two timeouts, a proposal, a duplicate": {
    ...WITNESS,
    budget: { ticks: 2, proposals: 1, duplicates: 1 },
    ...{ termMax: 3, linkMax: 1, leads: "ab", commits: 3 },
  },
  "two members and a witness, three timeouts": {
    ...WITNESS,
    ...{ budget: { ticks: 3 }, termMax: 3, linkMax: 1, leads: "ab", commits: 3 },
  },
  "a witness that alone holds the newest entries": {
    ...WITNESS,
    members: { w: { log: [1, 2] } },
    dead: "a",
    budget: { ticks: 4, proposals: 1, crashes: 1, duplicates: 1 },
    ...{ termMax: 5, linkMax: 1, leads: "b", commits: 4 },
  },
  "a witness that holds them, and a node with others": {
    ...WITNESS,
    members: { b: { log: [2, 2, 2] }, w: { log: [1, 3] } },
    dead: "a",
    budget: { ticks: 4, crashes: 1, duplicates: 1 },
    ...{ termMax: 5, linkMax: 1, leads: "b", commits: 4 },
  },
  "a witness that has compacted them away": {
    ...WITNESS,
    members: { b: { log: [2] }, w: { log: [1, 3, 3], compacted: 2 } },
    dead: "a",
    budget: { ticks: 4, crashes: 1, duplicates: 1 },
    ...{ termMax: 5, linkMax: 1, leads: "b", commits: 5 },
  },
  "a witness, and two nodes that fetch from it at once": {
    voters: "abcdw",
    witnesses: "w",
    members: { b: { log: [2] }, c: { log: [1] }, w: { log: [1, 3] } },
    dead: "ad",
    ...{ budget: { ticks: 3 }, termMax: 4, linkMax: 1, leads: "bc", commits: 4 },
  },
  "a witness that alone knows of the node's promotion": {
    ...WITNESS,
    members: {
      b: {
        configuration: { voters: ["a"], outgoing: [], learners: ["b", "w"], witnesses: ["w"] },
      },
      w: { log: [1], compacted: 1 },
    },
    dead: "a",
    ...{ budget: { ticks: 4, crashes: 1 }, termMax: 4, linkMax: 1, leads: "b", commits: 3 },
  },
  "from one voter to three": {
    ...{ voters: "a", learners: "bc" },
    budget: { ticks: 3, changes: 1 },
    target: { voters: [..."abc"], learners: [], witnesses: [] },
    ...{ termMax: 3, linkMax: 1, leads: "ab", commits: 5 },
  },
  "from one voter to two nodes and a witness": {
    ...{ voters: "a", learners: "bw", witnesses: "w" },
    budget: { ticks: 3, changes: 1, crashes: 1 },
    target: { voters: [..."abw"], learners: [], witnesses: ["w"] },
    ...{ termMax: 3, linkMax: 1, leads: "ab", commits: 4 },
  },
  "a removal that leaves one voter": {
    voters: "abc",
    budget: { ticks: 2, changes: 1 },
    target: { voters: ["a"], learners: ["b"], witnesses: [] },
    ...{ termMax: 3, linkMax: 1, leads: "abc", commits: 4 },
  },
  "a removal of the leader that leaves another alone": {
    ...{ voters: "abc", leader: "a" },
    budget: { ticks: 3, changes: 1 },
    target: { voters: ["b"], learners: ["c"], witnesses: [] },
    ...{ termMax: 4, linkMax: 1, leads: "abc", commits: 5 },
  },
  "a removal of the leader that leaves a node alone, and a witness": {
    ...{ ...WITNESS, leader: "a" },
    budget: { ticks: 3, changes: 1 },
    target: { voters: ["b"], learners: ["w"], witnesses: ["w"] },
    ...{ termMax: 4, linkMax: 1, leads: "ab", commits: 5 },
  },
  "leadership is handed over": {
    ...{ voters: "abc", leader: "a" },
    budget: { ticks: 1, proposals: 1, transfers: 1 },
    ...{ termMax: 4, linkMax: 1, leads: "b", commits: 4 },
  },
  "a learner that needs a Raft snapshot": {
    ...{ voters: "a", learners: "b" },
    members: { b: { isEmpty: true } },
    budget: { ticks: 3, proposals: 2, duplicates: 1, crashes: 1, compactions: 2 },
    ...{ termMax: 3, linkMax: 1, leads: "a", commits: 4 },
  },
};

Deno.test("every way of a small cluster is safe", { permissions: "none" }, async (t) => {
  let total = 0;
  for (const [name, one] of Object.entries(CASES)) {
    await t.step(name, () => {
      const budget = { ...one.budget, ticks: one.budget.ticks + MORE_TICKS };
      const found = explore({ ...one, ...clusterOf(one), budget, statesMax: STATES_MAX });
      const { states, transitions, isComplete, violation, leaders, committedMax } = found;
      console.log(`${states} states, ${transitions} transitions${isComplete ? "" : ", cut off"}`);
      total += states;
      assert.deepEqual(violation, null);
      if (MORE_TICKS === 0) assert.ok(isComplete, "it is cut off");
      for (const id of one.leads) {
        assert.ok([...leaders].some((led) => led.startsWith(id)), `${id} never leads`);
      }
      assert.ok(committedMax >= one.commits, `${committedMax} is committed at most`);
    });
  }
  console.log(`${total} states in all`);
});

/** What is broken, and the property that breaks with it. */
const BROKEN: Readonly<Record<string, [RegExp, Omit<Case, "leads" | "commits">]>> = {
  "a vote is not persisted": [/one leader a term/, {
    voters: "abc",
    forget: (state) => ({ ...state, votedFor: null }),
    ...{ budget: { ticks: 2, crashes: 1 }, termMax: 2, linkMax: 1 },
  }],
  "an entry of an older term is committed by its count": [/leader completeness/, {
    voters: "abc",
    members: { a: { log: [2] }, b: { log: [2], term: 3 }, c: { log: [3] } },
    rules: { mayCommit: () => true },
    ...{ budget: { ticks: 3 }, termMax: 5, linkMax: 1 },
  }],
  "a learner is counted": [/committed is durable/, {
    ...{ voters: "abc", learners: "de", leader: "a" },
    rules: { halves: ({ voters, learners }) => [[...voters, ...learners]] },
    ...{ budget: { ticks: 0, proposals: 1 }, termMax: 2, linkMax: 1 },
  }],
  "a witness leads": [/a witness never leads/, {
    ...WITNESS,
    rules: { mayCampaign: () => true },
    ...{ budget: { ticks: 1 }, termMax: 2, linkMax: 1 },
  }],
  "a stale Raft snapshot is taken": [/what is committed never shrinks/, {
    ...{ voters: "a", learners: "b" },
    members: { b: { isEmpty: true } },
    rules: { isNews: () => true },
    budget: { ticks: 3, proposals: 1, duplicates: 1 },
    ...{ termMax: 2, linkMax: 2 },
  }],
  "new voters decide without the old ones": [/state machine safety|durable|completeness/, {
    ...{ voters: "abc", leader: "a" },
    rules: { halves: ({ voters }) => [voters] },
    budget: { ticks: 2, changes: 1 },
    target: { voters: ["a"], learners: ["b"], witnesses: [] },
    ...{ termMax: 3, linkMax: 1 },
  }],
  "a majority is half": [/one leader a term|leader completeness|durable/, {
    voters: "abcd",
    rules: { halves: (configuration) => [votersOf(configuration).slice(0, 3)] },
    ...{ budget: { ticks: 2, proposals: 1 }, termMax: 2, linkMax: 1 },
  }],
};

Deno.test("explore() finds each rule that is broken", { permissions: "none" }, async (t) => {
  for (const [name, [property, one]] of Object.entries(BROKEN)) {
    await t.step(name, () => {
      const { states, violation } = explore({ ...one, ...clusterOf(one), statesMax: STATES_MAX });
      assert.ok(violation !== null, `nothing is found in ${states} states`);
      assert.match(violation.property, property);
      console.log(`${violation.property}; in ${states} states, ${violation.trace.length} steps`);
      // Whole, it breaks nothing in as many states.
      const { forget: _, ...whole } = { ...one, ...clusterOf({ ...one, rules: {} }) };
      assert.equal(explore({ ...whole, statesMax: states }).violation, null);
    });
  }
});
