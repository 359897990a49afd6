import assert from "node:assert/strict";
import type { MetricFamily } from "../telemetry/mod.ts";
import { metricsText } from "./metrics_text.ts";

/** The library is loaded from its package. */
const loading = { permissions: { read: true } } as const;

const FAMILIES: readonly MetricFamily[] = [
  {
    name: "svc_a_total",
    type: "counter",
    help: "Has a \\ and\nmore.",
    samples: [
      { labels: { upstream: 'tls://a"b\\c\nd' }, value: 3 },
      { labels: { upstream: "x", protocol: "udp" }, value: 2 ** 53 - 1 },
    ],
  },
  { name: "svc_b", type: "gauge", help: "B.", samples: [{ labels: {}, value: 0.25 }] },
  { name: "svc_none", type: "gauge", help: "Without a sample.", samples: [] },
  {
    name: "svc_c_seconds",
    type: "histogram",
    help: "C.",
    bounds: [0.1, 5],
    samples: [{ labels: { protocol: "dot" }, counts: [2, 0, 3], sum: 17.5 }],
  },
];

Deno.test("metricsText() writes the text exposition format", loading, async () => {
  assert.deepEqual((await metricsText(FAMILIES)).trimEnd().split(/\n+/), [
    "# HELP svc_a_total Has a \\\\ and\\nmore.",
    "# TYPE svc_a_total counter",
    'svc_a_total{upstream="tls://a\\"b\\\\c\\nd"} 3',
    'svc_a_total{upstream="x",protocol="udp"} 9007199254740991',
    "# HELP svc_b B.",
    "# TYPE svc_b gauge",
    "svc_b 0.25",
    "# HELP svc_none Without a sample.",
    "# TYPE svc_none gauge",
    "# HELP svc_c_seconds C.",
    "# TYPE svc_c_seconds histogram",
    'svc_c_seconds_bucket{protocol="dot",le="0.1"} 2',
    'svc_c_seconds_bucket{protocol="dot",le="5"} 2',
    'svc_c_seconds_bucket{protocol="dot",le="+Inf"} 5',
    'svc_c_seconds_sum{protocol="dot"} 17.5',
    'svc_c_seconds_count{protocol="dot"} 5',
  ]);
});
