import assert from "node:assert/strict";
import type { MetricFamily } from "../telemetry/mod.ts";
import { OtlpExport, type OtlpOptions, type OtlpPorts, Outage, type Signal } from "./mod.ts";

/** The SDK asks for the hour and waits on timers of its own, and those are not our leaks. */
const options = { permissions: { read: true }, sanitizeOps: false, sanitizeResources: false };

const FAMILIES: readonly MetricFamily[] = [
  { name: "svc_a_total", type: "counter", help: "A.", samples: [{ labels: {}, value: 1 }] },
];

interface Sent {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** A collector whose answers are a script, on a clock of its own. */
class FakeCollector {
  readonly sent: Sent[] = [];
  readonly events: string[] = [];
  /** Pauses between tries, in milliseconds. */
  readonly pauses: number[] = [];
  answer: (sent: Sent) => Promise<number> = () => Promise.resolve(200);
  readonly outage = new Outage({
    begins: (signal, reason) => void this.events.push(`begins: ${signal}: ${reason}`),
    ends: (failures) => void this.events.push(`ends after ${failures}`),
  });

  readonly ports: OtlpPorts = {
    post: (url, { headers, body, signal }) => {
      const sent = { path: url.pathname, bytes: body, headers };
      this.sent.push(sent);
      const { promise, reject } = Promise.withResolvers<number>();
      signal.addEventListener("abort", () => reject(new Error("cut off")));
      return Promise.race([this.answer(sent), promise]);
    },
    nowMs: () => 1_767_225_600_000,
    deadline: (_, signal) => signal,
    pause: (ms, signal) => {
      this.pauses.push(ms);
      // The grace of a stop ends with it, or when this collector is told to.
      if (ms !== GRACE_MS) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => resolve());
      this.endGrace = resolve;
      return promise;
    },
  };
  endGrace: () => void = () => {};

  start(which: readonly Signal[], more: Partial<OtlpOptions> = {}): OtlpExport {
    return new OtlpExport({
      endpoint: "https://otlp.example/base/",
      headers: { authorization: "Bearer s3cret" },
      metrics: which.includes("metrics"),
      logs: which.includes("logs"),
      traces: which.includes("traces"),
      intervalMs: 3_600_000,
      node: "ns1",
      version: "0.7.0",
      startedAtMs: 1_767_225_500_000,
      families: () => FAMILIES,
      outage: this.outage,
      ports: this.ports,
      ...more,
    });
  }

  text(): string {
    return this.sent.map(({ bytes }) => new TextDecoder().decode(bytes)).join("\n");
  }
}

const GRACE_MS = 1_234;

function line(message: string) {
  return { timeMs: 1_767_225_599_000, level: "info", message, fields: { n: 1 } } as const;
}

const span = {
  name: "resolve",
  startMs: 1_767_225_599_000,
  durationMs: 5,
  attributes: {},
  hasFailed: false,
} as const;

Deno.test("OtlpExport sends each signal to its path, with the headers", options, async () => {
  const collector = new FakeCollector();
  const made = collector.start(["metrics", "logs", "traces"]);
  made.log(line("hello collector"));
  made.span(span);
  await made.stop(GRACE_MS);
  assert.deepEqual(collector.sent.map(({ path }) => path).sort(), [
    "/base/v1/logs",
    "/base/v1/metrics",
    "/base/v1/traces",
  ]);
  for (const { headers } of collector.sent) {
    assert.deepEqual(headers, {
      authorization: "Bearer s3cret",
      "content-type": "application/x-protobuf",
    });
  }
  for (const part of ["hello collector", "svc_a_total", "resolve", "ns1"]) {
    assert.ok(collector.text().includes(part), part);
  }
  assert.deepEqual(collector.events, []);
});

Deno.test("OtlpExport sends what is switched on, and nothing else", options, async () => {
  for (const signal of ["metrics", "logs", "traces"] as const) {
    const collector = new FakeCollector();
    const made = collector.start([signal]);
    made.log(line("a line"));
    made.span(span);
    await made.stop(GRACE_MS);
    assert.deepEqual(collector.sent.map(({ path }) => path), [`/base/v1/${signal}`]);
  }
});

