// Goal: what upstreams answer, or fail to, reaches clients clean, whole, and with the reason, and one
// upstream that is silent harms nobody else. Method: the running service between real clients and
// upstreams that do as they are told.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createSocket } from "node:dgram";
import { formatIp, type HostPort } from "../../src/addr/mod.ts";
import {
  AA_BIT,
  type DecodedRecord,
  encodeQuery,
  MessageWriter,
  QR_BIT,
  Qtype,
  RA_BIT,
  Rcode,
} from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { Asker } from "./asker.ts";
import { ask, lookUp } from "./clients.ts";
import {
  address,
  answer,
  FakeUpstream,
  type RecordSpec,
  type Seen,
  soaRdata,
  wireName,
} from "./fake_upstream.ts";
import {
  hasProgram,
  OwnDirectory,
  pause,
  PERMISSIONS,
  runProgram,
  Service,
  svcCommand,
  testConfig,
  toml,
  until,
} from "./harness.ts";

const OPTIONS = { permissions: PERMISSIONS } as const;
const line = ({ name, type, data }: DecodedRecord) => `${name} ${type} ${data}`;

/** Sends questions for names below a domain, so many a second, until it is told to stop. */
class Flood implements AsyncDisposable {
  sent = 0;
  readonly #socket = createSocket("udp4");
  #isOn = true;
  readonly #ended: Promise<void>;

  constructor(server: HostPort, domain: string, perSecond: number, from = "127.0.0.1") {
    this.#socket.on("message", () => {});
    this.#socket.bind(0, from);
    this.#ended = (async () => {
      for (; this.#isOn; await pause(20)) {
        for (let i = 0; i < perSecond / 50; i++) {
          const packet = encodeQuery(`n${this.sent++}.${domain}`, Qtype.A, {
            id: this.sent & 0xffff,
          });
          this.#socket.send(Buffer.from(packet), server.port, formatIp(server.ip));
        }
      }
    })();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOn = false;
    await this.#ended;
    this.#socket.close();
  }
}

/** A command before the program's, which limits its open files. */
const withFiles = (count: number) => ["sh", "-c", `ulimit -n ${count}; exec "$0" "$@"`];

Deno.test("svc run answers other names while one upstream is silent, with 1,024 open files", {
  ...OPTIONS,
  sanitizeResources: false,
}, async () => {
  await using healthy = await FakeUpstream.start();
  await using silent = await FakeUpstream.start(() => null);
  await using service = await Service.start({
    prefix: withFiles(1_024),
    config: {
      upstream: [{ address: healthy.text }, { address: silent.text, domains: ["dead.test"] }],
    },
  });
  const api = await Api.of(service);
  const { openFiles } = await service.logged("starting");
  assert.equal(openFiles, 1_024);
  await using flood = new Flood(service.address, "dead.test", 1_500);
  const most = 512; // Half of the files is for queries to upstreams, and half of that for one.
  await until("as many wait as may", () => silent.seen.length >= most / 2);
  using asker = await Asker.open(service.address);
  for (let round = 0; round < 20 || flood.sent < 4_000; round++) {
    const names = Array.from({ length: 10 }, (_, i) => ({ name: `r${round}n${i}.example` }));
    for (const { name, rcode, records } of await asker.askAll(names)) {
      assert.deepEqual([name, rcode, records], [name, "NOERROR", ["A 192.0.2.1"]]);
    }
  }
  const refused = await asker.ask("further.dead.test");
  assert.deepEqual([refused.rcode, refused.ede], ["SERVFAIL", 0]);
  assert.match(refused.text, new RegExp(`^too many queries wait for ${silent.text}$`));
  const { upstreams } = await api.call("GET", "status");
  assert.deepEqual([upstreams[0].healthy, upstreams[0].failures], [true, 0]);
  assert.match(await api.metrics(), /^svc_upstream_full_total [1-9]/m);
  assert.match(await api.metrics(), /^svc_upstream_no_socket_total 0$/m);
  await service.logged("too many queries wait for an upstream: further ones get SERVFAIL", {
    upstream: silent.text,
  });
  service.assertCalm();
});

