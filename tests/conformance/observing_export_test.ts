// Goal: "Metrics", "Telemetry export" and the token rule of `/metrics` hold for a scraper and a
// collector. Method: a running service, its text read by a parser of others, and a collector of OTLP.

import assert from "node:assert/strict";
import { newToken, tokenSha256 } from "../../src/auth/mod.ts";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "../e2e/api.ts";
import { ask, askTcp } from "../e2e/clients.ts";
import { Collector } from "../e2e/collector.ts";
import { FakeUpstream } from "../e2e/fake_upstream.ts";
import { hasProgram, PERMISSIONS, Service, until } from "../e2e/harness.ts";
import { exposition, scrape, valueOf } from "../e2e/scrape.ts";
import { OUTCOMES } from "./shapes.ts";

const OPTIONS = { permissions: PERMISSIONS, ignore: !hasProgram("curl") } as const;
const PROTOCOLS = ["udp", "tcp", "dot", "doh", "doq"];
/** The chapter's families: their types, and what tells their samples apart. */
const FAMILIES: Readonly<Record<string, readonly [type: string, ...labels: string[]]>> = {
  svc_queries_total: ["COUNTER", "outcome", "protocol"],
  svc_query_duration_seconds: ["HISTOGRAM"],
  svc_rate_limited_total: ["COUNTER", "protocol"],
  svc_access_refused_total: ["COUNTER", "protocol"],
  svc_tls_handshake_failures_total: ["COUNTER"],
  svc_https_rejected_total: ["COUNTER"],
  svc_degraded: ["GAUGE"],
  svc_filter_failures_total: ["COUNTER"],
  svc_recursion_dnssec_total: ["COUNTER", "result"],
  svc_telemetry_export_failures_total: ["COUNTER"],
  svc_cache_hits_total: ["COUNTER"],
  svc_cache_misses_total: ["COUNTER"],
  svc_upstream_healthy: ["GAUGE", "upstream"],
  svc_filter_rules: ["GAUGE"],
  svc_querylog_entries: ["GAUGE"],
  svc_querylog_dropped_total: ["COUNTER"],
};

