import { join } from "node:path/posix";
import { encodeBackup, makeBackup } from "../backup/mod.ts";
import type { ClockJudge } from "../clock/mod.ts";
import type { Config } from "../config/mod.ts";
import { messageOf } from "../errors.ts";
import { denoDisk, type Disk } from "../lists/mod.ts";
import { log } from "../log.ts";
import { isSeeded, type LiveState } from "../model/mod.ts";

import type { OpenStore, Replicator } from "../store/mod.ts";
import { VERSION } from "../version.ts";
import { every } from "./every.ts";
import type { Problems } from "./problems.ts";

/** Copies that are kept: a week of them. */
export const COPIES_MAX = 7;
/** How often somebody looks whether a day has begun, or whether what failed can be done by now. */
const LOOK_MS = 60_000;
const DRAFT_SUFFIX = ".new";
const COPY = /^svc-(\d{4}-\d\d-\d\d)\.json$/;

/** Has a node keep its copies beside its store; returns what ends that. */
export function keepDailyBackups(
  { store }: Pick<Config, "store">,
  { replicator, isTemporary }: Pick<OpenStore, "isTemporary"> & {
    readonly replicator: Pick<Replicator, "state">;
  },
  judge: Pick<ClockJudge, "mayForget" | "nowMs">,
  problems: Problems,
): () => Promise<void> {
  const backups = new DailyBackups({
    directory: join(store.dir, "backups"),
    // In place of a store that can't be read there is what the file seeds: no copy goes for that.
    state: () => isTemporary ? null : replicator.state,
    program: VERSION,
    nowMs: () => judge.mayForget ? judge.nowMs() : null,
    disk: denoDisk,
  });
  problems.watch("backup", () => backups.problems);
  backups.start();
  return () => backups.stop();
}

export interface DailyBackupsOptions {
  readonly directory: string;
  /** `null`: there is none to be kept. */
  readonly state: () => LiveState | null;
  readonly program: string;
  /** `null` while nobody knows the time: a copy would get another day's name. */
  readonly nowMs: () => number | null;
  readonly disk: Disk;
}

/**
 * Has this node keep a copy of its configuration for each of the last days, without what is secret of
 * users: nobody is there to give a passphrase.
 */
export class DailyBackups {
  readonly #options: DailyBackupsOptions;
  #end = () => {};
  #looking: Promise<void> | null = null;
  #failure: string | null = null;
  /** The day of the last copy, as in its name. */
  #day = "";

  constructor(options: DailyBackupsOptions) {
    this.#options = options;
  }

  /** Why there is no copy of today. */
  get problems(): readonly string[] {
    return this.#failure === null ? [] : [this.#failure];
  }

  start(): void {
    this.#end = every(LOOK_MS, () => void this.look());
    void this.look();
  }

  /** Resolves once nothing is being written. */
  async stop(): Promise<void> {
    this.#end();
    await this.#looking;
  }

  /** Writes the copy of today where there is none, and removes those that are too many. Never throws. */
  async look(): Promise<void> {
    await (this.#looking ??= this.#look());
  }

  async #look(): Promise<void> {
    const { directory } = this.#options;
    try {
      await this.#keep();
      this.#failure = null;
    } catch (error) {
      const failure =
        `store.path: ${directory}: today's copy of the configuration can't be kept: ` +
        `${messageOf(error)}: see that the disk has room and may be written`;
      if (this.#failure === null) log.error("a daily backup failed", { directory, error });
      this.#failure = failure;
    } finally {
      this.#looking = null;
    }
  }

  async #keep(): Promise<void> {
    const { directory, nowMs, disk } = this.#options;
    const [now, state] = [nowMs(), this.#options.state()];
    if (now === null || state === null || !isSeeded(state)) return;
    const today = new Date(now).toISOString().slice(0, 10);
    if (today === this.#day) return;
    await disk.makeDirectory(directory);
    const names = await disk.names(directory);
    const name = `svc-${today}.json`;
    for (const left of names) {
      if (left.endsWith(DRAFT_SUFFIX)) await disk.remove(join(directory, left));
    }
    if (!names.includes(name)) await this.#write(join(directory, name), state, now);
    const copies = [...new Set([...names, name])].filter((one) => COPY.test(one));
    for (const old of oldest(copies, name)) await disk.remove(join(directory, old));
    this.#day = today;
  }

  async #write(path: string, state: LiveState, madeAtMs: number): Promise<void> {
    const { directory, program, disk } = this.#options;
    const bytes = encodeBackup(await makeBackup(state, { madeAtMs, program }, null));
    const draft = path + DRAFT_SUFFIX;
    try {
      const file = await disk.create(draft);
      try {
        await file.write(bytes);
        await file.sync();
      } finally {
        file.close();
      }
      await disk.rename(draft, path);
    } catch (error) {
      await disk.remove(draft).catch(() => {}); // It takes room that others need.
      throw error;
    }
    await disk.syncDirectory(directory);
  }
}

/** Those beyond the newest; a copy of a day to come was made while the clock was ahead. */
function oldest(copies: readonly string[], today: string): string[] {
  const past = copies.filter((name) => name <= today).sort();
  const ahead = copies.filter((name) => name > today).sort();
  return [...ahead, ...past].slice(0, Math.max(0, copies.length - COPIES_MAX));
}
