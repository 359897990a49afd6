import type { Clock } from "../clock/mod.ts";
import { invariant } from "../errors.ts";
import { compile, type SourceStats } from "../filter/mod.ts";
import { log } from "../log.ts";
import type { RecordSpec } from "../model/mod.ts";
import { type Draft, draftOf } from "./policy_draft.ts";
import {
  type Base,
  type CustomRules,
  CustomRulesCompiler,
  explain,
  type Explanation,
  OverlayCompiler,
  type PolicyState,
  type Settling,
  Snapshot,
  type SnapshotData,
} from "../snapshot/mod.ts";

/** What is asked of a policy. */
export interface PolicyQuestion {
  readonly name: string;
  readonly qtype: number;
  readonly client: string | null;
  /** The ID of the group that the client would be in; left out or `null`: its own. */
  readonly group?: string | null;
  readonly draft?: Draft | null;
}

/** So few custom rules are compiled faster than an isolate starts. */
const HERE_MAX = 4_096;
/** No pause is longer: a week. */
const PAUSE_MS_MAX = 604_800_000;

export interface PolicyOptions {
  /** Of every hash of a name in this process. */
  readonly seed: number;
  readonly state: PolicyState;
  readonly base: Base;
  /** Records of the service's own. */
  readonly designated?: readonly RecordSpec[];
  /** Left out: the system's. */
  readonly clock?: Clock;
  /** As of a former process; left out: nothing is paused. */
  readonly pausedUntilMs?: number;
  /** Resolves once every dns isolate answers by the snapshot. */
  readonly publish: (data: SnapshotData) => Promise<void>;
  /** Compiles many custom rules where that is in nobody's way. */
  readonly compile: (
    input: Settling["input"],
  ) => Promise<{ readonly rules: SharedArrayBuffer; readonly stats: readonly SourceStats[] }>;
}

/**
 * Makes the state of the store, the rules of the lists and a pause into what queries are decided by.
 * Each change resolves once it holds for the next query, on every isolate; changes that come while
 * one is on its way go out together behind it.
 */
export class Policy {
  readonly #options: PolicyOptions;
  readonly #overlays: OverlayCompiler;
  #state: PolicyState;
  #base: Base;
  #pausedUntilMs = 0;
  #pauseTimer: ReturnType<typeof setTimeout> | undefined;
  #data: SnapshotData;
  readonly #custom: CustomRulesCompiler;
  #isMerging = false;
  /** Custom rules that are in no level. */
  #leftOut = 0;
  /** Resolves, whatever came of it, when nothing is on its way. */
  #sending: Promise<void> = Promise.resolve();
  /** Goes out next, with every change made until then. */
  #next: Promise<void> | null = null;