Deno.test(
  "OtlpExport tries again where that may help, a bounded number of times",
  options,
  async (t) => {
    const rows: readonly (readonly [string, () => Promise<number>, tries: number])[] = [
      ["503", () => Promise.resolve(503), 4],
      ["429", () => Promise.resolve(429), 4],
      ["no connection", () => Promise.reject(new Error("connection refused")), 4],
      ["400", () => Promise.resolve(400), 1],
      ["401", () => Promise.resolve(401), 1],
      ["302", () => Promise.resolve(302), 1],
    ];
    for (const [name, answer, tries] of rows) {
      await t.step(name, async () => {
        const collector = new FakeCollector();
        collector.answer = answer;
        const made = collector.start(["logs"]);
        made.log(line("a line"));
        await made.stop(GRACE_MS);
        assert.equal(collector.sent.length, tries);
        assert.equal(collector.outage.failures, tries);
        assert.equal(collector.events.length, 1, "said once");
        assert.doesNotMatch(collector.events[0], /s3cret/);
        const pauses = collector.pauses.filter((ms) => ms !== GRACE_MS);
        assert.deepEqual(pauses, [1_000, 2_000, 4_000].slice(0, tries - 1));
      });
    }
  },
);

Deno.test("OtlpExport holds a bounded number of lines while nothing answers", options, async () => {
  const collector = new FakeCollector();
  const first = Promise.withResolvers<number>();
  collector.answer = () => collector.sent.length === 1 ? first.promise : Promise.resolve(200);
  const made = collector.start(["logs"]);
  for (let i = 0; i < 20_000; i++) made.log(line(`line ${i}.`));
  first.resolve(200);
  await made.stop(GRACE_MS);
  const told = collector.text().match(/line \d+\./g)!.length;
  assert.ok(told >= 512 && told <= 2_048 + 512, `${told} lines`);
});

Deno.test("OtlpExport.stop() lets go of what hangs when its grace is over", options, async () => {
  const collector = new FakeCollector();
  collector.answer = () => new Promise(() => {});
  const made = collector.start(["metrics", "logs"]);
  made.log(line("a line"));
  const stopped = made.stop(GRACE_MS);
  while (collector.sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  collector.endGrace();
  await stopped;
  assert.equal(collector.sent.length, 2, "nothing is tried again");
});

Deno.test("Outage is told once, and ends with the last signal that failed", options, () => {
  const events: string[] = [];
  const outage = new Outage({
    begins: (signal, reason) => void events.push(`${signal}: ${reason}`),
    ends: (failures) => void events.push(`ends after ${failures}`),
  });
  outage.succeeded("metrics");
  outage.failed("metrics", "500");
  outage.failed("logs", "500");
  outage.failed("metrics", "gone");
  assert.deepEqual(outage.succeeded("metrics"), ["logs"], "whom to ask whether it works again");
  outage.failed("logs", "500");
  assert.deepEqual(outage.succeeded("logs"), []);
  outage.failed("traces", "401");
  assert.deepEqual(events, ["metrics: 500", "ends after 4", "traces: 401"]);
  assert.equal(outage.failures, 5);
});

Deno.test(
  "OtlpExport finds out that a signal with nothing to send is taken again",
  options,
  async () => {
    const collector = new FakeCollector();
    collector.answer = () => Promise.resolve(500);
    const made = collector.start(["metrics", "logs"], { intervalMs: 20 });
    for (let i = 0; i < 512; i++) made.log(line("a full batch goes at once"));
    while (collector.outage.failures < 3) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(collector.sent.some(({ path }) => path === "/base/v1/logs"));
    collector.answer = () => Promise.resolve(200);
    while (collector.events.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(collector.events[1], /^ends after \d+$/);
    await made.stop(GRACE_MS);
    const probes = collector.sent.filter(({ bytes }) => bytes.length === 0);
    assert.deepEqual([...new Set(probes.map(({ path }) => path))], ["/base/v1/logs"]);
  },
);
