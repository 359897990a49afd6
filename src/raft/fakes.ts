/** Members in one process, a disk of each that forgets nothing, and a network one can hold up. */
import {
  bootstrapped,
  type Entry,
  type Message,
  NOTHING_PERSISTED,
  type Persisted,
  type RaftEvent,
  type RaftState,
  restore,
  type Setup,
  type Step,
  step,
  type Timing,
} from "./mod.ts";

interface Fake {
  readonly setup: Setup;
  disk: Persisted;
  state: RaftState;
}

export interface FakeClusterOptions {
  readonly voters: readonly string[];
  readonly learners?: readonly string[];
  readonly witnesses?: readonly string[];
  /** Members that nobody told anything. */
  readonly waiting?: readonly string[];
  /** Terms of the entries after the first, which every log begins after. */
  readonly logs?: Readonly<Record<string, readonly number[]>>;
  readonly terms?: Readonly<Record<string, number>>;
}

/** Members time out one after another, in their order. */
function timingOf(order: number): Partial<Timing> {
  return { electionMarginTicks: 3 * order, electionSpreadTicks: 8 };
}

/** Commands, as text, from index `first` on. */
export function entriesOf(terms: readonly number[], first = 2): Entry[] {
  return terms.map((term, i) => ({
    index: first + i,
    term,
    type: "command",
    data: new TextEncoder().encode(`${term}.${first + i}`),
  }));
}

export class FakeCluster {
  /** Sent and not delivered, oldest first. */
  messages: Message[] = [];
  /** Ways that lose everything, as `from>to`; a lone name stands for all of its ways. */
  readonly cuts = new Set<string>();
  /** What each member applied since it started. */
  readonly applied = new Map<string, Entry[]>();
  readonly reads: { readonly member: string; readonly id: number; readonly index: number }[] = [];
  readonly #members = new Map<string, Fake>();

  constructor(options: FakeClusterOptions) {
    const { voters, learners = [], witnesses = [], waiting = [], logs = {}, terms = {} } = options;
    const first = bootstrapped(voters[0]);
    const configuration = { voters, outgoing: [], learners, witnesses };
    for (const id of [...voters, ...learners, ...waiting]) {
      const entries = entriesOf(logs[id] ?? []);
      const currentTerm = Math.max(1, terms[id] ?? 1, ...entries.map(({ term }) => term));
      const snapshot = { ...first.snapshot, configuration };
      const hardState = { ...first.hardState, currentTerm };
      const disk = waiting.includes(id)
        ? NOTHING_PERSISTED
        : { ...first, hardState, snapshot, entries };
      const order = this.#members.size;
      const isWitness = witnesses.includes(id);
      const setup = { id, isWitness, random: order, timing: timingOf(order) };
      this.#members.set(id, { setup, disk, state: restore(setup, disk) });
    }
  }

  /** Those who lead, with their terms. */
  get leaders(): string[] {
    return [...this.#members.values()].filter(({ state }) => state.role === "leader").map((
      { state },
    ) => `${state.id} ${state.currentTerm}`);
  }

  state(id: string): RaftState {
    return this.#member(id).state;
  }

  disk(id: string): Persisted {
    return this.#member(id).disk;
  }

  #member(id: string): Fake {
    const member = this.#members.get(id);
    if (member === undefined) throw new Error(`no member ${id}`);
    return member;
  }

  /** One event: durable, then sent, then applied. */
  take(id: string, event: RaftEvent): Step {
    const member = this.#member(id);
    const result = step(member.state, event);
    const { snapshot, hardState, entries, compacted, committed } = result.ready;
    member.state = result.state;
    const { disk } = member;
    const base = compacted ?? snapshot ?? disk.snapshot;
    const kept = snapshot === null ? disk.entries : [];
    const first = entries.at(0)?.index ?? Infinity;
    member.disk = {
      hardState: hardState ?? disk.hardState,
      snapshot: base,
      entries: [...kept.filter(({ index }) => index < first), ...entries].filter(({ index }) =>
        index > base.index
      ),
      appliedIndex: Math.max(result.state.commitIndex, disk.appliedIndex),
    };
    this.applied.set(id, [...this.applied.get(id) ?? [], ...committed]);
    this.reads.push(...result.ready.readStates.map((read) => ({ member: id, ...read })));
    this.messages.push(...result.ready.messages);
    return result;
  }

  propose(id: string, ...commands: string[]): Step {
    const encoder = new TextEncoder();
    return this.take(id, {
      type: "propose",
      commands: commands.map((command) => encoder.encode(command)),
    });
  }

  /** Hands out what was sent, and what is sent upon that, until nothing is left. */
  deliver(isWanted: (message: Message) => boolean = () => true): void {
    const held: Message[] = [];
    for (let turns = 0; this.messages.length > 0; turns++) {
      if (turns > 10_000) throw new Error("the members talk without end");
      const [message] = this.messages.splice(0, 1);
      if (!isWanted(message)) held.push(message);
      else if (!this.#isCut(message)) this.take(message.to, { type: "message", message });
    }
    this.messages = held;
  }

  #isCut({ from, to }: Message): boolean {
    return !this.#members.has(to) ||
      [from, to, `${from}>${to}`].some((way) => this.cuts.has(way));
  }

  tick(id: string, times = 1): void {
    for (let i = 0; i < times; i++) this.take(id, { type: "tick" });
  }

  /** Time passes for everybody, and messages are quick. */
  run(ticks: number): void {
    for (let i = 0; i < ticks; i++) {
      for (const id of this.#members.keys()) this.tick(id);
      this.deliver();
    }
  }

  /** Lets `id` campaign, the others being free to vote, and delivers all. */
  elect(id: string): void {
    for (const { state } of this.#members.values()) {
      if (state.role !== "leader" && state.id !== id) this.#forgetLeader(state.id);
    }
    this.campaign(id);
    this.deliver();
  }

  /** Time passes for this member alone, until it campaigns. */
  campaign(id: string): void {
    const { timeoutTicks, elapsedTicks } = this.state(id);
    this.tick(id, timeoutTicks - elapsedTicks);
  }

  /** So long without a leader that the vote is free, and not so long as to campaign. */
  #forgetLeader(id: string): void {
    const member = this.#member(id);
    member.state = { ...member.state, elapsedTicks: 0, leader: null };
  }

  restart(id: string): void {
    const member = this.#member(id);
    member.state = restore(member.setup, member.disk);
    this.applied.delete(id);
  }

  /** What happens in between is forgotten by the member, as if an older copy of its disk were put back. */
  putBack(id: string, meanwhile: () => void): void {
    const { disk } = this.#member(id);
    meanwhile();
    this.#member(id).disk = disk;
    this.restart(id);
  }

  /** The terms of a log, from its first entry on. */
  log(id: string): string {
    const { log } = this.state(id);
    return log.slice(log.base.index + 1, log.lastIndex).map(({ term, type }) =>
      type === "command" ? `${term}` : `${term}${type[0]}`
    ).join(" ");
  }

  /** Commands that a member applied. */
  commands(id: string): string[] {
    return (this.applied.get(id) ?? []).flatMap((entry) =>
      entry.type === "command" ? [new TextDecoder().decode(entry.data)] : []
    );
  }
}
