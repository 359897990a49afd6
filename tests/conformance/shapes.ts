/** What answers of the API promise: every key, each of its type. */
import assert from "node:assert/strict";

/**
 * A type by name, `?` behind it for one that may be null; an array of one; or keys, beside which an
 * answer may have others.
 */
export type Shape = string | readonly [Shape] | { readonly [key: string]: Shape };

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string" && value !== "",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
  count: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  timestamp: (value) =>
    typeof value === "string" && TIMESTAMP.test(value) && !Number.isNaN(Date.parse(value)),
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/** Says that an answer has every key of a shape, each of its type. */
export function assertShape(value: unknown, shape: Shape, at = "answer"): void {
  const told = `${at}: ${JSON.stringify(value)}`;
  if (typeof shape === "string") {
    const isNullable = shape.endsWith("?");
    const test = TYPES[isNullable ? shape.slice(0, -1) : shape];
    assert.ok((isNullable && value === null) || test(value), `${told} is no ${shape}`);
  } else if (Array.isArray(shape)) {
    assert.ok(Array.isArray(value), `${told} is no array`);
    for (const [i, item] of value.entries()) assertShape(item, shape[0], `${at}[${i}]`);
  } else {
    assert.ok(TYPES.object(value), `${told} is no object`);
    for (const [key, inner] of Object.entries(shape)) {
      assert.ok(Object.hasOwn(value as object, key), `${told} has no ${key}`);
      assertShape((value as Record<string, unknown>)[key], inner, `${at}.${key}`);
    }
  }
}

export const OUTCOMES = [
  "forwarded",
  "recursed",
  "cached",
  "local",
  "blocked",
  "rewritten",
  "safe_search",
  "refused",
  "failed",
];
const COUNTS = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, "count"]));
export const ENTRY: Shape = {
  time: "timestamp",
  client: "string?",
  client_name: "string?",
  client_id: "string?",
  group: "string?",
  protocol: "string",
  name: "string",
  type: "string",
  outcome: "string",
  rcode: "string",
  rule: "string?",
  list: "string?",
  answers: ["string"],
  upstream: "string?",
  cached: "boolean",
  dnssec: "string?",
  dnssec_reason: "string?",
  duration_us: "count",
  node: "string",
};
const TOP: Shape = [{ name: "string", count: "count" }];
export const STATISTICS: Shape = {
  hours: "count",
  scope: "string",
  total: "count",
  outcomes: COUNTS,
  series: [{ time: "timestamp", ...COUNTS }],
  top: { names: TOP, blocked: TOP, clients: TOP },
  nodes: ["string"],
  unreachable: ["string"],
};
export const STATUS: Shape = {
  version: "string",
  node: "string",
  started_at: "timestamp",
  protection: "boolean",
  paused_until: "timestamp?",
  problems: ["string"],
  cluster: "object",
  api_docs: "boolean",
  listeners: [{ protocol: "string", address: "string" }],
  recursion: { enabled: "boolean", dnssec: "boolean", servers: "number" },
  filter: { rules: "count", generation: "count", built_at: "timestamp?", memory_bytes: "count" },
  cache: { entries: "count", bytes: "count", hits: "count", misses: "count" },
  upstreams: [{ address: "string", healthy: "boolean", latency_ms: "number?", failures: "count" }],
  querylog: { entries: "count", dropped: "count" },
};
export const LEAK_TEST: Shape = {
  id: "string",
  names: ["string"],
  created_at: "timestamp",
  reached: "count",
  lookups: [{ address: "string", protocol: "string", client: "string?" }],
};
