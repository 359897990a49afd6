// Goal: a search finds what looking at every entry would find. Method: random entries in a real file,
// random filters, every page to the end, against a naive search of the same entries.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { OUTCOME_NAMES } from "../logqueue/mod.ts";
import { openDatabase } from "./database.ts";
import { Entries } from "./entries.ts";
import type { LogEntry, LogFilter, StoredEntry } from "./entry.ts";
import { fakeEntries, naiveSearch, NOW_MS } from "./fakes.ts";
import { LogSearch } from "./search.ts";

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
    new Entries(db, OPTIONS).add(entries);
    db.exec("COMMIT");
    work(new LogSearch(db, false), new LogSearch(db, true));
  } finally {
    db.close();
    Deno.removeSync(directory, { recursive: true });
  }
}

function everyPage(search: LogSearch, filter: LogFilter, limit: number): LogEntry[] {
  const found: LogEntry[] = [];
  let before: number | null = null;
  do {
    const page = search.find(filter, limit, before);
    assert.ok(page.entries.length <= limit);
    assert.ok(page.next === null || page.entries.length === limit, "a page is full but the last");
    found.push(...page.entries);
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
        ...(prng.chance(0.4) && { outcome: prng.pick(OUTCOME_NAMES) }),
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
      assert.deepEqual(found, naiveSearch(entries, plain), JSON.stringify(filter));
    }
  });
});

function plainClient({ client = "" }: LogFilter): string {
  return client === "2001:DB8:0::1" ? "2001:db8::1" : client;
}

Deno.test("LogSearch takes another index for many entries, and finds the same", disk, () => {
  const prng = new Prng(seedFromEnv());
  const base = fakeEntries(prng, 45_000, NOW_MS - 5 * 86_400_000);
  // Most are blocked, of one client and one name: each alone is no index to follow.
  const entries = base.map((entry, i) =>
    i % 3 === 0 ? entry : { ...entry, ...base[0], timeMs: entry.timeMs }
  );
  const { client, name, outcome } = naiveSearch([base[0]], {})[0];
  withEntries(entries, (search) => {
    const filters: LogFilter[] = [
      { name },
      { outcome },
      ...(client === null ? [] : [{ client }, { client, outcome, name }]),
      { outcome, name },
      { name: "x" },
    ];
    for (const filter of filters) {
      const want = naiveSearch(entries, filter);
      const page = search.find(filter, 500, null);
      assert.deepEqual(page.entries, want.slice(0, 500), JSON.stringify(filter));
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
      search.find({ client }, 100, null).entries.length;
    assert.equal(count(anonymized, "192.0.2.77"), 17);
    assert.equal(count(anonymized, "2001:db8:0:ffab:1::5"), 16);
    assert.equal(count(plain, "192.0.2.77"), 0);
    assert.equal(count(plain, "192.0.2.0"), 17);
  });
});