Deno.test("Metrics, and telemetry export with its defaults", OPTIONS, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using collector = new Collector();
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      filter: { rules: ["||ads.example^"] },
      telemetry: { endpoint: collector.url, interval: "1s" },
      "server.rate_limit": { queries_per_second: 1, burst: 8, exempt: [] },
    },
  });
  const api = await Api.of(service);
  await ask(service.address, "ads.example", Qtype.A);
  await ask(service.address, "www.example", Qtype.A);
  await askTcp(service.address, "www.example", Qtype.A);

  await t.step("every family of the chapter, with its type, labels and help", async () => {
    const families = await scrape(api.base);
    for (const [name, [type, ...labels]] of Object.entries(FAMILIES)) {
      const family = families.get(name);
      assert.ok(family !== undefined, name);
      assert.equal(family.type, type, name);
      assert.match(family.help, /^[A-Z0-9].*\.$/, name);
      for (const sample of type === "HISTOGRAM" ? [] : family.metrics) {
        assert.deepEqual(Object.keys(sample.labels ?? {}).sort(), labels, name);
        assert.ok(Number(sample.value) >= 0, name);
      }
    }
  });
  await t.step("queries by outcome and protocol", async () => {
    const families = await scrape(api.base);
    const { metrics } = families.get("svc_queries_total")!;
    const told = metrics.map(({ labels }) => `${labels?.outcome} ${labels?.protocol}`).sort();
    const want = OUTCOMES.flatMap((outcome) =>
      [...PROTOCOLS, "odoh"].map((protocol) => `${outcome} ${protocol}`)
    );
    assert.deepEqual(told, want.sort());
    const nonZero = metrics.filter(({ value }) => value !== "0")
      .map(({ labels, value }) => `${labels?.outcome} ${labels?.protocol} ${value}`);
    assert.deepEqual(nonZero.sort(), ["blocked udp 1", "cached tcp 1", "forwarded udp 1"]);
    assert.equal(valueOf(families, "svc_querylog_entries"), 3);
    assert.equal(valueOf(families, "svc_filter_rules"), 1);
    assert.equal(valueOf(families, "svc_degraded"), 0);
  });
  await t.step("a latency histogram whose sum is in seconds", async () => {
    const text = await exposition(api.base);
    assert.match(text, /^# TYPE svc_query_duration_seconds histogram$/m);
    const of = (part: string) => {
      const rows = text.matchAll(
        new RegExp(`^svc_query_duration_seconds_${part}(?:\\{.*\\})? (\\S+)$`, "gm"),
      );
      return Array.from(rows, ([, value]) => Number(value)).reduce((sum, value) => sum + value, 0);
    };
    assert.equal(of("count"), 3);
    // In milliseconds it would not be below what three queries of loopback take.
    const { entries } = await api.call("GET", "querylog");
    const tookUs = entries.reduce(
      (sum: number, entry: { duration_us: number }) => sum + entry.duration_us,
      0,
    );
    assert.ok(of("sum") > 0 && Math.abs(of("sum") - tookUs / 1e6) < 0.01, `${of("sum")} s`);
  });
  await t.step("svc_rate_limited_total{protocol}", async () => {
    for (const protocol of PROTOCOLS) {
      assert.equal(valueOf(await scrape(api.base), "svc_rate_limited_total", { protocol }), 0);
    }
    const over = async () =>
      valueOf(await scrape(api.base), "svc_rate_limited_total", { protocol: "tcp" });
    await until("a query over the limit", async () => {
      for (let i = 0; i < 16; i++) await askTcp(service.address, "ads.example", Qtype.A);
      return await over() > 0;
    });
  });
  await t.step("with an endpoint, metrics and logs of INFO and above are sent", async () => {
    await until("metrics", () => collector.metrics.length > 1);
    await collector.logged("answering");
    const names = new Set(collector.metrics.at(-1)!.map(({ name }) => name));
    for (const name of Object.keys(FAMILIES)) assert.ok(names.has(name), name);
    const severities = new Set(collector.logs.map(({ severity }) => severity));
    for (const severity of severities) assert.match(severity, /^(INFO|WARN|ERROR)$/);
  });
  await t.step("traces are off by default", () => {
    assert.deepEqual(collector.spans, []);
    assert.ok(collector.paths.every((path) => !path.endsWith("/v1/traces")));
  });
  await t.step("an outage never touches the DNS path, is counted, and logged once", async () => {
    collector.mood = 503;
    const failures = async () =>
      valueOf(await scrape(api.base), "svc_telemetry_export_failures_total");
    await until("failures", async () => await failures() >= 2);
    // By now there is room again for a query of this client.
    await until("an answer", async () => {
      return (await ask(service.address, "www.example", Qtype.A)).answers.length === 1;
    });
    assert.equal(service.count("telemetry can't be sent; this is said once"), 1);
    assert.deepEqual(await api.call("GET", "health"), { status: "ok" });
  });
  service.assertCalm();
});

Deno.test("Metrics need the token once one is configured", OPTIONS, async (t) => {
  const token = newToken();
  await using collector = new Collector();
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      api: { token_sha256: tokenSha256(token) },
      telemetry: { endpoint: collector.url, interval: "1s", traces: true, trace_sample_ratio: 1 },
    },
  });
  const { base } = await Api.of(service);
  const statusOf = async (path: string, authorization?: string) => {
    const headers: HeadersInit = authorization === undefined ? {} : { authorization };
    const response = await fetch(base.replace("/api/v1", path), { headers });
    const text = await response.text();
    return [response.status, response.ok ? null : JSON.parse(text).error.code];
  };
  await t.step("401 without it and with another", async () => {
    assert.deepEqual(await statusOf("/metrics"), [401, "unauthorized"]);
    assert.deepEqual(await statusOf("/metrics", `Bearer ${newToken()}`), [401, "unauthorized"]);
    const logs = ["querylog", "stats", "status", "leak-tests", "audit"];
    for (const path of logs) {
      assert.deepEqual(await statusOf(`/api/v1/${path}`), [401, "unauthorized"], path);
    }
  });
  await t.step("200 with it", async () => {
    assert.deepEqual(await statusOf("/metrics", `Bearer ${token}`), [200, null]);
    const families = await scrape(base, "-H", `Authorization: Bearer ${token}`);
    assert.equal(valueOf(families, "svc_degraded"), 0);
  });
  await t.step("GET /api/v1/health never needs it", async () => {
    assert.deepEqual(await statusOf("/api/v1/health"), [200, null]);
  });
  await t.step("traces hold no names without query_details", async () => {
    await ask(service.address, "private.example", Qtype.A);
    await until("a trace", () => collector.spans.length > 0);
    assert.doesNotMatch(JSON.stringify(collector.spans), /private/);
    assert.equal(collector.spans[0].attributes["svc.outcome"], "forwarded");
  });
  assert.ok(!service.transcript().includes(token));
  service.assertCalm();
});
