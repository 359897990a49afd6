import assert from "node:assert/strict";
import { SvcError } from "./errors.ts";
import {
  areLogLinesHanded,
  handLogLines,
  log as jsonLog,
  type LogLine,
  relayLogLine,
} from "./log.ts";

const none = { permissions: "none" } as const;
type Log = typeof jsonLog;
const { stderr } = Deno;
const { writeSync, isTerminal } = stderr;

/** What a log writes in a run, with standard error a terminal or none. */
function written(terminal: boolean, run: () => void, takes = Infinity): string {
  const chunks: Uint8Array[] = [];
  stderr.isTerminal = () => terminal;
  stderr.writeSync = (bytes) => {
    const taken = bytes.slice(0, takes);
    chunks.push(taken);
    return taken.length;
  };
  try {
    run();
  } finally {
    Object.assign(stderr, { writeSync, isTerminal });
  }
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("");
}

/** The module anew: it finds out once whether it writes to a terminal. */
async function terminalLog(): Promise<Log> {
  const { log } = await import("./log.ts?terminal");
  return log;
}

function withoutColours(text: string): string {
  return text.replaceAll(/\p{Cc}\[\d+m/gu, "");
}

/** The JSON lines of a run; each has to be one. */
function lines(run: (log: Log) => void, takes?: number): Record<string, unknown>[] {
  const text = written(false, () => run(jsonLog), takes);
  assert.ok(text.endsWith("\n"));
  return text.slice(0, -1).split("\n").map((line) => JSON.parse(line));
}

Deno.test("log writes one JSON line an event where there is no terminal", none, () => {
  const beforeMs = Date.now();
  const [first, second, third] = lines((log) => {
    log.info("leader changed", { leader: "ns1", term: 3, ids: [1, 2], up: true, none: null });
    log.warn("slow");
    log.error("gone", { big: 12345678901234567890n });
  });
  const { time, ...rest } = first;
  assert.deepEqual(rest, {
    level: "info",
    message: "leader changed",
    leader: "ns1",
    term: 3,
    ids: [1, 2],
    up: true,
    none: null,
  });
  assert.match(`${time}`, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(Math.abs(Date.parse(`${time}`) - beforeMs) < 60_000);
  assert.deepEqual([second.level, second.message], ["warn", "slow"]);
  assert.deepEqual([third.level, third.big], ["error", "12345678901234567890"]);
});

Deno.test("log lets no foreign text forge a line", none, async () => {
  const foreign = 'x\n{"level":"error"}\r\u001b[2J\u0085\t';
  const [entry, ...others] = lines((log) => log.info("list refreshed", { name: foreign }));
  assert.equal(others.length, 0);
  assert.equal(entry.name, foreign);
  const log = await terminalLog();
  const text = written(true, () => {
    log.info("list refreshed", { name: foreign });
    log.error("failed", { error: new SvcError("invalid", `bad ${foreign}`) });
  });
  assert.doesNotMatch(withoutColours(text).replaceAll("\n", ""), /\p{Cc}/u);
  const [first, second, third, fourth] = text.split("\n");
  assert.match(first, /list refreshed name="x\\\\u000a/);
  assert.match(second, /failed$/);
  assert.equal(third, "  bad x");
  assert.match(
    fourth,
    /^ {2}\{"level":"error"\}\\u000d\\u001b\[2J/,
    "indented: no line of its own",
  );
});

Deno.test("log writes an expected error as its message and another with its stack", none, () => {
  const [expected, unexpected, caused] = lines((log) => {
    log.warn("a", { error: new SvcError("not_found", "lists: no list") });
    log.warn("b", { error: new TypeError("oh") });
    log.warn("c", { error: new SvcError("internal", "store", { cause: new Error("full") }) });
  });
  assert.equal(expected.error, "lists: no list");
  assert.match(`${unexpected.error}`, /^TypeError: oh\n\s+at /);
  assert.equal(caused.error, "store (full)");
});

Deno.test("log cuts long texts and writes every byte of a line", none, () => {
  const [entry] = lines((log) => log.info("long", { text: "é".repeat(5_000) }), 7);
  assert.equal(entry.text, "é".repeat(2_000) + "…");
});

Deno.test("log is readable on a terminal", none, async () => {
  const log = await terminalLog();
  const text = written(
    true,
    () => log.warn("slow query", { name: "a.example", text: "two words" }),
  );
  const plain = withoutColours(text);
  assert.match(plain, /^\d\d:\d\d:\d\d warn {2}slow query name=a\.example text="two words"\n$/);
});

Deno.test("log goes on when standard error is closed", none, () => {
  stderr.writeSync = () => {
    throw new Error("broken pipe");
  };
  try {
    jsonLog.info("nobody reads this");
  } finally {
    Object.assign(stderr, { writeSync, isTerminal });
  }
});

Deno.test(
  "handLogLines() hands each line on as plain values, until it is told to end",
  none,
  () => {
    const told: LogLine[] = [];
    handLogLines((line) => told.push(line));
    try {
      const circle: Record<string, unknown> = {};
      circle.self = circle;
      lines((log) => {
        log.info("first", { n: 3, up: true, who: "ns1", ids: [1, 2], gone: undefined, circle });
        log.error("second", {
          error: new SvcError("invalid", "bad key"),
          big: 12345678901234567890n,
        });
      });
    } finally {
      handLogLines(null);
    }
    lines((log) => log.info("third"));
    assert.deepEqual(told.map(({ level, message }) => [level, message]), [
      ["info", "first"],
      ["error", "second"],
    ]);
    assert.deepEqual(told[0].fields, {
      n: 3,
      up: true,
      who: "ns1",
      ids: "[1,2]",
      circle: '"[object Object]"',
    });
    assert.deepEqual(told[1].fields, { error: "bad key", big: "12345678901234567890" });
    assert.ok(Math.abs(told[0].timeMs - Date.now()) < 60_000);
  },
);

Deno.test("relayLogLine() hands a line on that is written already", none, () => {
  const line: LogLine = { timeMs: 1, level: "warn", message: "elsewhere", fields: { n: 3 } };
  const told: LogLine[] = [];
  assert.equal(areLogLinesHanded(), false);
  handLogLines((one) => told.push(one));
  try {
    assert.equal(areLogLinesHanded(), true);
    assert.equal(written(false, () => relayLogLine(line)), "");
  } finally {
    handLogLines(null);
  }
  relayLogLine(line);
  assert.deepEqual(told, [line]);
});
