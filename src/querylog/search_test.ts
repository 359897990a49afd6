// Goal: a search finds what looking at every entry would find. Method: random entries in a real file,
// random filters, every page to the end, against a naive search of the same entries.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { Entries } from "./entries.ts";
import type { LogEntry, LogFilter, ShownEntry, StoredEntry } from "./entry.ts";
import { fakeEntries, naiveSearch, NOW_MS, whole } from "./fakes.ts";
import { type LogPage, LogSearch, type NameCount, type NamePage } from "./search.ts";
import { storedLog } from "./segments.ts";

const disk = { permissions: { read: true, write: true } } as const;
const OPTIONS = { maxEntries: 1_000_000, retentionMs: 400 * 86_400_000 };

function withEntries(
  entries: readonly StoredEntry[],
  work: (search: LogSearch, isAnonymized: LogSearch) => void,
): void {
  const directory = Deno.makeTempDirSync();
  const db = openDatabase(directory, NOW_MS);
  try {
    db.exec("BEGIN");
    new Entries(storedLog(db), OPTIONS).add(entries);
    db.exec("COMMIT");
    const of = (isAnonymized: boolean) => new LogSearch(storedLog(db), isAnonymized);
    work(of(false), of(true));
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
}

/** Without its number. */
function bare({ id: _, ...entry }: LogEntry): ShownEntry {
  return entry;
}

function everyPage(search: LogSearch, filter: LogFilter, limit: number): ShownEntry[] {
  const found: ShownEntry[] = [];
  let before: number | null = null;
  do {
    const page: LogPage = whole(search.find(filter, limit, before));
    assert.ok(page.entries.length <= limit);
    assert.ok(page.next === null || page.entries.length === limit, "a page is full but the last");
    found.push(...page.entries.map(bare));
    before = page.next;
  } while (before !== null);
  return found;
}

Deno.test("LogSearch finds what looking at every entry would", disk, () => {
  const prng = new Prng(seedFromEnv());
  const entries = fakeEntries(prng, 3_000, NOW_MS);
  const times = entries.map(({ timeMs }) => timeMs);
  const clients = ["192.0.2.1", "192.0.2.10", "2001:DB8:0::1", "192.0.2.99", "phone", "KITCHEN"];
  const names = ["ads", "www1", "a-b.", ".EXAMPLE.", "x", "5.", "zzz", "%", "_", "'", '"', "ads.e"];
  withEntries(entries, (search) => {
    for (let i = 0; i < 150; i++) {
      const filter: LogFilter = {
        ...(prng.chance(0.4) && {
          outcomes: [prng.pick(OUTCOME_NAMES), prng.pick(OUTCOME_NAMES)].slice(prng.int(2)),
        }),
        ...(prng.chance(0.1) && { type: prng.pick(["A", "AAAA", "MX"]) }),
        ...(prng.chance(0.1) && { protocol: prng.pick(["udp", "doh", "doq"] as const) }),
        ...(prng.chance(0.1) && { upstream: prng.pick(UPSTREAMS) }),
        ...(prng.chance(0.1) && { group: prng.pick(["gr_1", "gr_", "*"]) }),
        ...(prng.chance(0.1) && { list: prng.pick(["rules", "li_1", "li_", "%"]) }),
        ...(prng.chance(0.4) && { client: prng.pick(clients) }),
        ...(prng.chance(0.5) && { name: prng.pick(names) }),
        ...(prng.chance(0.3) && { sinceMs: prng.pick(times) + prng.int(3) - 1 }),
        ...(prng.chance(0.3) && { untilMs: prng.pick(times) + prng.int(3) - 1 }),
      };
      const plain = {
        ...filter,
        ...(filter.client !== undefined && { client: plainClient(filter) }),
      };
      const found = everyPage(search, filter, prng.pick([1_000, 100, 7]));
      const want = naiveSearch(entries, plain);
      assert.deepEqual(found, want, JSON.stringify(filter));
      assert.deepEqual(everyName(search, filter, 13), naiveNames(want), JSON.stringify(filter));
    }
  });
});

const UPSTREAMS = ["[2001:db8::5]:53", "tls://dns.example", "tls://dns?example", "*"];

function everyName(search: LogSearch, filter: LogFilter, limit: number): NameCount[] {
  const found: NameCount[] = [];
  let before: number | null = null;
  do {
    const page: NamePage = whole(search.names(filter, limit, before));
    found.push(...page.names);
    before = page.next;
  } while (before !== null);
  return found;
}

/** Each name once, the one that was asked for last first, of entries that are newest first. */
function naiveNames(entries: readonly ShownEntry[]): NameCount[] {
  const byName = Map.groupBy(entries, ({ name }) => name);
  return Array.from(byName, ([name, all]) => ({
    name,
    count: all.length,
    first: all[all.length - 1].time,
    last: all[0].time,
  }));
}

function plainClient({ client = "" }: LogFilter): string {
  return client === "2001:DB8:0::1" ? "2001:db8::1" : client;
}

Deno.test("LogSearch finds nothing by a text with a NUL, and fails of none", disk, () => {
  const entries = fakeEntries(new Prng(1), 50, NOW_MS);
  withEntries(entries, (search) => {
    for (const field of ["name", "client", "group", "list", "upstream", "type"] as const) {
      for (const text of ["\0", "ads\0", "\0ads", "a\0' OR 1"]) {
        const filter = { [field]: text };
        const told = JSON.stringify(filter);
        assert.deepEqual(whole(search.find(filter, 10, null)), { entries: [], next: null }, told);
        assert.deepEqual(whole(search.names(filter, 10, null)), { names: [], next: null }, told);
      }
    }
  });
});

Deno.test("LogSearch takes another index for many entries, and finds the same", disk, () => {
  const prng = new Prng(seedFromEnv());
  const base = fakeEntries(prng, 45_000, NOW_MS - 5 * 86_400_000);
  // Most are blocked, of one client and one name: each alone is no index to follow.
  const entries = base.map((entry, i) =>
    i % 3 === 0 ? entry : { ...entry, ...base[0], timeMs: entry.timeMs }
  );
  const { client, name, outcome } = naiveSearch([base[0]], {})[0];
  const outcomes = [outcome];
  withEntries(entries, (search) => {
    const filters: LogFilter[] = [
      { name },
      { outcomes },
      ...(client === null ? [] : [{ client }, { client, outcomes, name }]),
      { outcomes, name },
      { name: "x" },
    ];
    for (const filter of filters) {
      const want = naiveSearch(entries, filter);
      const page = whole(search.find(filter, 500, null));
      assert.deepEqual(page.entries.map(bare), want.slice(0, 500), JSON.stringify(filter));
      assert.equal(everyPage(search, filter, 1_000).length, want.length);
    }
  });
});

Deno.test("LogSearch takes a whole address for what an anonymised log has of it", disk, () => {
  const entries = fakeEntries(new Prng(1), 50, NOW_MS).map((entry, i) => ({
    ...entry,
    client: `${["192.0.2.0", "198.51.100.0", "2001:db8:0:ff00::"][i % 3]}\t\tgr_1\t`,
  }));
  withEntries(entries, (plain, anonymized) => {
    const count = (search: LogSearch, client: string) =>
      whole(search.find({ client }, 100, null)).entries.length;
    assert.equal(count(anonymized, "192.0.2.77"), 17);
    assert.equal(count(anonymized, "2001:db8:0:ffab:1::5"), 16);
    assert.equal(count(plain, "192.0.2.77"), 0);
    assert.equal(count(plain, "192.0.2.0"), 17);
  });
});
