import assert from "node:assert/strict";
import { formatTransports } from "./report.ts";
import { isMet, KIB_BYTES, transportTargets } from "./targets.ts";
import { parseH2load, parseSTime } from "./transport_loads.ts";
import type { TransportResults, TransportSample } from "./transport_runs.ts";

const none = { permissions: "none" } as const;

const H2LOAD = `starting benchmark...
Main benchmark duration is over for thread #0. Stopping all clients.

finished in 2.00s, 41015.00 req/s, 3.98MB/s
requests: 82030 total, 82130 started, 82030 done, 82030 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 82030 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 7.97MB (8353060) total, 641.13KB (656520) headers (space savings 90.00%), 4.07MB data
`;

Deno.test("parseH2load() counts what was answered, and what was not", none, () => {
  assert.deepEqual(parseH2load(H2LOAD), { good: 82_030, bad: 0, perSecond: 41_015 });
  const refused = H2LOAD.replace("82030 2xx, 0 3xx, 0 4xx", "82000 2xx, 0 3xx, 30 4xx")
    .replace("0 failed, 0 errored, 0 timeout", "1 failed, 2 errored, 3 timeout");
  assert.deepEqual(parseH2load(refused), { good: 82_000, bad: 36, perSecond: 41_015 });
  assert.equal(parseH2load(H2LOAD.slice(0, 200)), null);
});

Deno.test("parseSTime() reads the count of whole seconds", none, () => {
  const text = `Collecting connection statistics for 2 seconds
****

1614 connections in 0.97s; 1663.92 connections/user sec, bytes read 0
1614 connections in 3 real seconds, 0 bytes read per connection
`;
  assert.equal(parseSTime(text), 1_614);
  assert.equal(parseSTime("Collecting connection statistics for 2 seconds\n"), null);
});

function sample(perSecond: number, cpuUs: number): TransportSample {
  return { perSecond, userUs: cpuUs, systemUs: 0, busyShare: 0.5, loadBusyShare: 0.99 };
}

// The second round ran on a machine half as fast: no ratio may show that.
const RESULTS: TransportResults = {
  runs: {
    udp: { svc: [sample(400, 1), sample(200, 2)] },
    dot: {
      svc: [sample(300, 4), sample(150, 8)],
      unbound: [sample(200, 10), sample(100, 20)],
    },
    handshakes: { svc: [sample(40, 9), sample(20, 9)], unbound: [sample(100, 9), sample(50, 9)] },
    doq: {
      svc: [sample(40, 9), sample(20, 9)],
      bare: [sample(60, 6), sample(30, 6)],
    },
  },
  idleBytes: { svc: 61 * KIB_BYTES, unbound: 10 * KIB_BYTES },
};

Deno.test("transportTargets() compares within a round what both servers have", none, () => {
  const shown = transportTargets(RESULTS).map((t) =>
    `${t.name} ${t.value} ${isMet(t) ? "met" : "not"}`
  );
  assert.deepEqual(shown, [
    "dot: queries a second, svc / unbound 1.5 met",
    "full TLS handshakes a second, svc / unbound 0.4 not",
    "memory of an idle TLS connection 61 not",
  ]);
});

Deno.test("formatTransports() has a row a server, and says when clients set the pace", none, () => {
  const text = formatTransports(RESULTS);
  assert.match(text, /^dot, svc +225 +6\.00 +6\.00 +0\.00 +50 % +99 %$/m);
  assert.match(text, /^ {2}dot, svc: the clients set the pace/m);
  assert.match(text, /^ {2}dot: CPU time, svc \/ unbound: 0\.40$/m);
  assert.match(text, /^ {2}doq: CPU time, svc \/ a bare server on the runtime's QUIC: 1\.50$/m);
  assert.match(text, /^ {2}svc: queries a second, DoQ \/ UDP: 0\.100$/m);
  assert.match(text, /^ {2}unbound: an idle TLS connection holds 10\.0 KiB$/m);
});
