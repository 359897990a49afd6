// Goal: a rule, and a $badfilter, counts for whom its source is active, at that time, and for nobody
// else. Method: lists, groups and schedules by chance, asked about by every group at many hours, against
// the plain reference; who asks is told the same by `explain`.

import assert from "node:assert/strict";
import {
  question,
  referenceAddress,
  referenceDecision,
  type ReferenceRule,
  ruleLine,
  rulesInForce,
} from "../../tests/filter_reference.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { parseIp } from "../addr/mod.ts";
import { Qtype } from "../dns/mod.ts";
import { NO_RULE } from "../filter/mod.ts";
import { DAYS } from "../model/constants.ts";
import { type FakePolicy, policyData } from "./fakes.ts";
import { Decision, explain, Snapshot } from "./mod.ts";

const none = { permissions: "none" } as const;
const SEED = 31;
const [ROUNDS, LISTS, SERVICES, GROUPS, HOURS] = [80, 6, 2, 3, 4];
const CUSTOM = LISTS + SERVICES;
const MIDNIGHT_MS = Date.parse("2026-01-05T00:00:00Z");
const HOUR_MS = 3_600_000;
const NAMES = ["a.test", "b.a.test", "c.b.a.test", "d.test", "test"];
const ADDRESSES = ["10.0.0.1", "10.1.1.1", "2001:db8::1"];
const RULINGS = ["none", "block", "allow", "answer"] as const;

/** From an hour to another, each day; past midnight where it ends before it starts. */
interface Hours {
  readonly from: number;
  readonly to: number;
}

/** A source of a group, and when it applies: `null` is always. */
interface Entry {
  readonly source: number;
  readonly hours: Hours | null;
}

function isActive({ hours }: Entry, hour: number): boolean {
  if (hours === null) return true;
  const { from, to } = hours;
  return from < to ? hour >= from && hour < to : hour >= from || hour < to;
}

/** Few names and forms, so that rules and `$badfilter` rules of several sources meet. */
function randomRule(prng: Prng): ReferenceRule {
  const source = prng.int(CUSTOM + 1);
  const isService = source >= LISTS && source < CUSTOM;
  const form = prng.pick(["domain", "domain", "exact", "plain", "address"] as const);
  const isAddress = form === "address" && !isService;
  const common = {
    source,
    form: form === "address" && isService ? "domain" as const : form,
    name: isAddress ? prng.pick(["10.*", "10.0.0.1", "2001:db8::1"]) : prng.pick(NAMES),
    exception: prng.chance(0.35),
    important: prng.chance(0.3),
    badfilter: prng.chance(0.4),
  };
  if (isAddress || isService || prng.chance(0.7)) return common;
  const values = ["192.0.2.1", "192.0.2.2", "NXDOMAIN"];
  return { ...common, rewrite: common.exception && prng.chance(0.5) ? "" : prng.pick(values) };
}

function randomEntries(prng: Prng): Entry[] {
  return Array.from({ length: CUSTOM }, (_, source) => source).filter(() => prng.chance(0.6)).map(
    (source) => {
      const from = prng.int(24);
      const to = (from + 1 + prng.int(22)) % 24;
      return { source, hours: prng.chance(0.6) ? { from, to } : null };
    },
  );
}

