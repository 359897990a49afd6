import assert from "node:assert/strict";
import { Ede, encodeQuery, Rcode } from "../dns/mod.ts";
import { ownError } from "./extended_errors.ts";
import { type FailureCode, ResolveFailure } from "./failure.ts";
import { describe, PipelineBench } from "./fakes.ts";
import { Outcome } from "./outcome.ts";

const none = { permissions: "none" } as const;

Deno.test("ResolveFailure says what each failure means to the client", none, () => {
  const rows: readonly (readonly [FailureCode, string])[] = [
    ["unserved", "No Reachable Authority"],
    ["timeout", "No Reachable Authority"],
    ["unreachable", "No Reachable Authority"],
    ["unhelpful", "No Reachable Authority"],
    ["malformed", "Invalid Data"],
    ["bogus", "DNSSEC Bogus"],
    ["circle", "Other"],
    ["tooLarge", "Other"],
    ["overload", "Other"],
    ["crowded", "Other"],
    ["noSocket", "Other"],
    ["unchecked", "Other"],
  ];
  const bench = new PipelineBench();
  bench.decide(encodeQuery("www.example", 1, { edns: { payload: 1232 } }));
  for (const [i, [code, purpose]] of rows.entries()) {
    bench.reply.bytes.fill(0xee);
    bench.pipeline.fail(bench.query, new ResolveFailure(code, "why"), bench.reply);
    assert.equal(describe(bench.taken()), `SERVFAIL rd ra; OPT ${purpose}: why`);
    assert.equal(bench.outcomes(Outcome.Failed), i + 1, "counted where it is written");
  }
});

Deno.test("ResolveFailure relays what others said unchanged", none, () => {
  const relayed = ownError(Ede.Prohibited, "theirs");
  const failure = new ResolveFailure("unhelpful", "a answered REFUSED", relayed);
  assert.deepEqual([failure.errors, failure.rcode], [relayed, Rcode.ServFail]);
  const bench = new PipelineBench();
  bench.decide(encodeQuery("www.example", 1, { edns: { payload: 1232 } }));
  bench.reply.bytes.fill(0xee);
  bench.pipeline.fail(bench.query, failure, bench.reply);
  assert.equal(describe(bench.taken()), "SERVFAIL rd ra; OPT Prohibited: theirs");
});
