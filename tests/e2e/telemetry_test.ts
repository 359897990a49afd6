// Goal: what metrics, logs and traces say is what happened, and whatever becomes of those who are
// told touches no query. Method: queries by hand, a scrape read by a parser of its own, and a
// collector that takes everything apart, refuses, hangs or is away.

import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority } from "./certificates.ts";
import { ask, askTcp } from "./clients.ts";
import { Collector } from "./collector.ts";
import { address, answer, FakeUpstream } from "./fake_upstream.ts";
import { type ConfigText, freePort, OwnDirectory, PERMISSIONS, Service, until } from "./harness.ts";
import { exposition, scrape, valueOf } from "./scrape.ts";

const permissions = PERMISSIONS;
const NODE_WAIT_MS = 30_000;

/** Families that dashboards and alerts are made of: none may go. */
const STABLE = [
  "svc_queries_total",
  "svc_query_duration_seconds",
  "svc_rate_limited_total",
  "svc_access_refused_total",
  "svc_tls_handshake_failures_total",
  "svc_https_rejected_total",
  "svc_degraded",
  "svc_filter_failures_total",
  "svc_recursion_dnssec_total",
  "svc_telemetry_export_failures_total",
  "svc_cache_entries",
  "svc_cache_bytes",
  "svc_cache_hits_total",
  "svc_cache_misses_total",
  "svc_cache_evictions_total",
  "svc_upstream_healthy",
  "svc_upstream_latency_seconds",
  "svc_upstream_queries_total",
  "svc_upstream_failures_total",
  "svc_filter_rules",
  "svc_filter_generation",
  "svc_filter_memory_bytes",
  "svc_filter_build_duration_seconds",
  "svc_querylog_entries",
  "svc_querylog_written_total",
  "svc_querylog_dropped_total",
  "svc_build_info",
  "svc_uptime_seconds",
  "process_resident_memory_bytes",
];

Deno.test("GET /metrics counts each query by outcome, protocol and time", {
  permissions,
}, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const api = await Api.of(service);
  await api.create("rules", { rule: "||ads.example^" });
  const before = await scrape(api.base);
  for (const name of STABLE) assert.ok(before.has(name), name);
  const counted = before.get("svc_queries_total")!.metrics;
  assert.equal(counted.length, 54, "each outcome and protocol has its sample from the start");
  assert.ok(counted.every(({ value }) => value === "0"));

  const server = service.address;
  for (const name of ["ads.example", "x.ads.example"]) await ask(server, name, Qtype.A);
  for (let i = 0; i < 3; i++) await ask(server, "www.example", Qtype.A);
  await askTcp(server, "www.example", Qtype.A);
  await ask(server, "health.svc.test", Qtype.A);

  const families = await scrape(api.base);
  const queries = (outcome: string, protocol: string) =>
    valueOf(families, "svc_queries_total", { outcome, protocol });
  assert.deepEqual(
    [queries("blocked", "udp"), queries("forwarded", "udp"), queries("cached", "udp")],
    [2, 1, 2],
  );
  assert.deepEqual([queries("cached", "tcp"), queries("local", "udp")], [1, 1]);
  const all = families.get("svc_queries_total")!.metrics
    .reduce((sum, { value }) => sum + Number(value), 0);
  assert.equal(all, 7);
  assert.equal(valueOf(families, "svc_cache_hits_total"), 3);
  assert.equal(valueOf(families, "svc_cache_misses_total"), 1);

  const histogram = families.get("svc_query_duration_seconds")!;
  assert.equal(histogram.type, "HISTOGRAM");
  // The parser knows no histograms with labels, so these lines are read by hand.
  const text = await exposition(api.base);
  const rows = [...text.matchAll(
    /^svc_query_duration_seconds_(bucket|sum|count)\{protocol="udp"(?:,le="([^"]+)")?\} (\S+)$/gm,
  )].map(([, part, le, value]) => ({ part, le, value: Number(value) }));
  const buckets = rows.filter(({ part }) => part === "bucket");
  const counts = buckets.map(({ value }) => value);
  assert.deepEqual(counts.toSorted((a, b) => a - b), counts, "each bucket holds those before");
  const bounds = buckets.map(({ le }) => Number(le.replace("+Inf", "Infinity")));
  assert.deepEqual(bounds.toSorted((a, b) => a - b), bounds);
  assert.deepEqual([bounds.at(-1), counts.at(-1)], [Infinity, 6]);
  assert.equal(rows.find(({ part }) => part === "count")!.value, 6);
  const sum = rows.find(({ part }) => part === "sum")!.value;
  assert.ok(sum > 0 && sum < NODE_WAIT_MS / 1_000, String(sum));

  // Health and latency come with the isolates' next report.
  await until("the upstream's counters", async () => {
    const now = await scrape(api.base);
    return valueOf(now, "svc_upstream_queries_total", { upstream: upstream.text }) >= 1 &&
      valueOf(now, "svc_upstream_latency_seconds", { upstream: upstream.text }) > 0 &&
      valueOf(now, "svc_cache_entries") === 1;
  });
  assert.equal(service.count("sending telemetry"), 0, "nobody was named to send it to");
  assert.equal(valueOf(await scrape(api.base), "svc_telemetry_export_failures_total"), 0);
  service.assertCalm();
});

