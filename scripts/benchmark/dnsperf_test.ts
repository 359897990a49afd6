import assert from "node:assert/strict";
import { parseLatencies, parseStatistics } from "./dnsperf.ts";

const none = { permissions: "none" } as const;

const OUTPUT = `DNS Performance Testing Tool
[Status] Testing complete (time limit)

Statistics:

  Queries sent:         275200
  Queries completed:    275188 (100.00%)
  Queries lost:         12 (0.00%)

  Response codes:       NOERROR 275100 (99.97%), SERVFAIL 88 (0.03%)
  Average packet size:  request 40, response 56
  Run time (s):         2.000165
  Queries per second:   137582.649196

  Average Latency (s):  0.000698 (min 0.000042, max 0.012713)
`;

Deno.test("parseStatistics() reads what dnsperf prints at the end", none, () => {
  assert.deepEqual(parseStatistics(OUTPUT), {
    sent: 275200,
    completed: 275188,
    noError: 275100,
    queriesPerSecond: 137582.649196,
  });
  assert.equal(parseStatistics("Statistics:\n\n  Queries sent: 10\n"), null);
  const refused = OUTPUT.replace(/NOERROR .*/, "REFUSED 275188 (100.00%)");
  assert.equal(parseStatistics(refused)?.noError, 0);
});

Deno.test("parseLatencies() reads the answers, not what was lost", none, () => {
  const text = `[Status] Sending queries
> NOERROR www.shop.net A 0.000154
> T late.shop.net A
> NXDOMAIN none.shop.net A 1.000219
`;
  assert.deepEqual(parseLatencies(text), [154, 1_000_219]);
});