function policyOf(rules: readonly ReferenceRule[], groups: readonly Entry[][]): FakePolicy {
  const linesOf = (source: number) =>
    rules.filter((rule) => rule.source === source).map(ruleLine).join("\n");
  const nameOf = (source: number) => source < LISTS ? `list${source}` : `service:s${source}`;
  const schedules: Record<string, NonNullable<FakePolicy["schedules"]>[string]> = {};
  const hour = (n: number) => `${String(n).padStart(2, "0")}:00`;
  const shown = (source: string, { hours }: Entry) => {
    if (hours === null) return source;
    const name = `${hours.from}-${hours.to}`;
    const window = { days: [...DAYS], start: hour(hours.from), end: hour(hours.to) };
    schedules[name] = { time_zone: "UTC", windows: [window] };
    return `${source}@${name}`;
  };
  const made = groups.map((entries) => ({
    lists: entries.filter(({ source }) => source < LISTS)
      .map((entry) => shown(`list${entry.source}`, entry)),
    services: entries.filter(({ source }) => source >= LISTS)
      .map((entry) => shown(`s${entry.source}`, entry)),
  }));
  return {
    lists: Object.fromEntries(
      Array.from({ length: CUSTOM }, (_, source) => [nameOf(source), linesOf(source)]),
    ),
    rules: rules.filter(({ source }) => source === CUSTOM).map(ruleLine),
    schedules,
    groups: Object.fromEntries(made.map((group, i) => [i === 0 ? "default" : `g${i}`, group])),
    clients: Object.fromEntries(
      made.map((_, i) => [`c${i}`, { ids: [`c${i}`], group: i === 0 ? "default" : `g${i}` }]),
    ),
  };
}

Deno.test("Snapshot counts what is of sources that are active, in whatever rank", none, () => {
  const prng = new Prng(seedFromEnv());
  const decision = new Decision();
  const met = { none: 0, block: 0, allow: 0, answer: 0, turnedOff: 0 };
  const serviceSources = new Set(Array.from({ length: SERVICES }, (_, i) => LISTS + i));
  for (let round = 0; round < ROUNDS; round++) {
    const rules = Array.from({ length: 20 + prng.int(80) }, () => randomRule(prng));
    const groups = Array.from({ length: GROUPS }, () => randomEntries(prng));
    const snapshot = new Snapshot(policyData(policyOf(rules, groups), SEED), MIDNIGHT_MS);
    for (let i = 0; i < HOURS; i++) {
      const hour = prng.int(24);
      snapshot.evaluate(MIDNIGHT_MS + hour * HOUR_MS);
      for (const [number, entries] of groups.entries()) {
        const active = entries.filter((entry) => isActive(entry, hour)).map(({ source }) => source);
        const lists = new Set([...active.filter((source) => source < LISTS), CUSTOM]);
        const services = new Set(active.filter((source) => source >= LISTS));
        const inForce = rulesInForce(rules, new Set([...lists, ...services]), serviceSources);
        const group = snapshot.groupOf(
          snapshot.clientWithId(new TextEncoder().encode(`c${number}`), 0, 2),
        );
        for (const name of NAMES) {
          const where = `${name}, group ${number}, ${hour}:00, seed ${prng.seed}, round ${round}`;
          const want = referenceDecision(inForce, lists, services, name);
          const { packet, hashed } = question(name, SEED);
          const ruling = RULINGS[snapshot.decide(packet, hashed, group, decision)];
          assert.equal(ruling, want.ruling, where);
          met[ruling]++;
          if (ruling === "none") continue;
          const { rule } = snapshot.decidedBy(decision.rule);
          assert.ok(want.deciding.includes(rule), `${rule}, ${where}`);
          assert.ok(ruling !== "block" || snapshot.mentions(packet, hashed), where);
          const told = explain(snapshot, name, Qtype.A, `c${number}`)!;
          assert.equal(told.rule, rule, where);
          // Whoever is turned off by a list is named with a list that is active.
          for (const { lost } of told.matches) {
            const [, by] = /^a \$badfilter of list(\d) turns it off$/.exec(lost ?? "") ?? [];
            if (by === undefined) continue;
            assert.ok(lists.has(Number(by)), `${lost}, ${where}`);
            met.turnedOff++;
          }
        }
        for (const text of ADDRESSES) {
          const ip = parseIp(text)!;
          const deciding = referenceAddress(inForce, lists, ip);
          const blocking = snapshot.matchAddress(ip, 0, ip.length, group);
          const isBlocked = deciding.length > 0 && !deciding[0].exception;
          const where = `${text}, group ${number}, seed ${prng.seed}, round ${round}`;
          assert.equal(blocking !== NO_RULE, isBlocked, where);
          if (isBlocked) assert.ok(snapshot.mentionsAddress(ip, 0, ip.length), where);
        }
      }
    }
  }
  assert.ok(Object.values(met).every((count) => count > 100), JSON.stringify(met));
});
