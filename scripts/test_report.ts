/**
 * What the runs of `scripts/test` came to, by the reports (JUnit) that they wrote into a folder.
 *
 *     test_report.ts again FOLDER             names the files to run once more, one a line
 *     test_report.ts totals FOLDER [crashed]  prints each failure, then "N passed, N failed, N skipped"
 *
 * `RUN.xml` is the report of a run. Where `again.xml` tells of a file, that counts in place of what the
 * runs side by side said of it.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Runs that share the machine. */
const SIDE_BY_SIDE: readonly string[] = ["source", "others"];
const AGAIN = "again";
const ROOMS = ["src", "ui", "tests", "scripts"];
/** So few may have met a busy machine. */
const AGAIN_FILES_MAX = 3;
/** Of a failure's message, so much is said once more at the end. */
const MESSAGE_LINES_MAX = 15;

type Failure = { readonly test: string; readonly message: string };

/** What one file's tests came to, steps counted as tests. */
export type Suite = {
  readonly file: string;
  readonly tests: number;
  readonly skipped: number;
  readonly failures: readonly Failure[];
};

const ENTITIES: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  amp: "&",
  quot: '"',
  apos: "'",
};

function unescape(text: string): string {
  return text.replaceAll(
    /&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
      if (hex !== undefined) return String.fromCodePoint(parseInt(hex, 16));
      return ENTITIES[name ?? ""] ?? whole;
    },
  );
}

/** The value of an attribute of `tag`, which is what stands between `<` and `>`. */
function attribute(tag: string, name: string): string {
  return unescape(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? "");
}

/** Reads a report as the runtime writes it. A run that ended before its first test has written none. */
export function readReport(xml: string): Suite[] {
  return [...xml.matchAll(/<testsuite ([^>]*)>(.*?)<\/testsuite>/gs)].map(([, tag, body]) => ({
    file: attribute(` ${tag}`, "name"),
    tests: Number(attribute(` ${tag}`, "tests")),
    skipped: Number(attribute(` ${tag}`, "disabled")),
    failures: [...body.matchAll(/<testcase ([^>]*[^/])>(.*?)<\/testcase>/gs)].flatMap(
      ([, test, inner]) =>
        [...inner.matchAll(/<(?:failure|error)\b[^>]*>(.*?)<\/(?:failure|error)>/gs)].map(
          ([, message]) => ({ test: attribute(` ${test}`, "name"), message: unescape(message) }),
        ),
    ),
  }));
}

export type Reports = ReadonlyMap<string, readonly Suite[]>;

/** By a run's name. */
function readFolder(folder: string): Reports {
  return new Map(
    readdirSync(folder).filter((name) => name.endsWith(".xml")).map((name) => [
      name.slice(0, -".xml".length),
      readReport(readFileSync(join(folder, name), "utf8")),
    ]),
  );
}

/**
 * Of `files`, those of the runs side by side that failed or of which nothing was said (they threw while
 * they were loaded): none where they are too many for a busy machine to be the cause.
 */
export function filesToAskAgain(reports: Reports, files: readonly string[]): string[] {
  const good = new Set(
    SIDE_BY_SIDE.flatMap((run) => reports.get(run) ?? [])
      .filter((suite) => suite.failures.length === 0).map((suite) => suite.file),
  );
  const left = files.filter((file) => !good.has(file));
  return left.length <= AGAIN_FILES_MAX ? left : [];
}

/** The last lines of a run of tests. `crashed`: a run failed, whatever its report says. */
export function totals(reports: Reports, crashed: boolean): string {
  const again = new Map((reports.get(AGAIN) ?? []).map((suite) => [suite.file, suite]));
  const lines: string[] = [];
  const counted: Suite[] = [];
  for (const [run, suites] of reports) {
    if (run === AGAIN) continue;
    for (const first of suites) {
      const second = SIDE_BY_SIDE.includes(run) ? again.get(first.file) : undefined;
      if (second) again.delete(first.file);
      counted.push(second ?? first);
      const outcome = second?.failures.length === 0 ? "passed once more, alone" : "failed";
      for (const { test, message } of first.failures) {
        lines.push(
          `${outcome}: ${first.file}: ${test}`,
          ...message.split("\n").slice(0, MESSAGE_LINES_MAX).map((line) => `    ${line}`),
        );
      }
    }
  }
  counted.push(...again.values());
  const sum = (count: (suite: Suite) => number) =>
    counted.reduce((all, one) => all + count(one), 0);
  const skipped = sum((suite) => suite.skipped);
  const failed = sum((suite) => suite.failures.length);
  const passed = sum((suite) => suite.tests) - failed - skipped;
  const unnamed = crashed && failed === 0 ? 1 : 0;
  lines.push(`${passed} passed, ${failed + unnamed} failed, ${skipped} skipped`);
  return lines.join("\n");
}

if (import.meta.main) {
  const [what, folder, crashed] = Deno.args;
  if (!existsSync(folder)) throw new Error(`${folder}: no such folder of reports`);
  if (what === "again") {
    const files = ROOMS.flatMap((room) =>
      readdirSync(room, { recursive: true, encoding: "utf8" })
        .filter((file) => /_test\.tsx?$/.test(file)).map((file) => `./${room}/${file}`)
    );
    console.log(filesToAskAgain(readFolder(folder), files).join("\n"));
  } else {
    console.log(totals(readFolder(folder), crashed === "crashed"));
  }
}