Deno.test("svc run answers others while one client asks for names that get no answer", {
  ...OPTIONS,
  sanitizeResources: false,
}, async () => {
  await using upstream = await FakeUpstream.start((query) =>
    query.name.toLowerCase().endsWith("dead.test") ? null : address(query)
  );
  await using service = await Service.start({
    config: {
      "server.rate_limit": { queries_per_second: 0, exempt: ["127.0.0.1/32"] },
      upstream: [{ address: upstream.text }],
    },
  });
  await using flood = new Flood(service.address, "dead.test", 3_000, "127.0.0.66");
  using neighbour = await Asker.open(service.address, "127.0.0.7");
  using flooder = await Asker.open(service.address, "127.0.0.66");
  // Some times more than may wait at once.
  for (let round = 0; flood.sent < 6_000; round++) {
    const { rcode, records } = await neighbour.ask(`n${round}.example`);
    assert.deepEqual([rcode, records], ["NOERROR", ["A 192.0.2.1"]], `after ${flood.sent}`);
    await pause(100);
  }
  const names = Array.from({ length: 50 }, (_, i) => ({ name: `further${i}.dead.test` }));
  const refused = await flooder.askAll(names);
  assert.ok(refused.some(({ text }) => text === "too many queries of this client wait"));
  service.assertCalm();
});

Deno.test("svc run names the limit on open files when it is reached, and no upstream", {
  ...OPTIONS,
}, async () => {
  await using upstream = await FakeUpstream.start();
  // The program itself needs some; the last quarter, 128 at least, is left for connections.
  await using service = await Service.start({
    prefix: withFiles(160),
    config: { upstream: [{ address: upstream.text }] },
  });
  const api = await Api.of(service);
  using asker = await Asker.open(service.address);
  const { rcode, ede, text } = await asker.ask("www.example");
  assert.deepEqual([rcode, ede], ["SERVFAIL", 0]);
  assert.match(text, /^no socket is left for queries to upstreams: raise the limit on open files$/);
  const { upstreams, problems } = await api.call("GET", "status");
  assert.deepEqual([upstreams[0].healthy, upstreams[0].failures], [true, 0]);
  await until("the problem is told", async () => {
    return (await api.call("GET", "status")).problems.some((p: string) =>
      /no socket is left/.test(p)
    );
  });
  assert.ok(!problems.some((problem: string) => problem.includes(upstream.text)));
  await service.logged("no socket is left for queries to upstreams: raise the limit on open files");
});

Deno.test(
  "svc tells when the limit on open files can't carry the configuration",
  OPTIONS,
  async () => {
    await using directory = await OwnDirectory.make();
    const file = `${directory.path}/svc.toml`;
    await Deno.writeTextFile(file, toml(testConfig()));
    const check = async (files: number) => {
      const [command, ...args] = [
        ...withFiles(files),
        ...svcCommand(["check-config", "--config", file]),
      ];
      return await runProgram(command, ...args);
    };
    const low = await check(1_024);
    assert.equal(low.code, 0, low.stderr);
    assert.match(
      low.stderr,
      /warning: .* the limit on open files is 1024, and this configuration may need 5376: raise it/,
    );
    assert.equal((await check(20_000)).stderr, "");
  },
);

Deno.test("svc run raises the soft limit on open files to the hard one", OPTIONS, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({
    prefix: ["sh", "-c", 'ulimit -S -n 200; ulimit -H -n 3000; exec "$0" "$@"'],
    config: { upstream: [{ address: upstream.text }] },
  });
  assert.equal((await service.logged("starting")).openFiles, 3_000);
  const { stdout } = await runProgram("cat", `/proc/${service.pid}/limits`);
  assert.match(stdout, /^Max open files +3000 +3000 /m);
  const warned = service.logs.find(({ message }) => /limit on open files is 3000/.test(message));
  assert.match(warned?.message ?? "", /this configuration may need 5376: raise it/);
});

/** An answer of records that say their own class, names written as they are. */
function raw(
  query: Seen,
  records: readonly (RecordSpec & { readonly cls?: number; readonly section?: 0 | 1 | 2 })[],
  flags = 0,
): Uint8Array {
  const target = new Uint8Array(4_096);
  const writer = new MessageWriter();
  const [question] = query.message.questions;
  assert(writer.start(target, 0, target.length, query.message.id, QR_BIT | RA_BIT | flags));
  assert(writer.question(wireName(question.name), question.type));
  for (const { name = question.name, type, cls = 1, ttl, data, section = 0 } of records) {
    const rdata = typeof data === "string" ? Uint8Array.from(data.split(".").map(Number)) : data;
    assert(writer.record(section, wireName(name), type, cls, ttl, rdata));
  }
  return writer.bytes().slice();
}

/** A CNAME and its address, every name written out in the spelling of the query. */
function written(query: Seen): Uint8Array {
  const [name, target] = [wireName(query.name), wireName(`x.${query.name}`)];
  const fixed = (type: number, length: number) => [0, type, 0, 1, 0, 0, 0, 60, 0, length];
  const head = raw(query, []).with(7, 2);
  const cname = [...name, ...fixed(Qtype.CNAME, target.length), ...target];
  return Uint8Array.of(...head, ...cname, ...target, ...fixed(Qtype.A, 4), 192, 0, 2, 1);
}

