import assert from "node:assert/strict";
import { encodeQuery, Qtype } from "../dns/mod.ts";
import { describe, PipelineBench, snapshotOf } from "./fakes.ts";
import type { Query } from "./query.ts";

const KEY = "0123456789abcdef";
const SOA = "10 SOA minimum 10";

Deno.test(
  "OwnNames answers names of leak tests and tells who asks",
  { permissions: "none" },
  () => {
    const asked: string[] = [];
    const onLeakLookup = (_: Query, name: string) => void asked.push(name);
    const bench = new PipelineBench(snapshotOf({}), 0, false, { onLeakLookup });
    const answerTo = (name: string, type: number = Qtype.A) =>
      describe(bench.ask(encodeQuery(name, type, { id: 7 })));
    const name = `3-${KEY}.leak.svc.test`;
    const mixed = `3-${KEY.toUpperCase()}.Leak.svc.TEST`;
    assert.equal(answerTo(name), `NOERROR rd ra; ${name} 0 A 127.0.0.1`);
    assert.equal(answerTo(name, Qtype.AAAA), `NOERROR rd ra; ${name} 0 AAAA ::1`);
    assert.equal(answerTo(name, Qtype.HTTPS), `NOERROR rd ra; ${name} ${SOA}`);
    assert.equal(answerTo(mixed), `NOERROR rd ra; ${mixed} 0 A 127.0.0.1`);
    assert.deepEqual(asked, [name, name, name, name]);
    const others = [
      `leak.svc.test`,
      `a.leak.svc.test`,
      `a-${KEY}.leak.svc.test`,
      `3-${KEY}0.leak.svc.test`,
      `3-${KEY.slice(1)}.leak.svc.test`,
      `3-${KEY.slice(1)}g.leak.svc.test`,
      `x.3-${KEY}.leak.svc.test`,
      `3-${KEY}.svc.test`,
      `3-${KEY}.health.svc.test`,
    ];
    for (const other of others) {
      const rcode = other === "leak.svc.test" ? "NOERROR" : "NXDOMAIN";
      assert.equal(answerTo(other), `${rcode} rd ra; ${other} ${SOA}`);
    }
    assert.equal(asked.length, 4);
  },
);
