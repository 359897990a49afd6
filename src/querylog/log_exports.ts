import { NO_ROOM, OUTCOME_NAMES, QueueWriter, RecordAt } from "../logqueue/mod.ts";
import type { OutcomeName, TakenEntry } from "./entry.ts";

const TWO_TO_32 = 2 ** 32;

/** A queue of those who send entries elsewhere. */
export interface LogExport {
  readonly queue: SharedArrayBuffer;
  /** Only entries with one of these; `null`: all. */
  readonly outcomes: readonly OutcomeName[] | null;
}

interface Target {
  readonly writer: QueueWriter;
  /** By the numbers of outcomes. */
  readonly wants: readonly boolean[];
}

/** Hands entries on to those who send them elsewhere, as the records that they came as. */
export class LogExports {
  readonly #targets: readonly Target[];
  /** By the numbers of outcomes: by anybody. */
  readonly #wanted: readonly boolean[];

  constructor(exports: readonly LogExport[]) {
    this.#targets = exports.map(({ queue, outcomes }) => ({
      writer: new QueueWriter(queue),
      wants: OUTCOME_NAMES.map((name) => outcomes === null || outcomes.includes(name)),
    }));
    this.#wanted = OUTCOME_NAMES.map((_, i) => this.#targets.some(({ wants }) => wants[i]));
  }

  /** Says whether somebody wants the record of an entry. */
  wants({ isLogged, outcome }: TakenEntry): boolean {
    return isLogged && this.#wanted[outcome];
  }

  /** Hands on the records of those that have one; a queue without room counts what it can't take. */
  push(batch: readonly TakenEntry[]): void {
    if (this.#targets.length === 0) return;
    for (const { record, outcome, timeMs } of batch) {
      if (record === null) continue;
      record[RecordAt.TimeLow] = timeMs % TWO_TO_32;
      record[RecordAt.TimeHigh] = timeMs / TWO_TO_32;
      for (const { writer, wants } of this.#targets) {
        if (!wants[outcome]) continue;
        const at = writer.admits() ? writer.begin(record.byteLength) : NO_ROOM;
        if (at === NO_ROOM) writer.drop(outcome);
        else {
          writer.words.set(record, at);
          writer.commit(record.byteLength);
        }
      }
    }
  }
}
