import assert from "node:assert/strict";
import { decodeMessage, EdnsOption, encodeQuery, Qtype } from "../dns/mod.ts";
import { getU16 } from "../bytes/mod.ts";
import { a, PipelineBench, response, snapshotOf, ttlOffsetsOf } from "./fakes.ts";
import { paddedLength } from "./padding.ts";
import { Transport } from "./query.ts";

const none = { permissions: "none" } as const;
const PADDING = { code: EdnsOption.Padding, data: new Uint8Array(20) };

function padded(name: string, options = [PADDING]): Uint8Array {
  return encodeQuery(name, Qtype.A, { id: 1, edns: { payload: 1232, options } });
}

Deno.test("paddedLength() fills the last block, within the limit", none, () => {
  const rows = [[1, 468], [467, 468], [468, 468], [469, 936], [65_400, 65_520], [65_521, 65_535]];
  for (const [lengthBytes, want] of rows) assert.equal(paddedLength(lengthBytes, 65_535), want);
  assert.throws(() => paddedLength(513, 512));
});

Deno.test("Responses are padded where the query was, over encrypted transports", none, () => {
  const bench = new PipelineBench(snapshotOf({ ads: "||ads.example^" }));
  const length = (transport: Transport, packet: Uint8Array) => bench.ask(packet, transport).length;
  for (const transport of [Transport.Dot, Transport.Doh, Transport.Doq]) {
    for (const name of ["health.svc.test", "ads.example", "other.svc.test"]) {
      assert.equal(length(transport, padded(name)), 468, name);
      const bytes = bench.taken();
      assert.equal(decodeMessage(bytes)?.trailingBytes, 0);
      assert.equal(decodeMessage(bytes)?.additionals.length, 0);
    }
    assert.ok(length(transport, padded("health.svc.test", [])) < 100);
    assert.ok(length(transport, encodeQuery("health.svc.test", Qtype.A)) < 100);
  }
  for (const transport of [Transport.Udp, Transport.Tcp, Transport.Odoh]) {
    assert.ok(length(transport, padded("health.svc.test")) < 100);
  }
});

Deno.test("Responses with extended errors and kept ones are padded to whole blocks", none, () => {
  const bench = new PipelineBench(snapshotOf({ ads: `||ads.example^\n` }));
  const blocked = bench.ask(padded("ads.example"), Transport.Dot);
  assert.equal(blocked.length, 468);
  const { opt } = decodeMessage(blocked)!;
  assert.equal(opt?.errors.length, 1);
  const many = response({
    name: "many.example",
    type: Qtype.A,
    records: Array.from({ length: 100 }, (_, i) => a("many.example", 60, i)),
  });
  bench.keep(encodeQuery("many.example", Qtype.A), many, {
    ttl: 60,
    ttlOffsets: ttlOffsetsOf(many),
  });
  const kept = bench.ask(padded("many.example"), Transport.Doh);
  assert.equal(kept.length % 468, 0);
  assert.ok(kept.length - many.length < 468 + 15);
  assert.equal(decodeMessage(kept)?.answers.length, 100);
  // The next response, shorter and not padded, shows nothing of it.
  const next = bench.ask(padded("health.svc.test", []), Transport.Dot);
  assert.equal(getU16(next, next.length - 2), 0);
});
