// Goal: everybody is answered once, whatever upstreams, threads and time do, and nothing is left
// behind. Method: all of it drawn from one seed.
import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { Rcode } from "../../dns/mod.ts";
import type { RrSet } from "../../dnssec/mod.ts";
import { START_SECONDS } from "../fakes.ts";
import type { Client } from "../forward/fakes.ts";
import { type Said, ValidationBench } from "./fakes.ts";

const RUNS = 12;
const STEPS = 120;
const NAMES = 12;

/** What an upstream may say about a name, the unkind among it; `undefined`: nothing at all. */
function anything(prng: Prng, bench: ValidationBench, name: string): Said | undefined {
  const line = `${name} ${prng.pick([0, 5, 300])} IN A 192.0.2.${prng.int(9)}`;
  const signed = bench.signed(line);
  const spoilt = (rrset: RrSet): RrSet => ({
    ...rrset,
    signatures: rrset.signatures.map((bytes) => bytes.with(-1, bytes.at(-1)! ^ 1)),
  });
  switch (prng.int(7)) {
    case 0:
      return { answer: [spoilt(signed)] };
    case 1:
      return { answer: [ValidationBench.plain(line)] };
    case 2:
      return { rcode: Rcode.ServFail };
    case 3:
      return undefined;
    case 4:
      return {
        rcode: Rcode.NXDomain,
        authority: [bench.signed("test 60 IN SOA a.test. b.test. 1 2 3 4 60")],
      };
    default:
      return { answer: [signed] };
  }
}

Deno.test("Validation answers everyone once, whatever happens in whatever order, seeded", {
  permissions: { env: ["SVC_SEED"] },
}, async () => {
  const seed = seedFromEnv();
  // Upstreams come and go here, which the log tells of.
  const write = Deno.stderr.writeSync;
  Deno.stderr.writeSync = ({ length }) => length;
  try {
    await run(seed);
  } finally {
    Deno.stderr.writeSync = write;
  }
});

async function run(seed: number): Promise<void> {
  for (let i = 0; i < RUNS; i++) {
    const prng = new Prng(seed + i);
    const bench = new ValidationBench({ serveStale: prng.pick([0, 3_600]), seed: seed + i });
    const clients: Client[] = [];
    for (let step = 0; step < STEPS; step++) {
      await happen(prng, bench, clients);
      const unanswered = clients.filter(({ answer }) => answer === "").length;
      assert.ok(bench.bench.flights.waiting >= unanswered, `run ${i}, step ${step}`);
    }
    // Left to itself, every wait ends in time.
    bench.threads.isHeld = false;
    for (let wait = 0; wait < 8 && clients.some(({ answer }) => answer === ""); wait++) {
      await bench.settle();
      bench.bench.advance(5_000);
    }
    assert.ok(clients.every(({ answer }) => answer !== ""), `run ${i}: all are answered`);
    await bench.settle();
    bench.bench.advance(6_000);
    await bench.settle();
    assert.equal(bench.validation.active, 0, `run ${i}: nothing is validated`);
    assert.equal(bench.checks.waiting, 0);
    assert.equal(bench.bench.flights.inFlight, 0);
    assert.equal(bench.bench.flights.waiting, 0);
  }
}

async function happen(prng: Prng, bench: ValidationBench, clients: Client[]): Promise<void> {
  const what = prng.int(100);
  const name = `n${prng.int(NAMES)}.test`;
  if (what < 35) {
    const options = prng.pick([{}, { cd: true, edns: { dnssecOk: true } }, { ad: true }, {
      edns: { dnssecOk: true },
    }]);
    clients.push(bench.bench.ask(name, options));
  } else if (what < 60) {
    const said = anything(prng, bench, name);
    const key = prng.chance(0.3) ? `${prng.pick(["a", "b"])} ${name} A` : `${name} A`;
    if (said === undefined) bench.said.delete(key);
    else bench.said.set(key, said);
  } else if (what < 80) {
    bench.threads.isHeld = prng.chance(0.3);
    await bench.settle();
  } else if (what < 84) {
    bench.checks.onLost(bench.threads.sent.splice(0).map(({ id }) => id));
  } else if (what < 87) {
    bench.validation.forget();
    bench.bench.front.cache.flush();
  } else if (what < 90) {
    bench.validation.pastS = prng.chance(0.7) ? null : START_SECONDS;
  } else {
    bench.bench.advance(prng.pick([50, 200, 1_000, 6_000]));
  }
}