const SECRET = "Bearer s3cret-of-the-collector";

function exporting(
  collector: Pick<Collector, "url">,
  more: Readonly<Record<string, string | number | boolean>> = {},
  upstreams: readonly string[] = [],
): ConfigText {
  return {
    telemetry: { endpoint: `${collector.url}/base/`, interval: "1s", ...more },
    upstream: upstreams.map((address) => ({ address })),
  };
}

Deno.test("svc run sends metrics, log lines and traces by OTLP", { permissions }, async () => {
  await using upstream = await FakeUpstream.start();
  await using collector = new Collector();
  await using own = await OwnDirectory.make();
  const directory = own.path;
  await Deno.writeTextFile(`${directory}/headers`, `# a token\nAuthorization: ${SECRET}\n`);
  const more = {
    headers_file: "headers",
    traces: true,
    trace_sample_ratio: 1,
    query_details: true,
  };
  {
    await using service = await Service.start({
      directory,
      config: exporting(collector, more, [upstream.text]),
    });
    // Lines of the start, from before the export began, are there too.
    const line = await collector.logged("answering");
    assert.equal(line.severity, "INFO");
    assert.ok(Math.abs(line.timeMs - Date.now()) < NODE_WAIT_MS);
    const began = Date.now();
    await ask(service.address, "www.Example", Qtype.AAAA);
    await ask(service.address, "www.example", Qtype.AAAA);
    await until(
      "the metrics",
      () => collector.value("svc_queries_total", { outcome: "cached", protocol: "udp" }) === 1,
    );
    const latest = collector.metrics.at(-1)!;
    for (const name of STABLE) assert.ok(latest.some((metric) => metric.name === name), name);
    assert.equal(
      collector.value("svc_queries_total", { outcome: "forwarded", protocol: "udp" }),
      1,
    );
    const histogram = latest.find(({ kind }) => kind === "histogram")!;
    const udp = histogram.histograms.find(({ attributes }) => attributes.protocol === "udp")!;
    assert.deepEqual([histogram.name, histogram.unit], ["svc_query_duration_seconds", "s"]);
    assert.equal(udp.count, 2);
    assert.equal(udp.buckets.length, udp.bounds.length + 1);
    assert.equal(udp.buckets.reduce((sum, count) => sum + count, 0), 2);

    await until("a trace", () => collector.spans.length > 0);
    assert.equal(collector.spans.length, 1, "what is answered at once is no slow path");
    const [span] = collector.spans;
    assert.equal(span.name, "resolve");
    assert.deepEqual(span.attributes, {
      "svc.protocol": "udp",
      "svc.outcome": "forwarded",
      "dns.question.type": "AAAA",
      "dns.response.code": "NOERROR",
      "svc.upstream": upstream.text,
      "dns.question.name": "www.Example",
    });
    assert.ok(span.endMs >= span.startMs && span.endMs - began < NODE_WAIT_MS);
    assert.ok(Math.abs(span.startMs - began) < NODE_WAIT_MS);

    for (const headers of collector.headers) assert.equal(headers.get("authorization"), SECRET);
    for (const resource of collector.resources) {
      assert.equal(resource["service.name"], "svc");
      assert.match(String(resource["service.version"]), /^\d+\.\d+\.\d+$/);
      assert.equal(typeof resource["service.instance.id"], "string");
    }
    assert.deepEqual([...new Set(collector.paths)].sort(), [
      "/base/v1/logs",
      "/base/v1/metrics",
      "/base/v1/traces",
    ]);
    const { code } = await service.stop();
    assert.equal(code, 0);
    assert.doesNotMatch(service.transcript(), /s3cret/);
    service.assertCalm();
    assert.ok(collector.logs.some(({ body }) => body === "stopping"), "flushed at the end");
  }
});

Deno.test("traces leave names out unless they are asked for", { permissions }, async () => {
  await using upstream = await FakeUpstream.start();
  await using collector = new Collector();
  await using service = await Service.start({
    config: exporting(collector, { traces: true, trace_sample_ratio: 1 }, [upstream.text]),
  });
  upstream.script = () => null;
  const waits = ask(service.address, "private.example", Qtype.A);
  await waits;
  await until("a trace", () => collector.spans.length > 0);
  const [span] = collector.spans;
  assert.deepEqual(Object.keys(span.attributes).sort(), [
    "dns.question.type",
    "dns.response.code",
    "svc.outcome",
    "svc.protocol",
  ]);
  assert.equal(span.attributes["svc.outcome"], "failed");
  assert.ok(span.hasFailed && span.endMs - span.startMs > 100);
  // Log lines of the dns isolates come as well.
  await collector.logged("upstream does not answer");
});