const { A, CNAME, NS, SOA } = Qtype;
const toTarget = (name: string): RecordSpec => ({ type: CNAME, ttl: 60, data: wireName(name) });
const one = (name?: string, last = 1): RecordSpec => ({
  ...(name !== undefined && { name }),
  type: A,
  ttl: 60,
  data: `192.0.2.${last}`,
});

Deno.test("svc run scrubs answers and gets the whole of chains", OPTIONS, async (t) => {
  const script = (query: Seen) => {
    switch (query.name.toLowerCase()) {
      case "unrelated.example":
        return raw(query, [one(), one("bank.example", 66), {
          ...one("ns.bank.example", 66),
          section: 2,
        }]);
      case "class.example":
        return raw(query, [{ ...one(undefined, 66), cls: 3 }, one()]);
      case "two.example":
        return raw(query, [toTarget("a.example"), toTarget("b.example"), one("a.example")]);
      case "beside.example":
        return raw(query, [toTarget("evil.example"), one(), one("evil.example", 66)]);
      case "open.example":
        return raw(query, [toTarget("middle.example")]);
      case "middle.example":
        return raw(query, [toTarget("end.example")]);
      case "end.example":
        return raw(query, [one(undefined, 9)]);
      case "circle.example":
        return raw(query, [toTarget("circle2.example")]);
      case "circle2.example":
        return raw(query, [toTarget("circle.example")]);
      case "gone.example":
        return raw(query, [toTarget("nothing.example")]);
      case "nothing.example":
        return answer(query, {
          rcode: Rcode.NXDomain,
          authorities: [{ name: "example", type: SOA, ttl: 60, data: soaRdata("example", 60) }],
        });
      case "copied.example":
        // A server that copies the name of the query and its spelling instead of pointing to it.
        return written(query);
      case "servers.example":
        return raw(query, [one(), {
          name: "test",
          type: NS,
          ttl: 60,
          data: wireName("ns.evil.test"),
          section: 1,
        }]);
      case "malformed.example":
        return raw(query, [{ ...one(), data: "192.0.2" }]);
      default:
        return address(query, "192.0.2.77");
    }
  };
  await using upstream = await FakeUpstream.start(script);
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["unrelated.example", ["unrelated.example 1 192.0.2.1"]],
    ["class.example", ["class.example 1 192.0.2.1"]],
    ["two.example", ["two.example 5 a.example", "a.example 1 192.0.2.1"]],
    ["beside.example", ["beside.example 1 192.0.2.1"]],
    [
      "open.example",
      ["open.example 5 middle.example", "middle.example 5 end.example", "end.example 1 192.0.2.9"],
    ],
    ["gone.example", ["gone.example 5 nothing.example"]],
    ["servers.example", ["servers.example 1 192.0.2.1"]],
    ["CoPieD.eXample", ["CoPieD.eXample 5 x.CoPieD.eXample", "x.CoPieD.eXample 1 192.0.2.1"]],
    ["copied.example", ["copied.example 5 x.copied.example", "x.copied.example 1 192.0.2.1"]],
  ];
  for (const [name, want] of rows) {
    await t.step(name, async () => {
      for (const when of ["first", "from the cache"]) {
        const { answers, authorities, additionals, rcode } = await ask(service.address, name, A);
        assert.deepEqual(answers.map(line), want, when);
        const isGone = name === "gone.example";
        assert.equal(rcode, isGone ? Rcode.NXDomain : Rcode.NoError);
        assert.deepEqual(authorities.map(({ type }) => type), isGone ? [SOA] : []);
        assert.deepEqual(additionals, []);
      }
    });
  }
  await t.step("nothing else was kept", async () => {
    const { answers } = await ask(service.address, "bank.example", A);
    assert.deepEqual(answers.map(({ data }) => data), ["192.0.2.77"]);
  });
  await t.step("those who ask together see their own spelling", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream.script = async (query) => {
      await promise;
      return address(query);
    };
    const spelled = ["Waits.example", "waits.EXAMPLE", "WAITS.example"];
    const asked = spelled.map((name) => ask(service.address, name, A));
    await upstream.asked("waits.example");
    resolve();
    const names = (await Promise.all(asked)).map(({ answers }) => answers[0].name);
    assert.deepEqual(names, spelled);
    upstream.script = script;
  });
  await t.step("a circle, and what is malformed", async () => {
    using asker = await Asker.open(service.address);
    const circle = await asker.ask("circle.example");
    assert.deepEqual([circle.rcode, circle.ede], ["SERVFAIL", 0]);
    assert.match(circle.text, /in a circle of CNAME records/);
    assert.ok(upstream.about("circle.example").length <= 13);
    const malformed = await asker.ask("malformed.example");
    assert.deepEqual([malformed.rcode, malformed.ede], ["SERVFAIL", 24]);
    assert.match(malformed.text, /answered with a malformed message$/);
  });
  service.assertCalm();
});

