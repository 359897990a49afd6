import { log } from "../log.ts";
import {
  type Base,
  compileCustomRules,
  type CustomRules,
  customRuleTexts,
  explain,
  type Explanation,
  OverlayCompiler,
  type PolicyState,
  Snapshot,
  type SnapshotData,
} from "../snapshot/mod.ts";

export interface PolicyOptions {
  /** Of every hash of a name in this process. */
  readonly seed: number;
  readonly state: PolicyState;
  readonly base: Base;
  /** Resolves once every dns isolate answers by the snapshot. */
  readonly publish: (data: SnapshotData) => Promise<void>;
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
  #data: SnapshotData;
  /** The custom rules as compiled last, and what of. */
  #custom: { readonly key: string; readonly base: Base; readonly rules: CustomRules } | null = null;
  /** Resolves, whatever came of it, when nothing is on its way. */
  #sending: Promise<void> = Promise.resolve();
  /** Goes out next, with every change made until then. */
  #next: Promise<void> | null = null;

  constructor(options: PolicyOptions) {
    this.#options = options;
    this.#overlays = new OverlayCompiler(options.seed);
    this.#state = options.state;
    this.#base = options.base;
    this.#data = this.#compile(1);
  }

  /** The newest snapshot, which holds or is about to. */
  get data(): SnapshotData {
    return this.#data;
  }

  /** Until when filtering is paused, in milliseconds since 1970; 0 or past where it is not. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
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
    this.#pausedUntilMs = untilMs;
    return this.#publish();
  }

  /** What a query would come to now; `null` for what is no name. See `explain`. */
  explain(name: string, qtype: number, client: string | null): Explanation | null {
    return explain(new Snapshot(this.#data, Date.now()), name, qtype, client);
  }

  #publish(): Promise<void> {
    this.#next ??= this.#sendNext();
    return this.#next;
  }

  async #sendNext(): Promise<void> {
    await this.#sending;
    this.#next = null;
    this.#data = this.#compile(this.#data.generation + 1);
    const sent = this.#options.publish(this.#data);
    this.#sending = sent.catch(() => {}); // Whoever made the change hears of it.
    await sent;
  }

  #compile(generation: number): SnapshotData {
    const overlay = this.#overlays.compile(this.#state, this.#base, this.#customRules());
    return { generation, rules: this.#base.rules, overlay, pausedUntilMs: this.#pausedUntilMs };
  }

  /** Compiles custom rules only where they, or the base that they touch, are others. */
  #customRules(): CustomRules {
    const texts = customRuleTexts(this.#state);
    const key = texts.join("\n");
    const known = this.#custom;
    if (known !== null && known.key === key && known.base === this.#base) return known.rules;
    const rules = compileCustomRules(texts, this.#base, this.#options.seed);
    if (rules.unreadable > 0) {
      log.warn("some custom rules can't be read and are left out", { rules: rules.unreadable });
    }
    this.#custom = { key, base: this.#base, rules };
    return rules;
  }
}