Deno.test("log lines of the query log's isolate are sent as well", { permissions }, async () => {
  await using collector = new Collector();
  const directory = await Deno.makeTempDir({ prefix: "svc-e2e-" });
  await Deno.mkdir(`${directory}/store/querylog`, { recursive: true });
  await Deno.writeTextFile(`${directory}/store/querylog/querylog.db`, "damaged ".repeat(1_000));
  {
    await using _service = await Service.start({ directory, config: exporting(collector) });
    const message = "the query log's file can't be used: it is set aside, and a new one begun";
    assert.equal((await collector.logged(message)).severity, "ERROR");
  }
  await Deno.remove(directory, { recursive: true });
});

Deno.test("an outage of the endpoint is counted and logged once, and touches no query", {
  permissions,
}, async (t) => {
  for (const mood of [500, 401, "hang"] as const) {
    await t.step(String(mood), async () => {
      await using upstream = await FakeUpstream.start(address);
      await using collector = new Collector();
      collector.mood = mood;
      await using service = await Service.start({
        config: exporting(collector, {}, [upstream.text]),
      });
      const api = await Api.of(service);
      const failures = async () =>
        valueOf(await scrape(api.base), "svc_telemetry_export_failures_total");
      await until("failures are counted", async () => await failures() >= 3);
      for (let i = 0; i < 20; i++) {
        const { answers } = await ask(service.address, `n${i}.example`, Qtype.A);
        assert.equal(answers.length, 1);
      }
      assert.equal(service.count("telemetry can't be sent; this is said once"), 1);
      assert.equal((await api.call("GET", "health")).status, "ok", "a node without it is well");
      collector.mood = 200;
      await service.logged("telemetry is sent again");
      await until("metrics", () => collector.metrics.length > 0);
      assert.ok(collector.value("svc_telemetry_export_failures_total")! >= 3);
      assert.equal(service.count("telemetry can't be sent; this is said once"), 1);
      assert.equal(service.count("telemetry is sent again"), 1);
      service.assertCalm();
    });
  }
});

Deno.test("an endpoint that is away or hangs keeps no node from its end", {
  permissions,
}, async (t) => {
  await t.step("away", async () => {
    const port = freePort();
    const url = `http://127.0.0.1:${port}`;
    await using service = await Service.start({ config: exporting({ url }) });
    const line = await service.logged("telemetry can't be sent; this is said once");
    assert.equal(line.host, `127.0.0.1:${port}`);
    assert.equal((await service.stop()).code, 0);
    assert.equal(service.count("telemetry can't be sent; this is said once"), 1);
  });
  await t.step("hangs", async () => {
    await using collector = new Collector();
    collector.mood = "hang";
    await using service = await Service.start({ config: exporting(collector) });
    await until("a request hangs", () => collector.requests > 0);
    assert.equal((await service.stop()).code, 0);
    assert.equal(service.count("stopped"), 1);
  });
});

Deno.test("an endpoint of a private CA is reached by name, and by no other certificate", {
  permissions,
}, async () => {
  const authority = await makeAuthority();
  const { cert, key } = await authority.issue({ names: ["otlp.test.example"] });
  await using upstream = await FakeUpstream.start((query) =>
    query.type === Qtype.A ? address(query, "127.0.0.1") : answer(query)
  );
  await using collector = new Collector({ tls: { cert, key } });
  await using own = await OwnDirectory.make();
  const directory = own.path;
  await Deno.writeTextFile(`${directory}/ca.crt`, authority.cert);
  const url = `https://otlp.test.example:${collector.port}`;
  const config = {
    ...exporting({ url }, {}, [upstream.text]),
    security: { rebinding_protection: false },
  };
  {
    await using service = await Service.start({ directory, config });
    const { reason } = await service.logged("telemetry can't be sent; this is said once");
    assert.match(String(reason), /certificate|UnknownIssuer/);
    assert.equal(collector.requests, 0);
  }
  {
    const telemetry = { ...exporting({ url }).telemetry, ca_file: "ca.crt" };
    await using service = await Service.start({ directory, config: { ...config, telemetry } });
    await until("metrics", () => collector.metrics.length > 0);
    assert.doesNotMatch(service.transcript(), /certificate|UnknownIssuer/);
    service.assertCalm();
  }
});

Deno.test("a file of headers that can't be read is a problem, and nothing is sent", {
  permissions,
}, async () => {
  await using collector = new Collector();
  await using own = await OwnDirectory.make();
  const directory = own.path;
  await Deno.writeTextFile(`${directory}/headers`, `${SECRET}\n`);
  {
    await using service = await Service.start({
      directory,
      config: exporting(collector, { headers_file: "headers" }),
    });
    await service.logged("telemetry can't be sent");
    const api = await Api.of(service);
    const { problems } = await api.call("GET", "status");
    assert.match(problems.join(), /telemetry\.headers_file: .*headers: line 1: is no header/);
    assert.equal((await api.call("GET", "health")).status, "degraded");
    assert.equal(valueOf(await scrape(api.base), "svc_degraded"), 1);
    assert.equal(collector.requests, 0);
    assert.doesNotMatch(service.transcript() + problems.join(), /s3cret/);
  }
});
