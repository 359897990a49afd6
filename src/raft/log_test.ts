import assert from "node:assert/strict";
import { NO_MEMBERS } from "./configuration.ts";
import { entriesOf } from "./fakes.ts";
import { Log } from "./log.ts";
import type { Entry } from "./messages.ts";

const BASE = { index: 1, term: 1, configuration: { ...NO_MEMBERS, voters: ["a"] } };

function terms(log: Log): string {
  return log.slice(log.base.index + 1, log.lastIndex).map(({ term }) => term).join(" ");
}

Deno.test(
  "Log shares its entries, and no log changes under another",
  { permissions: "none" },
  () => {
    const short = Log.of(BASE, entriesOf([1, 1]));
    const one = short.append(entriesOf([2, 2], 4));
    const other = short.append(entriesOf([3], 4));
    const cut = one.truncate(5);
    const again = cut.append(entriesOf([4, 4], 5));
    assert.deepEqual([short, one, other, cut, again].map(terms), [
      "1 1",
      "1 1 2 2",
      "1 1 3",
      "1 1 2",
      "1 1 2 4 4",
    ]);
    const compacted = again.compact(again.snapshotAt(4) ?? BASE);
    const longer = compacted.append(entriesOf([5], 7));
    assert.deepEqual([compacted, longer, again].map(terms), ["4 4", "4 4 5", "1 1 2 4 4"]);
    assert.deepEqual([longer.termAt(3), longer.termAt(4), longer.termAt(8)], [-1, 2, -1]);
  },
);

Deno.test("Log knows who belongs to the cluster at each place", { permissions: "none" }, () => {
  const configuration = { ...NO_MEMBERS, voters: ["a", "b", "c"] };
  const change: Entry = { index: 3, term: 1, type: "configuration", configuration };
  const log = Log.of(BASE, entriesOf([1])).append([change, ...entriesOf([1], 4)]);
  assert.deepEqual([log.configurationIndex, log.configuration], [3, configuration]);
  assert.deepEqual(log.configurationAt(2), BASE.configuration);
  assert.deepEqual(log.truncate(3).configuration, BASE.configuration, "a change that is cut off");
  const compacted = log.compact(log.snapshotAt(3) ?? BASE);
  assert.deepEqual([compacted.configurationIndex, compacted.configuration], [3, configuration]);
});

Deno.test(
  "Log.slice() keeps to its bounds, and gives one at least",
  { permissions: "none" },
  () => {
    const log = Log.of(BASE, entriesOf([1, 1, 1, 1])); // 35 bytes each
    const lengths = [
      log.slice(2, 5),
      log.slice(2, 5, 70),
      log.slice(2, 5, 69),
      log.slice(2, 5, 1),
      log.slice(3, 99, Infinity, 2),
      log.slice(6, 9),
      log.slice(0, 2),
    ].map(({ length }) => length);
    assert.deepEqual(lengths, [4, 2, 1, 1, 2, 0, 1]);
  },
);

// Last term and index of another log, whether it is up to date, and whether this one is behind it.
const ENDS = [
  [3, 4, true, false],
  [3, 5, true, true],
  [3, 3, false, false],
  [2, 9, false, false],
  [4, 1, true, true],
  [0, 0, false, false],
] as const;

Deno.test(
  "Log.isUpToDate() holds the last terms, then the lengths",
  { permissions: "none" },
  () => {
    const log = Log.of(BASE, entriesOf([1, 2, 3]));
    for (const [lastLogTerm, lastLogIndex, isUpToDate, isBehind] of ENDS) {
      const end = { lastLogIndex, lastLogTerm };
      assert.equal(log.isUpToDate(end), isUpToDate, `${lastLogTerm}/${lastLogIndex}`);
      assert.equal(log.isBehind(end), isBehind, `${lastLogTerm}/${lastLogIndex}`);
    }
  },
);

Deno.test("Log.lastCandidate() goes back by whole terms", { permissions: "none" }, () => {
  const log = Log.of(BASE, entriesOf([1, 1, 2, 2, 5, 5]));
  for (
    const [index, term, want] of [[7, 5, 7], [7, 4, 5], [9, 3, 5], [4, 9, 4], [7, 1, 3], [7, 0, 1]]
  ) assert.equal(log.lastCandidate(index, term), want, `${index} ${term}`);
});

Deno.test("Log.append() takes only what follows", { permissions: "none" }, () => {
  const log = Log.of(BASE, entriesOf([2, 2]));
  for (const entries of [entriesOf([2], 3), entriesOf([2], 5), entriesOf([1], 4)]) {
    assert.throws(() => log.append(entries), { name: "InvariantError" });
  }
  assert.throws(() => log.truncate(1), { name: "InvariantError" });
});
