/**
 * Every way that a few members can go, within bounds: each world (the members, what is on the
 * network, what was decided) is visited once, and every message, tick, proposal, crash and change
 * that may come next leads on from it. A message may arrive at any time, in any order, twice while
 * the budget lasts, or never: one that stays on the network is a lost one. `step` is pure, so what
 * a member makes of an event is worked out once.
 */
import type { Membership, Message, RaftEvent, RaftState, Setup } from "../../src/raft/mod.ts";
import { restore, step } from "../../src/raft/mod.ts";
import {
  brokenDurability,
  brokenLeadership,
  brokenLogMatching,
  configurationText,
  entryText,
} from "./properties.ts";

/** How often each thing may happen on one way. */
export interface Budget {
  readonly ticks: number;
  readonly proposals?: number;
  readonly crashes?: number;
  readonly duplicates?: number;
  readonly changes?: number;
  readonly compactions?: number;
  readonly transfers?: number;
}

export interface Exploration {
  readonly members: readonly RaftState[];
  readonly setups: readonly Setup[];
  readonly messages?: readonly Message[];
  readonly budget: Budget;
  /** Members that hear and do nothing: they are gone. */
  readonly dead?: readonly string[];
  /** Where a change of membership leads. */
  readonly target?: Membership;
  readonly termMax: number;
  /** So many messages wait between two members; one more pushes the oldest out, which is lost. */
  readonly linkMax: number;
  readonly statesMax: number;
  /** What a restart brings back in place of what was persisted. */
  readonly forget?: (state: RaftState) => RaftState;
}

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  /** Whether every way was gone to its end. */
  readonly isComplete: boolean;
  /** The property that broke, and the shortest way there. */
  readonly violation: { readonly property: string; readonly trace: readonly string[] } | null;
  /** Terms in which each member led on some way. */
  readonly leaders: ReadonlySet<string>;
  /** The longest committed log on any way. */
  readonly committedMax: number;
}

const KINDS = [
  ...["ticks", "proposals", "crashes", "duplicates", "changes", "compactions"] as const,
  "transfers",
] as const;
type Kind = typeof KINDS[number];

interface World {
  /** Numbers of members' states, of messages (sorted), and of what was decided. */
  readonly nodes: readonly number[];
  readonly net: readonly number[];
  readonly budget: readonly number[];
  readonly decided: number;
  readonly parent: number;
  readonly action: number;
}

/** What was ever decided: the committed log as text, and who led which term. */
interface Decided {
  readonly committed: readonly string[];
  /** The term whose leader committed each. */
  readonly terms: readonly number[];
  readonly leaders: ReadonlyMap<number, string>;
}

/** What a member's step came to. */
interface Move {
  readonly node: number;
  readonly messages: readonly number[];
  readonly fault: string | null;
  readonly hasNewLog: boolean;
  readonly hasCommitted: boolean;
  readonly leads: boolean;
}

/** Gives each text a number. */
class Numbers<T> {
  readonly values: T[] = [];
  readonly #known = new Map<string, number>();

  of(text: string, value: () => T): number {
    let number = this.#known.get(text);
    if (number === undefined) {
      number = this.values.length;
      this.values.push(value());
      this.#known.set(text, number);
    }
    return number;
  }
}

/** All of a state that its future depends on. */
export function stateText(state: RaftState): string {
  const { log, progress, votes } = state;
  const entries = log.slice(log.base.index + 1, log.lastIndex).map(entryText);
  return [
    ...[state.role, state.currentTerm, state.votedFor, state.damagedTerm, state.leader],
    ...[state.commitIndex, state.elapsedTicks, state.timeoutTicks, state.heartbeatElapsedTicks],
    ...[state.transfer?.to, state.transfer?.ticks, state.round],
    state.reads.map(({ id, index, round }) => `${id}/${index}/${round}`),
    `${log.base.index}/${log.base.term}${configurationText(log.base.configuration)}`,
    entries.join(" "),
    [...votes].sort().join(" "),
    [...progress].sort().map(([id, held]) =>
      [
        ...[id, held.state, held.matchIndex, held.nextIndex, held.silentTicks, held.round],
        ...[held.snapshotTicks, held.inflight.map(({ lastIndex }) => lastIndex).join("+")],
      ].join("/")
    ).join(" "),
  ].join(";");
}

function messageText(message: Message): string {
  return JSON.stringify(message, (_key, value) => value instanceof Uint8Array ? [...value] : value);
}

