import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { DICTIONARIES } from "./dictionary.ts";
import {
  Columns,
  IDS_PER_MS,
  type Lists,
  readList,
  SEGMENT_ENTRIES,
  type SegmentEntry,
  SegmentWriter,
} from "./segment.ts";

const NOW_MS = Date.UTC(2026, 0, 2);

Deno.test(
  "SegmentWriter gives what was added, segment after segment",
  { permissions: "none" },
  () => {
    const prng = new Prng(seedFromEnv());
    const writer = new SegmentWriter();
    for (let round = 0; round < 40; round++) {
      const isWide = prng.chance(0.3);
      const all = numbered(prng, 1 + prng.int(SEGMENT_ENTRIES), 1 + prng.int(3_000), isWide);
      for (const { id, durationUs, outcome, numbers } of all) {
        assert.ok(writer.takes(id));
        writer.add(id, durationUs, outcome, numbers);
      }
      const row = writer.take();
      assert.equal(row.width, isWide ? 8 : 4);
      const lists = Object.fromEntries(
        DICTIONARIES.map((name, i) => [name, readList(row, row.lists[i])]),
      ) as Lists;
      const columns = new Columns(row, row.columns, lists);
      for (const name of DICTIONARIES) assert.equal(new Set(lists[name]).size, lists[name].length);
      const read = Array.from({ length: columns.count }, (_, i): SegmentEntry => ({
        id: columns.ids[i],
        durationUs: columns.durations[i],
        outcome: columns.outcomes[i],
        numbers: DICTIONARIES.map((name) => lists[name][columns.places(name)[i]]),
      }));
      assert.deepEqual(read, all);
    }
  },
);

/** Entries in order, with texts of so many numbers; some of more than 32 bits. */
function numbered(prng: Prng, count: number, texts: number, isWide: boolean): SegmentEntry[] {
  let id = NOW_MS * IDS_PER_MS;
  return Array.from({ length: count }, (_, i) => ({
    id: id += 1 + prng.int(5_000),
    durationUs: prng.next(),
    outcome: prng.int(9),
    // Those that differ in their upper bits alone among them.
    numbers: DICTIONARIES.map(() =>
      prng.int(texts) + (isWide && (i === 0 || prng.chance(0.5)) ? 2 ** 40 : 0)
    ),
  }));
}
