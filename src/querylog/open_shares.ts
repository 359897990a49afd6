import type { Shares } from "./client_counts.ts";
import { ClientDays } from "./client_days.ts";
import { ClientHours } from "./client_hours.ts";
import type { TakenEntry } from "./entry.ts";
import { LocalDays } from "./local_days.ts";
import type { StoredLog } from "./segments.ts";
import { Sharers } from "./sharers.ts";

export interface SharesOptions {
  readonly maxEntries: number;
  readonly retentionMs: number;
  readonly anonymize: boolean;
  readonly timeZone: string | null;
}

/** What is counted of each client as it comes, by the hour and by the day. */
export class OpenShares implements Shares {
  readonly calendar: LocalDays;
  readonly hours: ClientHours;
  readonly days: ClientDays;
  readonly #sharers: Sharers;

  constructor(log: StoredLog, options: SharesOptions) {
    const { maxEntries, retentionMs, anonymize, timeZone } = options;
    this.#sharers = new Sharers(log.db);
    this.calendar = new LocalDays(timeZone);
    this.hours = new ClientHours(log, this.#sharers, { retentionMs, isNameless: maxEntries === 0 });
    this.days = new ClientDays(log, this.#sharers, this.calendar, anonymize);
  }

  add(entry: TakenEntry, nameHash: number): void {
    this.hours.add(entry, entry.isLogged, nameHash);
    this.days.add(entry);
  }

  save(nowMs: number | null): void {
    this.hours.save(nowMs);
    this.days.save(nowMs);
  }

  /** Has everything in memory written again: a transaction was undone. */
  undo(): void {
    this.#sharers.undo();
    this.hours.undo();
    this.days.undo();
  }
}