Deno.test(
  "svc run takes the denials of servers that are authoritative only",
  OPTIONS,
  async (t) => {
    const script = (query: Seen) => {
      const name = query.name.toLowerCase();
      if (name === "referral.zone.test") {
        return raw(query, [{
          name: "zone.test",
          type: NS,
          ttl: 60,
          data: wireName("ns.zone.test"),
          section: 1,
        }])
          .with(3, 0);
      }
      const aa = name === "bare.zone.test" ? 0 : AA_BIT;
      return raw(query, [], aa | (name === "gone.zone.test" ? Rcode.NXDomain : 0))
        .with(3, name === "gone.zone.test" ? Rcode.NXDomain : 0);
    };
    await using server = await FakeUpstream.start(script);
    await using other = await FakeUpstream.start();
    await using service = await Service.start({
      config: {
        upstream: [{ address: other.text }, { address: server.text, domains: ["zone.test"] }],
      },
    });
    const rows = [
      ["empty.zone.test", Rcode.NoError],
      ["bare.zone.test", Rcode.NoError],
      ["gone.zone.test", Rcode.NXDomain],
      ["referral.zone.test", Rcode.ServFail],
    ] as const;
    for (const [name, want] of rows) {
      await t.step(name, async () => {
        for (let i = 0; i < 2; i++) {
          const { rcode, answers } = await ask(service.address, name, Qtype.AAAA);
          assert.deepEqual([rcode, answers], [want, []]);
        }
        assert.equal(server.about(name).length, 1, "kept for a short while");
      });
    }
    service.assertCalm();
  },
);

/** A response with OPT that carries these options. */
function withOptions(query: Seen, rcode: number, options: readonly (readonly [number, string])[]) {
  const target = new Uint8Array(4_096);
  const writer = new MessageWriter();
  const [question] = query.message.questions;
  const isAnswer = rcode === Rcode.NoError;
  assert(writer.start(target, 0, target.length, query.message.id, QR_BIT | RA_BIT | rcode));
  assert(writer.question(wireName(question.name), question.type));
  if (isAnswer) {
    assert(writer.record(0, wireName(question.name), A, 1, 300, Uint8Array.of(192, 0, 2, 1)));
  }
  assert(writer.opt({ payload: 1232, extendedRcode: 0, version: 0, dnssecOk: false }));
  for (const [code, text] of options) {
    assert(writer.option(15, Uint8Array.of(code >> 8, code, ...new TextEncoder().encode(text))));
  }
  return writer.bytes().slice();
}

Deno.test("svc run relays extended errors of upstreams unchanged", {
  ...OPTIONS,
  ignore: !hasProgram("dig"),
}, async (t) => {
  await using upstream = await FakeUpstream.start((query) =>
    withOptions(query, query.name.toLowerCase() === "failed.example" ? Rcode.ServFail : 0, [
      [17, "filtered for you"],
      [49_152, "of their own"],
    ])
  );
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  for (const name of ["www.example", "failed.example"]) {
    for (const when of ["first", "from the cache"]) {
      await t.step(`${name}, ${when}`, async () => {
        const shown = await lookUp("dig", service.address, `${name} A`);
        assert.match(shown, /EDE: 17 \(Filtered\): \(filtered for you\)/);
        assert.match(shown, /EDE: 49152.*\(of their own\)/);
        assert.equal(shown.match(/EDE: /g)?.length, 2, "and no other");
      });
    }
    await t.step(`${name} without EDNS`, async () => {
      assert.doesNotMatch(await lookUp("dig", service.address, `+noedns ${name} A`), /EDE|OPT/);
    });
  }
});

