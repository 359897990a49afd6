// Goal: whatever a schema of ours refuses is told in words of ours. Method: each kind of issue that
// zod has is made by a small schema, and each schema of a resource is sent what it can't take.
import assert from "node:assert/strict";
import * as z from "zod";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { decodeSettings, decodeSpec } from "./decode.ts";
import { describeProblems, parseWith } from "./problems.ts";
import { COLLECTIONS } from "./resources.ts";

const none = { permissions: "none" } as const;

const KINDS: readonly (readonly [z.ZodType, unknown, string])[] = [
  [z.strictObject({ a: z.string() }), {}, "a: it is missing"],
  [z.string(), 1, "body: it is not a text"],
  [z.number(), "1", "body: it is not a number"],
  [z.int(), 1.5, "body: it is not a whole number"],
  [z.int().max(9), 2 ** 60, "body: it is more than 9"],
  [z.int().min(1), 0, "body: it is less than 1"],
  [z.boolean(), "yes", "body: it is not true or false"],
  [z.array(z.string()), {}, "body: it is not an array"],
  [z.strictObject({}), [], "body: it is not an object"],
  [z.record(z.string(), z.string()), 1, "body: it is not an object"],
  [z.date(), 1, "body: it is of the wrong kind"],
  [z.string().min(1), "", "body: it is empty"],
  [z.string().min(8), "x", "body: it has fewer than 8 characters"],
  [z.string().max(1), "xx", "body: it has more than 1 character"],
  [z.array(z.string()).min(1), [], "body: it is empty: give at least one"],
  [z.array(z.string()).min(2), [], "body: it has fewer than 2 entries"],
  [z.array(z.string()).max(1), ["a", "b"], "body: it has more than 1 entry"],
  [z.string().regex(/^a$/), "b", "body: it is not of the form that is asked for"],
  [z.string().regex(/^a$/, "it is no a"), "b", "body: it is no a"],
  [z.iso.datetime(), "now", "body: it is no time such as 2026-01-02T03:04:05Z"],
  [z.enum(["a", "b"]), "c", "body: it is none of a, b"],
  [z.literal(3), 4, "body: it is none of 3"],
  [z.number().multipleOf(5), 4, "body: it is no multiple of 5"],
  [z.strictObject({}), { a: 1 }, "a: there is no such field"],
  [z.strictObject({}), { a: 1, b: 1 }, "a: there is no such field (and 1 more)"],
  [z.record(z.enum(["a"]), z.string()), { a: "", b: "" }, "b: there is no such field"],
  [z.map(z.string().min(2), z.string()), new Map([["a", ""]]), "a: it has fewer than 2 characters"],
  [
    z.record(z.string().min(2), z.string()),
    { a: "" },
    "a: it holds a name that may not be there",
  ],
  [
    z.map(z.date(), z.string()),
    new Map([[new Date(0), 1]]),
    "body: it holds an entry that may not be there",
  ],
  [z.union([z.string(), z.int()]), true, "body: it is of none of the forms that are taken"],
  [z.string().refine(() => false), "a", "body: it is not a value that is taken"],
  [z.string().refine(() => false, "it is bad"), "a", "body: it is bad"],
];

Deno.test("parseWith() says each kind of problem in a sentence of ours", none, async (t) => {
  for (const [schema, json, want] of KINDS) {
    await t.step(want, () => {
      const parsed = parseWith(schema, json);
      assert.ok(!parsed.ok);
      assert.equal(describeProblems(parsed.problems, "body"), want);
    });
  }
});

/** What zod says by itself. */
const NOT_OURS = /invalid|expected|received|too (small|big)|unrecognized|required|zod/i;

Deno.test("no spec and no settings are refused in words of zod", none, () => {
  const prng = new Prng(seedFromEnv());
  const fields = [
    "name",
    "url",
    "path",
    "rule",
    "enabled",
    "comment",
    "managed_by",
    "type",
    "value",
  ]
    .concat("ttl", "filtering", "safe_search", "lists", "blocked_services", "addresses", "ids")
    .concat("group", "time_zone", "windows", "list", "service", "schedule", "days", "start", "end")
    .concat("access", "allowed", "disallowed", "block_ttl", "block_response", "blocking_ipv4", "x");
  const leaves = [null, true, -1, 1.5, 2 ** 60, "", "x".repeat(5_000), "\u202e", "a", "1", "::1/3"];
  const value = (depth: number): unknown => {
    if (depth === 0 || prng.chance(0.4)) return prng.pick(leaves);
    if (prng.chance(0.3)) return Array.from({ length: prng.int(4) }, () => value(depth - 1));
    const entries = Array.from({ length: 1 + prng.int(6) }, () => [
      prng.pick(fields),
      value(depth - 1),
    ]);
    return Object.fromEntries(entries);
  };
  for (let round = 0; round < 500; round++) {
    const json = value(4);
    for (const decoded of [...COLLECTIONS.map((c) => decodeSpec(c, json)), decodeSettings(json)]) {
      if (decoded.ok) continue;
      for (const { path, message } of decoded.problems) {
        const where = `${path}: ${message}`;
        assert.doesNotMatch(message, NOT_OURS, where);
        assert.match(message, /^(it|there|give|svc)/, where);
        assert.doesNotMatch(where, /\u202e/);
      }
    }
  }
});
