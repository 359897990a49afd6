/** A query log as a full house has it: a day behind it, some names and clients asked for most. */
import { mkdirSync } from "node:fs";
import { OUTCOME_NAMES } from "../../src/logqueue/mod.ts";
import { openDatabase } from "../../src/querylog/database.ts";
import { Entries } from "../../src/querylog/entries.ts";
import { clientText, kindText } from "../../src/querylog/entry.ts";
import { storedLog } from "../../src/querylog/segments.ts";
import { Statistics } from "../../src/querylog/statistics.ts";
import { Prng } from "../prng.ts";

const DAY_MS = 86_400_000;
const BATCH = 5_000;
const DEFAULT_GROUP = "gr_0000000000000000";
const [BLOCKED, FORWARDED, CACHED] = (["blocked", "forwarded", "cached"] as const)
  .map((name) => OUTCOME_NAMES.indexOf(name));

/** Makes the file of a service that is not running yet. */
export function fillLog(
  directory: string,
  entries: number,
  clients: number,
  addressOf: (client: number) => string,
): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const nowMs = Date.now();
  const db = openDatabase(directory, nowMs);
  try {
    const log = new Entries(storedLog(db), { maxEntries: 2 * entries, retentionMs: 30 * DAY_MS });
    const statistics = new Statistics(db);
    const prng = new Prng(1);
    // The lower the number, the more often.
    const often = (count: number) => Math.floor((prng.int(1_000_000) / 1_000_000) ** 3 * count);
    for (let at = 0; at < entries; at += BATCH) {
      const batch = Array.from({ length: Math.min(BATCH, entries - at) }, (_, i) => {
        const outcome = prng.pick([BLOCKED, FORWARDED, CACHED, CACHED]);
        const client = often(clients);
        const upstream = outcome === FORWARDED ? "192.0.2.53:53" : "";
        return {
          timeMs: nowMs - 0.99 * DAY_MS + Math.floor((at + i) * 0.98 * DAY_MS / entries),
          durationUs: outcome === FORWARDED ? 5_000 + prng.int(40_000) : 20 + prng.int(300),
          outcome,
          name: `host${often(50_000)}.site${prng.int(20)}.example`,
          client: clientText(addressOf(client), "", DEFAULT_GROUP, `Device ${client}`),
          kind: kindText("A", "NOERROR", 0, outcome === CACHED, 0, upstream, ""),
          rule: outcome === BLOCKED ? "rules\t||example^" : "",
          answers: "192.0.2.5",
        };
      });
      db.exec("BEGIN");
      log.add(batch);
      for (const entry of batch) statistics.add(entry);
      statistics.save(nowMs);
      db.exec("COMMIT");
    }
  } finally {
    db.close();
  }
}
