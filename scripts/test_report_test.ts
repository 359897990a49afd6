import assert from "node:assert/strict";
import { filesToAskAgain, readReport, type Suite, totals } from "./test_report.ts";

const none = { permissions: "none" } as const;

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="4" failures="2" errors="0" time="0.071">
    <testsuite name="./src/a_test.ts" tests="4" disabled="1" errors="0" failures="2">
        <testcase name="one" classname="./src/a_test.ts" time="0.017" line="1" col="6">
            <failure message="1 test step failed">1 test step failed.</failure>
        </testcase>
        <testcase name="two" classname="./src/a_test.ts" time="0.000" line="2" col="6">
        </testcase>
        <testcase name="three" classname="./src/a_test.ts" time="0.000" line="3" col="11">
            <skipped/>
        </testcase>
        <testcase name="one &gt; &quot;s&quot;" classname="./src/a_test.ts" time="0.000" line="1" col="7">
            <failure message="Uncaught Error: no &lt;x&gt;">Error: no &lt;x&gt;
    at file:///src/a_test.ts:1:101</failure>
        </testcase>
    </testsuite>
    <testsuite name="./src/b_test.ts" tests="0" disabled="0" errors="0" failures="0">
    </testsuite>
</testsuites>`;

function suite(file: string, failed = 0): Suite {
  const failures = Array.from({ length: failed }, (_, i) => ({ test: `t${i}`, message: "no" }));
  return { file, tests: 10, skipped: 1, failures };
}

Deno.test("readReport() reads the counts and failures of each file", none, () => {
  assert.deepEqual(readReport(REPORT), [{
    file: "./src/a_test.ts",
    tests: 4,
    skipped: 1,
    failures: [
      { test: "one", message: "1 test step failed." },
      { test: 'one > "s"', message: "Error: no <x>\n    at file:///src/a_test.ts:1:101" },
    ],
  }, { file: "./src/b_test.ts", tests: 0, skipped: 0, failures: [] }]);
  assert.deepEqual(readReport(""), []);
});

Deno.test("filesToAskAgain() names few that failed or said nothing", none, () => {
  const files = ["a", "b", "c", "d", "e"];
  const reports = new Map([
    ["source", [suite("a"), suite("b", 2)]],
    ["others", [suite("d"), suite("e")]],
    ["built", [suite("a", 1)]],
  ]);
  assert.deepEqual(filesToAskAgain(reports, files), ["b", "c"]);
  assert.deepEqual(filesToAskAgain(reports, [...files, "f", "g"]), [], "too many");
});

Deno.test(
  "totals() counts the second run of a file in place of the first, and tells of both",
  none,
  () => {
    const first: [string, Suite[]] = ["source", [suite("a"), suite("b", 1)]];
    assert.equal(
      totals(new Map([first]), true),
      "failed: b: t0\n    no\n17 passed, 1 failed, 2 skipped",
    );
    assert.equal(
      totals(new Map([first, ["again", [suite("b")]]]), false),
      "passed once more, alone: b: t0\n    no\n18 passed, 0 failed, 2 skipped",
    );
    assert.equal(
      totals(new Map([first, ["again", [suite("b", 1)]]]), true),
      "failed: b: t0\n    no\n17 passed, 1 failed, 2 skipped",
    );
  },
);

Deno.test("totals() counts a file that was run from source and built twice", none, () => {
  const reports = new Map([
    ["built", [suite("a", 1)]],
    ["source", [suite("a", 1)]],
    ["again", [suite("a")]],
  ]);
  assert.match(totals(reports, true), /^17 passed, 1 failed, 2 skipped$/m);
});

Deno.test("totals() counts a file that could be loaded the second time", none, () => {
  const reports = new Map([["source", [suite("a")]], ["again", [suite("b")]]]);
  assert.equal(totals(reports, false), "18 passed, 0 failed, 2 skipped");
});

Deno.test("totals() fails a run that wrote no report", none, () => {
  assert.equal(totals(new Map(), true), "0 passed, 1 failed, 0 skipped");
});
