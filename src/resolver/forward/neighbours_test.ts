import assert from "node:assert/strict";
import { parseIp, parsePrefix } from "../../addr/mod.ts";
import { FEW_WAITS } from "../flights/client_waits.ts";
import { ClientWaits } from "../flights/mod.ts";
import { OPEN_MAX } from "../ask/mod.ts";
import { a } from "../fakes.ts";
import { keptQuery, type Query, Transport as ClientTransport } from "../query.ts";
import { type Client, ForwarderBench, quietly } from "./fakes.ts";

const none = { permissions: "none" } as const;
const EDNS = { edns: { payload: 1232 } };
/** Who asks for names that no upstream answers, and who does not. */
const FLOODER = "192.0.2.66";
const HOUSEHOLD = "192.0.2.7";
const TICKS_A_SECOND = 20;
/** What the connections to an upstream take at a time. */
const OPEN_AT_ONCE = { udp: OPEN_MAX, tls: 512, quic: 128 } as const;
type Transport = keyof typeof OPEN_AT_ONCE;

/** One upstream, which is silent about names below `dead.example`. */
class Flooded {
  readonly bench: ForwarderBench;
  readonly flood: Client[] = [];
  mostOpen = 0;

  constructor(transport: Transport, private readonly perSecond: number) {
    this.bench = new ForwarderBench({
      upstreams: { a: [] },
      transports: { a: transport },
      openMax: OPEN_MAX,
    });
  }

  /** A second of the flood. */
  second(from: readonly string[] = [FLOODER]): void {
    const { bench, flood, perSecond } = this;
    for (let tick = 0; tick < TICKS_A_SECOND; tick++) {
      for (let i = 0; i < perSecond / TICKS_A_SECOND; i++) {
        for (const one of from) {
          flood.push(bench.ask(`r${flood.length}.dead.example`, { from: one, ...EDNS }));
        }
      }
      bench.advance(1_000 / TICKS_A_SECOND);
      this.mostOpen = Math.max(this.mostOpen, bench.open.length);
    }
  }

  /** Another client asks for a name that the upstream knows. */
  answered(name: string): string {
    const { bench } = this;
    const client = bench.ask(name, { from: HOUSEHOLD, ...EDNS });
    if (client.answer === "") bench.answer(bench.last, { records: [a(name, 300)] });
    return client.answer;
  }
}

/** Upstreams, names a second, and for how long. */
const FLOODS = [["udp", 300, 7], ["udp", 5_000, 2], ["tls", 300, 7], ["quic", 300, 7]] as const;

for (const [transport, perSecond, seconds] of FLOODS) {
  Deno.test(
    `Forwarder answers whoever else asks over ${transport} while one client asks ${perSecond} ` +
      "names a second that get no answer",
    none,
    () => {
      quietly(() => {
        const flooded = new Flooded(transport, perSecond);
        const { bench } = flooded;
        for (let second = 0; second < seconds; second++) {
          flooded.second();
          assert.match(flooded.answered(`n${second}.example`), /^NOERROR/, `second ${second}`);
        }
        assert.ok(flooded.mostOpen < OPEN_AT_ONCE[transport], `${flooded.mostOpen} were asked`);
        const refused = "SERVFAIL rd ra; OPT Other: too many queries of this client wait";
        assert.ok(flooded.flood.some(({ answer }) => answer === refused));
        bench.advance(5_000);
        assert.ok(flooded.flood.every(({ answer }) => answer.startsWith("SERVFAIL")));
        bench.flights.close();
        bench.checkIdle();
      });
    },
  );
}

Deno.test("Forwarder leaves room where several clients flood it", none, () => {
  quietly(() => {
    const flooded = new Flooded("udp", 1_000);
    for (let second = 0; second < 2; second++) {
      flooded.second(["192.0.2.64", "192.0.2.65", "2001:db8::1"]);
      assert.match(flooded.answered(`n${second}.example`), /^NOERROR/, `second ${second}`);
    }
  });
});