  constructor(options: PolicyOptions) {
    this.#options = options;
    this.#overlays = new OverlayCompiler(options.seed, options.designated);
    this.#custom = new CustomRulesCompiler(options.seed);
    this.#state = options.state;
    this.#base = options.base;
    this.#setPause(options.pausedUntilMs ?? 0);
    const [rules, base] = [this.#rules, this.#base];
    this.#data = this.#compile(this.#custom.current(rules, base) ?? this.#settle(), 1);
  }

  /** The newest snapshot, which holds or is about to. */
  get data(): SnapshotData {
    return this.#data;
  }

  /** Until when filtering is paused, in milliseconds since 1970; 0 or past where it is not. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** What is wrong with custom rules, for the status. */
  get problems(): string[] {
    if (this.#leftOut === 0) return [];
    return [
      `filter: custom rules without effect: ${this.#leftOut}; there are too many patterns and regular ` +
      "expressions, or too many that have no text of their own: write ||name^",
    ];
  }

  /** Takes the state after a change. */
  update(state: PolicyState): Promise<void> {
    this.#state = state;
    return this.#publish();
  }

  /** Takes other rules of lists. */
  rebase(base: Base): Promise<void> {
    this.#base = base;
    return this.#publish();
  }

  /** Filters nothing until an instant, in milliseconds since 1970; 0 filters again. */
  pause(untilMs: number): Promise<void> {
    this.#setPause(untilMs);
    return this.#publish();
  }

  /** Leaves a pause as it is. */
  stop(): void {
    clearTimeout(this.#pauseTimer);
  }

  /** The isolates end it by the system's clock; one that is set back, or wrong, makes it no longer. */
  #setPause(untilMs: number): void {
    this.stop();
    this.#pausedUntilMs = untilMs;
    const { clock = { nowMs: Date.now } } = this.#options;
    const leftMs = Math.min(untilMs - clock.nowMs(), PAUSE_MS_MAX);
    if (leftMs <= 0) return;
    this.#pauseTimer = setTimeout(() => {
      this.pause(0).catch((error) => log.error("a pause ends with the next change", { error }));
    }, leftMs);
    Deno.unrefTimer(this.#pauseTimer);
  }

  /**
   * What a query would come to now, or under a draft; `null` for what is no name, or no group. See
   * `explain`.
   */
  async explain(question: PolicyQuestion): Promise<Explanation | null> {
    const { name, qtype, client, group = null, draft = null } = question;
    const data = draft === null ? this.#data : await this.#drafted(draft);
    return explain(new Snapshot(data, Date.now()), name, qtype, client, group);
  }

  /** The newest snapshot with a draft in it, which nobody decides by. */
  async #drafted(draft: Draft): Promise<SnapshotData> {
    const state = draftOf(this.#state, draft);
    const base = this.#base;
    const { rules } = state.collections;
    let custom = this.#custom.draft(rules, base);
    if (custom === null) {
      const compiler = new CustomRulesCompiler(this.#options.seed);
      const settling = compiler.begin(rules, base);
      const compiled = settling.weight <= HERE_MAX
        ? compileHere(settling)
        : await this.#options.compile(settling.input);
      compiler.settle(settling, compiled.rules, compiled.stats);
      custom = compiler.current(rules, base);
      invariant(custom !== null, "rules that were just compiled are at hand");
    }
    const { generation, pausedUntilMs } = this.#data;
    const overlay = this.#overlays.compile(state, base, custom);
    return { generation, rules: base.rules, overlay, pausedUntilMs };
  }

  #publish(): Promise<void> {
    this.#next ??= this.#sendNext();
    return this.#next;
  }

  async #sendNext(): Promise<void> {
    await this.#sending;
    this.#next = null;
    const sent = this.#send();
    this.#sending = sent.catch(() => {}); // Whoever made the change hears of it.
    await sent;
  }

  async #send(): Promise<void> {
    const custom = this.#custom.current(this.#rules, this.#base) ?? this.#settle();
    this.#data = this.#compile(custom, this.#data.generation + 1);
    await this.#options.publish(this.#data);
    // Whoever made the change is answered first.
    if (this.#custom.isDue && !this.#isMerging) setTimeout(() => void this.#merge());
  }

  get #rules(): PolicyState["collections"]["rules"] {
    return this.#state.collections.rules;
  }

  /** Compiles all custom rules at once. */
  #settle(): CustomRules {
    const settling = this.#custom.begin(this.#rules, this.#base);
    const { rules, stats } = compileHere(settling);
    this.#take(settling, rules, stats);
    const custom = this.#custom.current(this.#rules, this.#base);
    invariant(custom !== null, "rules that were just compiled are at hand");
    return custom;
  }

  /** Merges the rules that are new with all others. Never throws. */
  async #merge(): Promise<void> {
    if (this.#isMerging) return;
    this.#isMerging = true;
    try {
      const settling = this.#custom.begin(this.#rules, this.#base);
      const { rules, stats } = settling.weight <= HERE_MAX
        ? compileHere(settling)
        : await this.#options.compile(settling.input);
      // Other lists, or very many rules, that came meanwhile have been merged already.
      if (settling.base === this.#base && this.#custom.isDue) this.#take(settling, rules, stats);
      await this.#publish();
    } catch (error) {
      log.error("custom rules can't be merged: the next change tries again", { error });
    } finally {
      this.#isMerging = false;
    }
  }

  #take(settling: Settling, rules: SharedArrayBuffer, stats: readonly SourceStats[]): void {
    this.#leftOut = this.#custom.settle(settling, rules, stats);
    if (this.#leftOut > 0) log.warn("some custom rules have no effect", { rules: this.#leftOut });
  }

  #compile(custom: CustomRules, generation: number): SnapshotData {
    const overlay = this.#overlays.compile(this.#state, this.#base, custom);
    return { generation, rules: this.#base.rules, overlay, pausedUntilMs: this.#pausedUntilMs };
  }
}

function compileHere({ input }: Settling): Awaited<ReturnType<PolicyOptions["compile"]>> {
  const { rules, stats } = compile(input);
  return { rules, stats };
}
