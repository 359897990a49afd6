import type { Entry, RaftState } from "../../src/raft/mod.ts";
import { entryText } from "./properties.ts";

/** The state that a machine has come to: alike where it applied the same entries. */
export interface Machine {
  readonly index: number;
  readonly digest: number;
}

interface Decision {
  readonly text: string;
  readonly term: number;
  /** Of the leader that committed it. */
  readonly committedIn: number;
  readonly digest: number;
}

/** What a cluster ever decided; whatever goes against it is thrown. */
export class Decisions {
  readonly #leaders = new Map<number, string>();
  /** By index and term, what an entry is and the term before it. */
  readonly #entries = new Map<string, string>();
  readonly #committed: Decision[] = [];
  readonly #first: number;

  /** Every log begins with what stands for `first`. */
  constructor(first: Machine) {
    this.#first = first.index;
    const { digest } = first;
    this.#committed.push({ text: "", term: 1, committedIn: 1, digest });
  }

  get lastIndex(): number {
    return this.#first + this.#committed.length - 1;
  }

  /** Terms that somebody led. */
  get terms(): number {
    return this.#leaders.size;
  }

  /** One leader a term, and it holds all that earlier terms committed. */
  lead({ id, currentTerm, log }: RaftState): void {
    const other = this.#leaders.get(currentTerm);
    if (other === id) return;
    if (other !== undefined) throw new Error(`two leaders of ${currentTerm}: ${other}, ${id}`);
    this.#leaders.set(currentTerm, id);
    const before = this.#committed.findLastIndex(({ committedIn }) => committedIn < currentTerm);
    const index = this.#first + before;
    const has = index <= log.base.index || log.termAt(index) === this.#committed[before].term;
    if (!has) throw new Error(`leader completeness: ${id} of ${currentTerm} lacks ${index}`);
  }

  /** Log matching: an index and a term are one entry, after one other. */
  hold(entry: Entry, termBefore: number): void {
    const key = `${entry.index}:${entry.term}`;
    const text = `${termBefore} ${entryText(entry)}`;
    const other = this.#entries.get(key);
    if (other === undefined) this.#entries.set(key, text);
    else if (other !== text) throw new Error(`log matching: ${key} is ${other} and ${text}`);
  }

  /** State machine safety: all apply the same entry at an index. */
  apply(machine: Machine, entry: Entry, committedIn: number): Machine {
    const { index } = entry;
    if (index !== machine.index + 1) throw new Error(`applied ${index} after ${machine.index}`);
    const text = entryText(entry);
    const known = this.#committed[index - this.#first];
    if (known === undefined) {
      let { digest } = this.#committed[index - this.#first - 1];
      for (let i = 0; i < text.length; i++) {
        digest = Math.imul(digest ^ text.charCodeAt(i), 0x01000193);
      }
      this.#committed.push({ text, term: entry.term, committedIn, digest });
    } else if (known.text !== text) {
      throw new Error(`state machine safety: ${index} is ${known.text} and ${text}`);
    }
    return { index, digest: this.#committed[index - this.#first].digest };
  }

  /** A machine that came whole is what applying would have made. */
  install(machine: Machine): void {
    const known = this.#committed[machine.index - this.#first];
    if (known?.digest !== machine.digest) throw new Error(`a Raft snapshot of ${machine.index}`);
  }
}
