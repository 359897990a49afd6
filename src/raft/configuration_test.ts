import assert from "node:assert/strict";
import {
  type Configuration,
  firstStep,
  halvesOf,
  hasQuorum,
  isWellFormed,
  lastStep,
  normalise,
  problemOf,
  quorumIndex,
  voteResult,
} from "./configuration.ts";

/** `abc|ab` are the voters and the outgoing ones, `+d` learners, `!c` witnesses. */
function read(text: string): Configuration {
  const [, voters, outgoing = "", learners = "", witnesses = ""] =
    /^(\w*)(?:\|(\w*))?(?:\+(\w*))?(?:!(\w*))?$/.exec(text) ?? [];
  return {
    voters: [...voters],
    outgoing: [...outgoing],
    learners: [...learners],
    witnesses: [...witnesses],
  };
}

function show({ voters, outgoing, learners, witnesses }: Configuration): string {
  const part = (sign: string, ids: readonly string[]) => ids.length ? sign + ids.join("") : "";
  return voters.join("") + part("|", outgoing) + part("+", learners) + part("!", witnesses);
}

// Voters, the index each holds (in order of the alphabet), and what is committed.
const COMMITS = [
  ["", [], 0],
  ["a", [12], 12],
  ["ab", [12, 5], 5],
  ["abc", [12, 5, 7], 7],
  ["abc", [12, 5, 5], 5],
  ["abcd", [12, 9, 5, 7], 7],
  ["abcde", [12, 9, 5, 7, 1], 7],
  ["abc+de", [12, 5, 5, 12, 12], 5],
  ["abc|a", [5, 12, 12], 5],
  ["abc|abc", [12, 5, 7], 7],
  ["abc|cde", [9, 9, 4, 8, 8], 8],
  ["a|bcd", [100, 2, 3, 4], 3],
  ["abc|def", [9, 9, 9, 1, 1, 9], 1],
] as const;

Deno.test("quorumIndex() is what a majority of each half holds", { permissions: "none" }, () => {
  for (const [text, held, want] of COMMITS) {
    const index = quorumIndex(halvesOf(read(text)), (id) => held["abcdef".indexOf(id)] ?? 0);
    assert.equal(index, want, text);
  }
});

// Voters, votes (y, n, - for none yet; in order of the alphabet), and how it stands.
const VOTES = [
  ["a", "-", "open"],
  ["a", "y", "won"],
  ["a", "n", "lost"],
  ["ab", "y-", "open"],
  ["ab", "yn", "lost"],
  ["ab", "yy", "won"],
  ["abc", "yy-", "won"],
  ["abc", "ny-", "open"],
  ["abc", "nn-", "lost"],
  ["abcd", "yyn-", "open"],
  ["abcd", "yynn", "lost"],
  ["abc+de", "y--yy", "open"],
  ["abc|a", "-yy", "open"],
  ["abc|a", "nyy", "lost"],
  ["abc|a", "yy-", "won"],
  ["abc|cde", "yy--y", "open"],
  ["abc|cde", "yynyy", "won"],
  ["abc|cde", "yynny", "lost"],
] as const;

Deno.test("voteResult() counts each half and no learner", { permissions: "none" }, () => {
  for (const [text, cast, want] of VOTES) {
    const votes = new Map<string, boolean>();
    for (const [i, vote] of [...cast].entries()) {
      if (vote !== "-") votes.set("abcdef"[i], vote === "y");
    }
    assert.equal(voteResult(halvesOf(read(text)), votes), want, `${text} ${cast}`);
  }
  assert.ok(!hasQuorum(halvesOf(read("")), () => true), "nobody is no majority");
});

// Before, after, the first entry of the change; the second one is what is after.
const STEPS = [
  ["a+bc", "abc", "abc|a"],
  ["a+bw!w", "abw!w", "abw|a!w"],
  ["abc", "a+b", "a|abc+b"],
  ["abw!w", "b+w!w", "b|abw+w!w"],
  ["abw!w", "a", "a|abw!w"],
  ["abc", "abc+d", "abc+d"],
  ["abc+d", "abc", "abc"],
  ["abc+d", "abd", "abd|abc"],
] as const;

Deno.test("firstStep() lets old and new voters decide together", { permissions: "none" }, () => {
  for (const [before, after, want] of STEPS) {
    const joint = firstStep(read(before), read(after));
    assert.equal(show(joint), want, `${before} to ${after}`);
    assert.equal(show(lastStep(joint)), after, `${before} to ${after}, complete`);
    assert.ok(isWellFormed(joint));
  }
});

Deno.test("any two decisions on the way of a change share a voter", { permissions: "none" }, () => {
  const subsets = Array.from(
    { length: 32 },
    (_, bits) => [..."abcde"].filter((_, i) => bits >> i & 1),
  );
  const decides = (text: Configuration, set: string[]) =>
    hasQuorum(halvesOf(text), (id) => set.includes(id));
  for (const [before, after] of STEPS) {
    const joint = firstStep(read(before), read(after));
    // Of neighbours in time; the old and the new alone never decide in one term.
    for (const [one, other] of [[read(before), joint], [joint, joint], [joint, read(after)]]) {
      for (const a of subsets) {
        if (!decides(one, a)) continue;
        for (const b of subsets) {
          if (decides(other, b)) assert.ok(a.some((id) => b.includes(id)), `${before}: ${a} ${b}`);
        }
      }
    }
  }
});

const PROBLEMS = [
  ["a", null],
  ["abc", null],
  ["a+bc!c", null],
  ["abw!w", null],
  ["abcd", null],
  ["", "no voter could lead"],
  ["w!w", "no voter could lead"],
  ["ab", "two voters"],
  ["aw!w", "two voters"],
  ["abc+c", "a voter is also a learner"],
] as const;

Deno.test("problemOf() allows no cluster of two voters", { permissions: "none" }, () => {
  for (const [text, want] of PROBLEMS) assert.equal(problemOf(read(text)), want, text);
  const many = Array.from({ length: 34 }, (_, i) => `m${String(i).padStart(2, "0")}`);
  const crowd = normalise({ voters: many, learners: [], witnesses: [] });
  assert.equal(problemOf(crowd), "more than 33 members");
  const endless = normalise({ voters: ["x".repeat(129)], learners: [], witnesses: [] });
  assert.equal(problemOf(endless), "a malformed ID");
  for (const text of ["ba", "aa", "a!b"]) assert.ok(!isWellFormed(read(text)), text);
});