Deno.test(
  "Forwarder lets others wait for the name that one client asks for on and on",
  none,
  () => {
    quietly(() => {
      const bench = new ForwarderBench({ upstreams: { a: [] }, openMax: OPEN_MAX });
      const name = "www.example";
      const flood = Array.from({ length: 1_500 }, () => bench.ask(name, { from: FLOODER }));
      const others = Array.from(
        { length: 100 },
        (_, i) => bench.ask(name, { from: `198.51.100.${i}` }),
      );
      assert.ok(others.every(({ answer }) => answer === ""));
      assert.ok(flood.some(({ answer }) => answer.startsWith("SERVFAIL")));
      bench.answer(bench.last, { records: [a(name, 300)] });
      assert.ok(others.every(({ answer }) => answer.startsWith("NOERROR")));
      bench.checkIdle();
    });
  },
);

Deno.test("Forwarder takes no upstream for silent that answers others meanwhile", none, () => {
  const { lines } = quietly(() => {
    const flooded = new Flooded("udp", 300);
    const { bench } = flooded;
    const [upstream] = bench.forwarder.upstreams;
    assert.match(flooded.answered("first.example"), /^NOERROR/);
    for (let second = 0; second < 8; second++) {
      flooded.second();
      assert.match(flooded.answered(`n${second}.example`), /^NOERROR/);
      assert.deepEqual([upstream.healthy, upstream.failures], [true, 0]);
    }
    assert.ok(upstream.failuresTotal > 0);
    // From here on, it answers nobody, and no probe either.
    for (let second = 0; second < 5; second++) flooded.second();
    assert.equal(upstream.healthy, false);
  });
  const messages = lines.map((line) => JSON.parse(line).message);
  assert.deepEqual(messages, ["upstream does not answer"]);
});

Deno.test("Forwarder asks a client's few names whoever floods it", none, () => {
  quietly(() => {
    const flooded = new Flooded("tls", 1_000);
    flooded.second();
    const clients = Array.from(
      { length: FEW_WAITS },
      (_, i) => flooded.bench.ask(`few${i}.example`, { from: HOUSEHOLD }),
    );
    assert.ok(clients.every(({ answer }) => answer === ""));
  });
});

/** A query as it waits. */
function from(address: string, more: Partial<Query> = {}): Query {
  const query = keptQuery();
  const ip = parseIp(address)!;
  query.address.aim(ip, 0, ip.length);
  return Object.assign(query, more);
}

Deno.test("ClientWaits counts an address, or a /64, as one client, and others apart", none, () => {
  const waits = new ClientWaits([], 7);
  const clients = Array.from({ length: 100 }, () => waits.enter(from("192.0.2.1")));
  const [client] = clients;
  assert.equal(new Set(clients).size, 1);
  assert.deepEqual([99, 100].map((left) => waits.isOver(client, left)), [true, false]);
  assert.equal(waits.isOver(waits.enter(from("192.0.2.2")), 0), false, "it has few");
  clients.forEach((one) => waits.leave(one));
  assert.equal(waits.isOver(waits.enter(from("192.0.2.1")), 0), false, "those have gone");
  const networks = ["2001:db8::1", "2001:db8::2:0:0:1", "2001:db8:0:1::1"];
  const [one, same, other] = networks.map((address) => waits.enter(from(address)));
  assert.ok(one === same && one !== other);
});

Deno.test("ClientWaits counts nobody who is exempt or unknown", none, () => {
  const waits = new ClientWaits([parsePrefix("127.0.0.0/8")!], 7);
  const unknown = keptQuery();
  const queries = [
    from("127.0.0.9"),
    unknown,
    from("192.0.2.1", { isOwn: true }),
    from("192.0.2.1", { transport: ClientTransport.Odoh }),
  ];
  for (const query of queries) {
    let client = 0;
    for (let i = 0; i < 100; i++) client = waits.enter(query);
    assert.equal(waits.isOver(client, 0), false);
    waits.leave(client);
  }
});