Deno.test("svc run answers DNS cookies", { ...OPTIONS, ignore: !hasProgram("dig") }, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const mine = "0123456789abcdef";
  const cookieOf = (shown: string) => /COOKIE: ([0-9a-f]+)( \(good\))?/.exec(shown)?.[1] ?? "";
  for (const way of ["+notcp", "+tcp"]) {
    await t.step(`dig ${way}`, async () => {
      const shown = await lookUp("dig", service.address, `${way} +cookie=${mine} www.example A`);
      const full = cookieOf(shown);
      assert.match(full, new RegExp(`^${mine}01000000[0-9a-f]{24}$`), shown);
      assert.match(shown, /status: NOERROR/);
      const again = await lookUp("dig", service.address, `${way} +cookie=${full} www.example A`);
      assert.match(again, new RegExp(`COOKIE: ${mine}01000000[0-9a-f]{24} \\(good\\)`), again);
      const wrong = `${mine}${"0".repeat(32)}`;
      const renewed = await lookUp("dig", service.address, `${way} +cookie=${wrong} www.example A`);
      assert.match(renewed, /status: NOERROR/);
      assert.match(cookieOf(renewed), new RegExp(`^${mine}01000000`));
    });
  }
  await t.step("a length that no cookie has", async () => {
    const shown = await lookUp("dig", service.address, "+ednsopt=10:0102030405 www.example A");
    assert.match(shown, /status: FORMERR/);
  });
  await t.step("none without one", async () => {
    assert.doesNotMatch(await lookUp("dig", service.address, "+nocookie www.example A"), /COOKIE/);
  });
  assert.ok(
    upstream.seen.every(({ message }) => message.opt?.options.length === 0),
    "upstreams get none",
  );
});

Deno.test("svc run lives with upstreams that answer oddly", OPTIONS, async (t) => {
  const rows: readonly (readonly [
    string,
    (query: Seen, upstream: FakeUpstream) => Uint8Array | null | "close" | Uint8Array[],
    (typeof Rcode)[keyof typeof Rcode],
    number,
  ])[] = [
    // TC over UDP and over TCP, without an answer.
    ["always TC", (q) => answer(q, { flags: 0x0200 }), Rcode.ServFail, 8],
    [
      "TCP closed at once",
      (q) => q.transport === "tcp" ? "close" : answer(q, { flags: 0x0200 }),
      Rcode.ServFail,
      12,
    ],
    [
      "another question",
      (q) => answer(q, { question: "other.example" }),
      Rcode.ServFail,
      12,
    ],
    [
      "folded case over UDP",
      (q) => q.transport === "tcp" ? address(q) : lowered(address(q)),
      Rcode.NoError,
      2,
    ],
    [
      "FORMERR to EDNS",
      (q) => q.message.opt === null ? address(q) : answer(q, { rcode: Rcode.FormErr, edns: false }),
      Rcode.NoError,
      2,
    ],
    ["REFUSED", (q) => answer(q, { rcode: Rcode.Refused }), Rcode.ServFail, 1],
    ["NOTIMP", (q) => answer(q, { rcode: Rcode.NotImp }), Rcode.ServFail, 1],
    [
      "large, over TCP",
      (q) =>
        q.transport === "tcp"
          ? answer(q, { answers: Array.from({ length: 3_900 }, () => one()) })
          : answer(q, { flags: 0x0200 }),
      Rcode.NoError,
      2,
    ],
    [
      "garbage, then the answer",
      (q) => [new Uint8Array(11), answer(q).slice(0, 12), address(q)],
      Rcode.NoError,
      1,
    ],
  ];
  for (const [what, script, want, most] of rows) {
    await t.step(what, async () => {
      await using upstream = await FakeUpstream.start();
      upstream.script = (query) => query.name === "." ? address(query) : script(query, upstream);
      await using service = await Service.start({
        config: { upstream: [{ address: upstream.text }] },
      });
      const { rcode } = await ask(service.address, "www.example", A);
      assert.equal(rcode, want);
      const asked = upstream.about("www.example").length;
      assert.ok(asked <= most, `asked ${asked} times`);
      service.assertCalm();
    });
  }
});

/** A message whose question is in lower case. */
function lowered(message: Uint8Array): Uint8Array {
  return message.map((byte, i) =>
    i >= 12 && i < 25 && byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
  );
}

Deno.test("svc run names an upstream that is the service itself", OPTIONS, async () => {
  await using other = await FakeUpstream.start();
  await using first = await Service.start({ config: { upstream: [{ address: other.text }] } });
  const { ip, port } = first.address;
  const { directory } = first;
  // The same port again, as its own upstream.
  const address = `${formatIp(ip)}:${port}`;
  await first.stop();
  await using service = await Service.start({
    config: { server: { listen: [address], workers: 1 }, upstream: [{ address }] },
  });
  assert.ok(directory !== service.directory);
  using asker = await Asker.open(service.address);
  const { rcode, ede, text } = await asker.ask("a-long-enough-name.example");
  assert.deepEqual([rcode, ede], ["SERVFAIL", 0]);
  assert.equal(text, `upstream ${address} leads back to this service`);
});
