/** A service whose upstream answers from a table, for tests that change what it filters. */
import assert from "node:assert/strict";
import type { Qtype } from "../../src/dns/mod.ts";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { Asker, brief } from "./asker.ts";
import { type AnswerSpec, FakeUpstream } from "./fake_upstream.ts";
import { type ConfigText, Service, type ServiceOptions } from "./harness.ts";
import { type Zone, zoneScript } from "./zone.ts";

/** The extended error of a name that a custom rule blocks. */
export const byRule = (rule: string, list = "custom rules") => `EDE 15 ${rule} (${list})`;
export const NULL_A = "NOERROR; A 0.0.0.0";
export const PLAIN = "NOERROR; A 198.51.100.1";
/** NODATA of the service's own. */
export const EMPTY = "NOERROR; SOA 10";

/** `name TYPE`, what `brief` tells of the answer, and the address of loopback that asks. */
export type Row = readonly [question: string, want: string, from?: string];

export interface FilterBenchOptions extends ServiceOptions {
  readonly zone?: Zone;
  readonly special?: Readonly<Record<string, AnswerSpec>>;
}

export class FilterBench implements AsyncDisposable {
  readonly #askers = new Map<string, Asker>();
  readonly #rules: string[] = [];

  private constructor(
    readonly service: Service,
    readonly upstream: FakeUpstream,
    readonly api: Api,
  ) {}

  static async start(options: FilterBenchOptions = {}): Promise<FilterBench> {
    const upstream = await FakeUpstream.start(zoneScript(options.zone ?? {}, options.special));
    try {
      const config: ConfigText = { upstream: [{ address: upstream.text }], ...options.config };
      const service = await Service.start({ ...options, config });
      return new FilterBench(service, upstream, await Api.of(service));
    } catch (error) {
      await upstream.close();
      throw error;
    }
  }

  /** What is answered to a client of loopback. */
  async ask(question: string, from = "127.0.0.1"): Promise<string> {
    let asker = this.#askers.get(from);
    if (asker === undefined) {
      asker = await Asker.open(this.service.address, from);
      this.#askers.set(from, asker);
    }
    const [name, type = "A"] = question.split(" ");
    return brief(await asker.ask(name, type as keyof typeof Qtype));
  }

  /** Asks, and compares all answers at once. */
  async check(rows: readonly Row[]): Promise<void> {
    const got: string[][] = [];
    const who = (from: string | undefined) => from === undefined ? [] : [from];
    for (const [question, , from] of rows) {
      got.push([question, await this.ask(question, from), ...who(from)]);
    }
    assert.deepEqual(got, rows.map(([question, want, from]) => [question, want, ...who(from)]));
  }

  /** Has these custom rules and no others. */
  async rules(...rules: readonly string[]): Promise<void> {
    await Promise.all(this.#rules.map((id) => this.api.call("DELETE", `rules/${id}`)));
    this.#rules.length = 0;
    for (const rule of rules) this.#rules.push(await this.api.create("rules", { rule }));
  }

  /** Changes some of a group's spec. */
  async change(spec: Readonly<Record<string, unknown>>, group = DEFAULT_GROUP): Promise<void> {
    const { spec: before } = await this.api.call("GET", `groups/${group}`);
    const put = await this.api.call("PUT", `groups/${group}`, { ...before, ...spec });
    assert.equal(put.status, undefined, JSON.stringify(put));
  }

  /** The ID of the list with this name. */
  async list(name: string): Promise<string> {
    // deno-lint-ignore no-explicit-any -- as the API answers
    const found = (await this.api.call("GET", "lists")).items.find((item: any) =>
      item.spec.name === name
    );
    assert(found !== undefined, `there is no list ${name}`);
    return found.id;
  }

  /** Says whether queries for a name reached the upstream since it was last asked. */
  wasAsked(name: string): boolean {
    const count = this.upstream.about(name).length;
    this.upstream.seen.length = 0;
    return count > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const asker of this.#askers.values()) asker[Symbol.dispose]();
    await this.service[Symbol.asyncDispose]();
    await this.upstream.close();
  }
}

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Specs of two schedules, one active at any time of any day and one never. */
export function schedules() {
  // The zone where it is between noon and one o'clock.
  const offset = 12 - new Date().getUTCHours();
  const time_zone = `Etc/GMT${offset >= 0 ? "-" : "+"}${Math.abs(offset)}`;
  const spec = (name: string, start: string, end: string) => ({
    name,
    time_zone,
    windows: [{ days: DAYS, start, end }],
  });
  return { active: spec("active", "10:00", "15:00"), idle: spec("idle", "02:00", "03:00") };
}