/** Whether the receiver, now and ever after, takes no notice: its term never falls. */
function isStale(message: Message, { currentTerm }: RaftState): boolean {
  switch (message.type) {
    case "requestVoteResponse":
    case "appendEntriesResponse":
    case "timeoutNow":
      return message.term < currentTerm;
    case "preVoteResponse":
      return message.term < currentTerm || (message.voteGranted && message.term === currentTerm);
    default:
      return false;
  }
}

export function explore(exploration: Exploration): Explored {
  return new Explorer(exploration).run();
}

class Explorer {
  readonly #exploration: Exploration;
  readonly #nodes = new Numbers<RaftState>();
  readonly #messages = new Numbers<Message>();
  readonly #decided = new Numbers<Decided>();
  readonly #actions = new Numbers<string>();
  readonly #moves = new Map<string, Move>();
  readonly #ids: readonly string[];
  readonly #visited = new Set<number>();
  /** Of each world visited, in their order: the one it came from, and by what. */
  readonly #parents: number[] = [];
  readonly #causes: number[] = [];
  readonly #leaders = new Set<string>();
  #frontier: World[] = [];
  #next: World[] = [];
  #transitions = 0;
  #committedMax = 0;
  #violation: Explored["violation"] = null;

  constructor(exploration: Exploration) {
    this.#exploration = exploration;
    this.#ids = exploration.members.map(({ id }) => id);
  }

  run(): Explored {
    const { members, messages = [], budget, statesMax } = this.#exploration;
    const longest = members.reduce((a, b) => a.commitIndex >= b.commitIndex ? a : b);
    const before = Array.from({ length: longest.log.base.index + 1 }, () => "");
    before[longest.log.base.index] = `${longest.log.base.term}:`;
    const committed = longest.log.slice(longest.log.base.index + 1, longest.commitIndex);
    this.#add({
      nodes: members.map((state) => this.#node(state)),
      net: messages.map((message) => this.#message(message)),
      budget: KINDS.map((kind) => budget[kind] ?? 0),
      decided: this.#decide(
        [...before, ...committed.map(entryText)],
        [...before.map(() => 0), ...committed.map(({ term }) => term)],
        new Map(),
      ),
      parent: -1,
      action: this.#actions.of("start", () => "start"),
    });
    while (this.#next.length > 0 && this.#violation === null) {
      this.#frontier = this.#next;
      this.#next = [];
      let number = this.#parents.length - this.#frontier.length;
      for (const world of this.#frontier) {
        this.#expand(world, number++);
        if (this.#violation !== null || this.#visited.size >= statesMax) break;
      }
      if (this.#visited.size >= statesMax) break;
    }
    return {
      states: this.#visited.size,
      transitions: this.#transitions,
      isComplete: this.#visited.size < statesMax,
      violation: this.#violation,
      leaders: this.#leaders,
      committedMax: this.#committedMax,
    };
  }

  #node(state: RaftState): number {
    return this.#nodes.of(`${state.id};${stateText(state)}`, () => state);
  }

  #message(message: Message): number {
    return this.#messages.of(messageText(message), () => message);
  }

  #decide(
    committed: Decided["committed"],
    terms: Decided["terms"],
    leaders: Decided["leaders"],
  ): number {
    const text = `${committed.join(" ")};${terms};${[...leaders].sort((a, b) => a[0] - b[0])}`;
    this.#committedMax = Math.max(this.#committedMax, committed.length - 1);
    return this.#decided.of(text, () => ({ committed, terms, leaders }));
  }

  #add(world: World): void {
    // 53 bits of two hashes: among ten million worlds, two alike have a chance of one in 180.
    let [a, b] = [0x811c9dc5, 0x9747b28c];
    const mix = (n: number) => {
      a = Math.imul(a ^ n, 0x01000193);
      b = Math.imul((b << 13 | b >>> 19) ^ n, 0x5bd1e995);
      a ^= a >>> 15;
      b ^= b >>> 13;
    };
    for (const node of world.nodes) mix(node);
    for (const left of world.budget) mix(left);
    mix(world.decided);
    for (const message of world.net) mix(message);
    const hash = (a >>> 0) * 0x200000 + (b >>> 11);
    if (this.#visited.has(hash)) return;
    this.#visited.add(hash);
    this.#parents.push(world.parent);
    this.#causes.push(world.action);
    this.#next.push(world);
  }

  #expand(world: World, number: number): void {
    const { dead = [], target, forget } = this.#exploration;
    const { net } = world;
    for (let i = 0; i < net.length; i++) {
      if (net.indexOf(net[i]) < i) continue;
      const message = this.#messages.values[net[i]];
      const at = this.#ids.indexOf(message.to);
      if (at < 0 || dead.includes(message.to)) continue;
      const text = `m${net[i]}`;
      const event = { type: "message", message } as const;
      const rest = net.filter((_, j) => j !== i);
      this.#move(world, number, at, text, event, rest, null);
      if (this.#left(world, "duplicates") > 0) {
        this.#move(world, number, at, text, event, net, "duplicates");
      }
    }
    for (const [at, id] of this.#ids.entries()) {
      if (dead.includes(id)) continue;
      const state = this.#nodes.values[world.nodes[at]];
      this.#move(world, number, at, "tick", { type: "tick" }, net, "ticks");
      if (state.role === "leader") {
        const left = this.#left(world, "proposals");
        const commands = [Uint8Array.of(left)];
        this.#move(world, number, at, `p${left}`, { type: "propose", commands }, net, "proposals");
        for (const to of this.#ids) {
          const event = { type: "transferLeadership", to } as const;
          this.#move(world, number, at, `transfer ${to}`, event, net, "transfers");
        }
        if (target !== undefined) {
          this.#move(
            ...[world, number, at, "change"] as const,
            { type: "changeMembership", target },
            ...[net, "changes"] as const,
          );
        }
      }
      if (state.commitIndex > state.log.base.index) {
        const { commitIndex: index } = state;
        this.#move(world, number, at, `c${index}`, { type: "compact", index }, net, "compactions");
      }
      if (this.#left(world, "crashes") > 0) {
        const kept = forget?.(state) ?? state;
        const restarted = this.#restart(at, kept);
        this.#reach(world, number, at, `crash ${id}`, restarted, net, "crashes");
      }
    }
  }

  /** What comes back from a disk: the commit index is not on it. */
  #restart(at: number, state: RaftState): Move {
    const { currentTerm, votedFor, damagedTerm, log } = state;
    const restarted = restore(this.#exploration.setups[at], {
      hardState: { currentTerm, votedFor, damagedTerm },
      snapshot: log.base,
      entries: log.slice(log.base.index + 1, log.lastIndex),
      appliedIndex: log.base.index,
    });
    const quiet = { messages: [], fault: null, hasNewLog: false, hasCommitted: false };
    return { ...quiet, node: this.#node(restarted), leads: false };
  }

  #left(world: World, kind: Kind): number {
    return world.budget[KINDS.indexOf(kind)];
  }

  #move(
    world: World,
    number: number,
    at: number,
    text: string,
    event: RaftEvent,
    net: readonly number[],
    kind: Kind | null,
  ): void {
    if (kind !== null && this.#left(world, kind) === 0) return;
    const key = `${world.nodes[at]} ${text}`;
    let move = this.#moves.get(key);
    if (move === undefined) {
      move = this.#step(this.#nodes.values[world.nodes[at]], event);
      this.#moves.set(key, move);
    }
    if (this.#nodes.values[move.node].currentTerm > this.#exploration.termMax) return;
    const isIdle = move.node === world.nodes[at] && move.messages.length === 0;
    if (isIdle && kind !== null) return; // It would only have spent something.
    this.#reach(world, number, at, `${this.#ids[at]} ${text}`, move, net, kind);
  }

  #step(before: RaftState, event: RaftEvent): Move {
    let fault: string | null = null;
    let [state, messages]: [RaftState, readonly Message[]] = [before, []];
    try {
      const result = step(before, event);
      state = result.state;
      messages = result.ready.messages;
      if (state.commitIndex < before.commitIndex) fault = "what is committed never shrinks";
      if (state.currentTerm < before.currentTerm) fault = "a term never falls";
    } catch (error) {
      fault = `it threw ${error}`;
    }
    return {
      node: this.#node(state),
      messages: messages.map((message) => this.#message(message)),
      fault,
      hasNewLog: state.log !== before.log,
      hasCommitted: state.commitIndex !== before.commitIndex,
      leads: state.role === "leader",
    };
  }

  #reach(
    world: World,
    number: number,
    at: number,
    action: string,
    move: Move,
    net: readonly number[],
    kind: Kind | null,
  ): void {
    this.#transitions++;
    const cause = this.#actions.of(action, () => action);
    const nodes = world.nodes.with(at, move.node);
    let { decided } = world;
    const state = this.#nodes.values[move.node];
    const isNews = move.hasCommitted || move.hasNewLog || move.leads;
    let fault = move.fault;
    if (isNews && fault === null) {
      fault = this.#check(nodes, at, move, this.#decided.values[decided]);
      decided = this.#decideMore(state, move, decided);
    }
    if (fault !== null) {
      this.#violation = { property: fault, trace: this.#traceOf(number, cause) };
      return;
    }
    let kept: readonly number[] = net.filter((message) => !this.#isLost(message, nodes));
    for (const message of move.messages) {
      if (!this.#isLost(message, nodes)) kept = this.#sendOn(kept, message);
    }
    this.#add({
      nodes,
      net: this.#inOrder(kept),
      budget: kind === null
        ? world.budget
        : world.budget.map((left, i) => KINDS[i] === kind ? left - 1 : left),
      decided,
      parent: number,
      action: cause,
    });
  }

  /** Whether nobody is there to hear it. */
  #isLost(message: number, nodes: readonly number[]): boolean {
    const { [message]: sent } = this.#messages.values;
    const receiver = this.#ids.indexOf(sent.to);
    return receiver < 0 || isStale(sent, this.#nodes.values[nodes[receiver]]);
  }

  /** Links one after another; what waits on one keeps its order. */
  #inOrder(net: readonly number[]): readonly number[] {
    const linkOf = (message: number) => {
      const { from, to } = this.#messages.values[message];
      return this.#ids.indexOf(from) * this.#ids.length + this.#ids.indexOf(to);
    };
    return net.toSorted((a, b) => linkOf(a) - linkOf(b));
  }

  #sendOn(net: readonly number[], message: number): readonly number[] {
    const { from, to } = this.#messages.values[message];
    const isOnLink = (other: number) => {
      const sent = this.#messages.values[other];
      return sent.from === from && sent.to === to;
    };
    const waiting = net.filter(isOnLink);
    if (waiting.length < this.#exploration.linkMax) return [...net, message];
    const oldest = net.indexOf(waiting[0]);
    return [...net.filter((_, i) => i !== oldest), message];
  }

  #check(nodes: readonly number[], at: number, move: Move, decided: Decided): string | null {
    const states = nodes.map((node) => this.#nodes.values[node]);
    const state = states[at];
    const { log } = state;
    const { committed, terms, leaders } = decided;
    const textAt = (index: number) =>
      index === log.base.index ? `${log.base.term}:` : entryText(log.slice(index, index)[0]);
    if (move.leads) {
      const other = leaders.get(state.currentTerm);
      if (other === undefined) {
        for (let index = log.base.index + 1; index < committed.length; index++) {
          // A vote may arrive when its term is long over: then it leads nobody.
          if (terms[index] >= state.currentTerm) continue;
          if (index > log.lastIndex || textAt(index) !== committed[index]) {
            return `leader completeness: ${state.id} lacks ${index}`;
          }
        }
      } else if (other !== state.id) return `one leader a term: ${other} and ${state.id}`;
      const fault = brokenLeadership(state);
      if (fault !== null) return fault;
      if (move.hasCommitted) {
        const lost = brokenDurability(state, (id, index, term) => {
          const held = states[this.#ids.indexOf(id)]?.log;
          return held !== undefined && (held.base.index >= index || held.termAt(index) === term);
        });
        if (lost !== null) return lost;
      }
    }
    for (let index = log.base.index + 1; index <= state.commitIndex; index++) {
      if (index < committed.length && textAt(index) !== committed[index]) {
        return `state machine safety: ${state.id} has another entry at ${index}`;
      }
    }
    if (!move.hasNewLog) return null;
    for (const other of states) {
      const fault = other === state ? null : brokenLogMatching(state, other);
      if (fault !== null) return fault;
    }
    return null;
  }

  #decideMore(state: RaftState, move: Move, decided: number): number {
    const { committed, terms, leaders } = this.#decided.values[decided];
    const isLonger = state.commitIndex >= committed.length;
    const isNewLeader = move.leads && !leaders.has(state.currentTerm);
    if (!isLonger && !isNewLeader) return decided;
    const added = state.log.slice(committed.length, state.commitIndex).map(entryText);
    if (isNewLeader) this.#leaders.add(`${state.id} ${state.currentTerm}`);
    return this.#decide(
      isLonger ? [...committed, ...added] : committed,
      isLonger ? [...terms, ...added.map(() => state.currentTerm)] : terms,
      isNewLeader ? new Map(leaders).set(state.currentTerm, state.id) : leaders,
    );
  }

  #traceOf(number: number, cause: number): string[] {
    const causes = [cause];
    for (let at = number; at >= 0; at = this.#parents[at]) causes.push(this.#causes[at]);
    return causes.reverse().map((action) =>
      this.#actions.values[action].replace(
        /\bm(\d+)$/,
        (_, message) => messageText(this.#messages.values[Number(message)]),
      )
    );
  }
}
