// Goal: the running service keeps its promises about UDP and TCP. Method: raw sockets against it, a
// scripted upstream behind it, and network namespaces for what loopback cannot show.

import assert from "node:assert/strict";
import { formatIp, type HostPort, parseIp } from "../../src/addr/mod.ts";
import { encodeQuery, type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import {
  ask,
  askTcp,
  decode,
  dnsperf,
  exchangeUdp,
  framed,
  lookUp,
  nextId,
  TcpClient,
  UdpClient,
} from "./clients.ts";
import { address, answer, FakeUpstream, truncated, txtRdata } from "./fake_upstream.ts";
import {
  HAS_IPV6,
  hasProgram,
  pause,
  PERMISSIONS,
  PROGRAM,
  runProgram,
  Service,
  until,
} from "./harness.ts";
import { HAS_NAMESPACES, Network } from "./network.ts";

/** Limits of the service that are seen from outside. */
const QUERIES_PER_CONNECTION_MAX = 128;
const CONNECTIONS_PER_CLIENT_MAX = 128;
/** Answers that a reader who does not read may leave in the service, with room for the rest. */
const UNREAD_GROWTH_BYTES_MAX = 96 * 1024 * 1024;

const dataOf = ({ answers }: Message) => answers.map(({ data }) => data);

/** Sockets of this machine bound to a port. */
async function socketsOn(kind: "udp" | "tcp", { ip, port }: HostPort): Promise<number> {
  const { stdout } = await runProgram("cat", `/proc/net/${kind}${ip.length === 4 ? "" : "6"}`);
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  // State 0A listens; UDP sockets of listeners are 07.
  const state = kind === "tcp" ? "0A" : "07";
  return [...stdout.matchAll(new RegExp(`:${hex} [0-9A-F]+:0000 ${state}`, "g"))].length;
}

Deno.test("svc run answers over UDP and TCP, IPv4 and IPv6", {
  permissions: PERMISSIONS,
}, async (t) => {
  for (const without of [[], ["--allow-ffi"]]) {
    if (PROGRAM !== undefined && without.length > 0) continue; // Its flags are its own.
    await using upstream = await FakeUpstream.start();
    await using service = await Service.start({
      config: { upstream: [{ address: upstream.text }] },
      without,
    });
    const way = without.length === 0 ? "the C library" : "Deno's own calls";
    for (const server of service.listening) {
      await t.step(`by ${way} at ${formatIp(server.ip)}`, async () => {
        const family = server.ip.length;
        for (const exchange of [ask, askTcp]) {
          const name = `${exchange.name}-${family}.example`.toLowerCase();
          assert.deepEqual(dataOf(await exchange(server, name, Qtype.A)), ["192.0.2.1"]);
          assert.deepEqual(dataOf(await exchange(server, name, Qtype.AAAA)), ["2001:db8::1"]);
          const asked = await upstream.total(name);
          assert(asked >= 2);
          const again = await exchange(server, name, Qtype.A);
          assert.deepEqual([dataOf(again), await upstream.total(name)], [["192.0.2.1"], asked]);
          const health = await exchange(server, "health.svc.test", Qtype.A);
          assert.deepEqual(dataOf(health), ["127.0.0.1"]);
        }
      });
    }
    assert.equal(
      service.count("no C library here: UDP goes the portable way, in one isolate"),
      without.length,
    );
    assert.equal((await service.stop()).code, 0);
    service.assertCalm();
  }
});

Deno.test("svc run shares a port between isolates", { permissions: PERMISSIONS }, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({
    config: {
      server: { listen: ["127.0.0.1:0"], workers: 2 },
      upstream: [{ address: upstream.text }],
    },
  });
  assert.equal(await socketsOn("udp", service.address), 2);
  assert.equal(await socketsOn("tcp", service.address), 2);
  // Each isolate has a cache of its own: the kernel deals clients out by their source port.
  for (let i = 0; i < 40; i++) await ask(service.address, "shared.example", Qtype.A);
  const asked = await upstream.total("shared.example");
  assert(asked >= 2, "a query at each isolate");
  for (let i = 0; i < 40; i++) await askTcp(service.address, "shared.example", Qtype.A);
  assert.equal(await upstream.total("shared.example"), asked);
  service.assertCalm();
});

Deno.test("svc run and dnsperf agree", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("dnsperf"),
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({
    config: {
      server: { workers: 2 },
      upstream: [{ address: upstream.text }],
      filter: { rules: ["||blocked.example^"] },
    },
  });
  // Cached, blocked and own names in turn, and a new one now and then.
  const lines = Array.from(
    { length: 1_500 },
    (_, i) =>
      i % 50 === 0
        ? `new-${i}.example A`
        : ["www.example A", "x.blocked.example AAAA", "health.svc.test A"][i % 3],
  );
  for (const server of service.listening) {
    for (const mode of ["udp", "tcp"]) {
      await t.step(`${mode}, ${server.ip.length === 4 ? "IPv4" : "IPv6"}`, async () => {
        const load = await dnsperf(server, service.directory, lines, 3_000, "-m", mode);
        const { sent, completed, lost, rcodes, text } = load;
        assert.deepEqual([sent, completed, lost], [lines.length, lines.length, 0], text);
        assert.deepEqual(rcodes, { NOERROR: lines.length }, text);
      });
    }
  }
  service.assertCalm();
});

Deno.test("svc run answers TCP queries in the order in which answers come", {
  permissions: PERMISSIONS,
}, async () => {
  const slow = Promise.withResolvers<void>();
  await using upstream = await FakeUpstream.start(async (query) => {
    if (query.name.toLowerCase().startsWith("slow")) await slow.promise;
    return address(query);
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "5s" }] },
  });
  using client = await TcpClient.connect(service.address);
  const query = (name: string) => encodeQuery(name, Qtype.A, { id: nextId() });
  const names = ["slow.example", "a.example", "health.svc.test", "b.example"];
  await client.send(...names.map(query));
  const first = [await client.message(), await client.message(), await client.message()];
  assert.deepEqual(
    first.map(({ questions }) => questions[0].name).sort(),
    ["a.example", "b.example", "health.svc.test"],
  );
  slow.resolve();
  assert.equal((await client.message()).questions[0].name, "slow.example");
  // Byte for byte, and then half closed: the answer still comes, and the end after it.
  for (const byte of framed([query("c.example")])) await client.write(Uint8Array.of(byte));
  await client.conn.closeWrite();
  assert.equal((await client.message()).questions[0].name, "c.example");
  assert.equal(await client.next(), null);
  service.assertCalm();
});

Deno.test("svc run bounds what a TCP client may hold", { permissions: PERMISSIONS }, async (t) => {
  const held = Promise.withResolvers<void>();
  const large = txtRdata(16_000);
  await using upstream = await FakeUpstream.start(async (query) => {
    const name = query.name.toLowerCase();
    if (name.startsWith("held")) await held.promise;
    if (name !== "large.example") return address(query);
    if (query.transport === "udp") return truncated(query);
    return answer(query, { answers: [{ type: Qtype.TXT, ttl: 300, data: large }] });
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "5s" }] },
  });
  const { address: server } = service;

  // Begun first, as it takes the longest.
  using idle = await TcpClient.connect(server);
  using dripping = await TcpClient.connect(server);
  const idleEnds = idle.next();
  await dripping.write(Uint8Array.of(0, 40, 1)); // The start of a query that never gets whole.
  const drippingEnds = dripping.next();

  await t.step("queries in flight on one connection", async () => {
    using client = await TcpClient.connect(server);
    const total = QUERIES_PER_CONNECTION_MAX + 72;
    const names = Array.from({ length: total }, (_, i) => `held-${i}.example`);
    await client.send(...names.map((name) => encodeQuery(name, Qtype.A, { id: nextId() })));
    const asked = () => new Set(upstream.seen.map(({ name }) => name.toLowerCase())).size;
    await until("as many as may be", () => asked() >= QUERIES_PER_CONNECTION_MAX);
    await ask(server, "meanwhile.example", Qtype.A);
    assert.equal(asked(), QUERIES_PER_CONNECTION_MAX + 1);
    held.resolve();
    const answered = new Set<string>();
    for (let i = 0; i < total; i++) answered.add((await client.message()).questions[0].name);
    assert.equal(answered.size, total);
  });

  await t.step("a reader that does not read", async () => {
    assert.equal((await askTcp(server, "large.example", Qtype.TXT)).answers.length, 1);
    const before = await service.residentBytes();
    using client = await TcpClient.connect(server);
    const queries = framed(Array.from(
      { length: 8_000 },
      () => encodeQuery("large.example", Qtype.TXT, { id: nextId() }),
    ));
    // 128 MB of answers are asked for: far more than socket buffers hold.
    await assert.rejects(async () => {
      await client.write(queries);
      await until("the end of the connection", async () => {
        await client.write(framed([encodeQuery("svc.test", Qtype.A)]));
        await pause(10);
        return false;
      });
    }, /reset|broken pipe/i);
    assert(await service.residentBytes() - before < UNREAD_GROWTH_BYTES_MAX);
    assert.equal((await askTcp(server, "large.example", Qtype.TXT)).answers.length, 1);
  });

  await t.step("connections without a whole query", async () => {
    assert.deepEqual(await Promise.all([idleEnds, drippingEnds]), [null, null]);
  });
  await t.step(
    "connections of one client: the one that is idle for longest makes room",
    async () => {
      const works = async (client: TcpClient) => {
        await client.send(encodeQuery("health.svc.test", Qtype.A, { id: nextId() })).catch(
          () => {},
        );
        return await client.next() !== null;
      };
      const OVER = 3;
      using clients = new DisposableStack();
      const open: TcpClient[] = [];
      for (let i = 0; i < CONNECTIONS_PER_CLIENT_MAX + OVER; i++) {
        open.push(clients.use(await TcpClient.connect(server)));
        assert(await works(open[i]), `connection ${i}`);
      }
      const working = await Promise.all(open.map(works));
      assert.equal(working.filter((does) => does).length, CONNECTIONS_PER_CLIENT_MAX);
      if (HAS_IPV6) await askTcp(service.address6, "health.svc.test", Qtype.A);
      await ask(server, "health.svc.test", Qtype.A);
    },
  );

  service.assertCalm();
});

Deno.test("svc run cuts answers to what the client takes", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using upstream = await FakeUpstream.start((query) => {
    const size = Number(/^(\d+)\./.exec(query.name)?.[1]);
    // Header 12, question, then the record's head 12 and its text with a length byte each 255.
    const text = size - 12 - (query.name.length + 2 + 4) - 12;
    const whole = answer(query, {
      answers: [{ type: Qtype.TXT, ttl: 300, data: txtRdata(text - Math.ceil(text / 256)) }],
    });
    return query.transport === "udp" && size > 1_200 ? truncated(query) : whole;
  });
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }] },
  });
  const OPT = 11;
  // Bytes of the answer without OPT, the client's EDNS size (0: none), whether it is cut.
  const rows = [
    [512, 0, false],
    [513, 0, true],
    [512 - OPT, 512, false],
    [513 - OPT, 512, true],
    [512 - OPT, 100, false], // Less than 512 means 512 (RFC 6891 §6.2.3).
    [513 - OPT, 100, true],
    [900 - OPT, 900, false],
    [901 - OPT, 900, true],
    [1_232 - OPT, 1_232, false],
    [1_233 - OPT, 1_232, true],
    [1_233 - OPT, 4_096, true],
    [1_232 - OPT, 65_535, false],
    [9_000, 65_535, true],
  ] as const;
  for (const [size, payload, cut] of rows) {
    await t.step(`${size} bytes for ${payload || "no EDNS"}`, async () => {
      const name = `${size}.example`;
      const options = { id: nextId(), ...(payload > 0 && { edns: { payload } }) };
      for (const turn of ["from upstream", "from the cache"]) {
        const packet = encodeQuery(name, Qtype.TXT, options);
        const bytes = await exchangeUdp(service.address, packet);
        const message = decode(bytes);
        assert.deepEqual([message.tc, message.answers.length], [cut, cut ? 0 : 1], turn);
        assert.equal(message.opt === null, payload === 0);
        if (!cut) assert.equal(bytes.length, size + (payload > 0 ? OPT : 0));
      }
      const whole = await askTcp(service.address, name, Qtype.TXT, options);
      assert.deepEqual([whole.tc, whole.answers.length], [false, 1]);
    });
  }
  service.assertCalm();
});

Deno.test("svc run gives SERVFAIL with an extended error to queries beyond those in flight", {
  permissions: PERMISSIONS,
}, async () => {
  /** Of the only upstream: others would find as many again. */
  const FLIGHTS_MAX = 2_048;
  const OVER = 104;
  // As many answers at one time as the buffer of a client's socket holds.
  const PER_CLIENT = 100;
  let silent = true;
  await using upstream = await FakeUpstream.start((query) => silent ? null : address(query));
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text, timeout: "4s" }] },
  });
  using clients = new DisposableStack();
  const opened: UdpClient[] = [];
  for (let i = 0; i < (FLIGHTS_MAX + OVER) / PER_CLIENT; i++) {
    opened.push(clients.use(await UdpClient.open(service.address)));
  }
  const received = () => opened.flatMap((client) => client.received.map(decode));
  /** Asks what has no answer yet, as clients do: a busy machine may lose a packet. */
  const askAll = async () => {
    const answered = new Set(received().map(({ id }) => id));
    for (let i = 0; i < FLIGHTS_MAX + OVER; i++) {
      if (answered.has(i)) continue;
      const client = opened[Math.floor(i / PER_CLIENT)];
      client.send(encodeQuery(`n${i}.example`, Qtype.A, { id: i, edns: {} }));
      if (i % 64 === 63) await pause(1);
    }
  };
  const tooMany = () =>
    received().filter(({ opt }) => /too many queries wait for/.test(opt?.errors[0]?.text ?? ""));
  let rounds = 0;
  const beganMs = performance.now();
  await until("answers to queries too many", async () => {
    // None, if the first ones were given up before the last ones came.
    if (rounds++ === 0 || rounds % 50 === 0) await askAll();
    await pause(100);
    return tooMany().length > 0;
  });
  // Later on, on a busy machine, some of the others are asked for a second time, which takes room as well.
  if (performance.now() - beganMs < 900) {
    assert(tooMany().length <= OVER, `${tooMany().length} are too many`);
  }
  for (const { rcode } of tooMany()) assert.equal(rcode, Rcode.ServFail);
  // What needs no upstream is answered all the same; and all is well when the upstream is.
  assert.equal((await ask(service.address, "health.svc.test", Qtype.A)).answers.length, 1);
  silent = false;
  await until("an answer to all", async () => {
    if (new Set(received().map(({ id }) => id)).size === FLIGHTS_MAX + OVER) return true;
    await askAll();
    await pause(500);
    return false;
  });
  await until("an upstream that is trusted again", async () => {
    const { rcode } = await ask(service.address, `after${nextId()}.example`, Qtype.A);
    return rcode === Rcode.NoError;
  });
  service.assertCalm();
});

Deno.test("svc run keeps descriptors for clients when upstreams are silent", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("prlimit"),
}, async () => {
  let silent = true;
  await using upstream = await FakeUpstream.start((query) => silent ? null : address(query));
  await using service = await Service.start({
    prefix: ["prlimit", "--nofile=1024:1024"],
    config: { upstream: [{ address: upstream.text }] },
  });
  using client = await UdpClient.open(service.address);
  // More questions than there are descriptors, each with a socket of its own.
  for (let i = 0; i < 2_000; i++) {
    client.send(encodeQuery(`n${i}.example`, Qtype.A, { id: i }));
    if (i % 64 === 63) await pause(1);
  }
  assert.equal((await ask(service.address, "health.svc.test", Qtype.A)).answers.length, 1);
  for (let i = 0; i < 10; i++) {
    assert.equal((await askTcp(service.address, "health.svc.test", Qtype.A)).answers.length, 1);
  }
  silent = false;
  await until("an upstream that is trusted again", async () => {
    const { rcode } = await ask(service.address, `after${nextId()}.example`, Qtype.A);
    return rcode === Rcode.NoError;
  });
  service.assertCalm();
});

/** Has a service in a namespace of its own answer clients of every network. */
async function admitAll(service: Service, prefix: readonly string[]): Promise<void> {
  const { listen } = await service.logged("serving the API");
  const url = `http://${(listen as string[])[0]}/api/v1/settings`;
  const curl = async (...args: string[]) => {
    const [command, ...rest] = [...prefix, "curl", "-sf", "-H", "content-type: application/json"];
    const { code, stdout, stderr } = await runProgram(command, ...rest, ...args, url);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const settings = { ...await curl(), access: { allowed: [], disallowed: [] } };
  assert.deepEqual(await curl("-X", "PUT", "-d", JSON.stringify(settings)), settings);
}

Deno.test("svc run answers from the address that was asked", {
  permissions: PERMISSIONS,
  ignore: !HAS_NAMESPACES || !hasProgram("dig") || !hasProgram("curl"),
}, async (t) => {
  const lasts = ["1", "2", "3"];
  await using wire = await Network.make(
    [
      ...lasts.flatMap((last) => [`192.0.2.${last}/24`, `2001:db8::${last}/64`]),
      "198.51.100.1/32",
    ],
    ["192.0.2.100/24", "2001:db8::100/64"],
  );
  await wire.clientRoute("198.51.100.0/24", "192.0.2.1");
  const FLOATING = "203.0.113.9";
  const FLOATING_6 = "2001:db8:1::9";
  await using service = await Service.start({
    prefix: wire.atServer,
    config: {
      server: {
        listen: ["0.0.0.0:0", "[::]:0", `${FLOATING}:5301`, `[${FLOATING_6}]:5301`],
        workers: 2,
      },
      filter: { rules: ["||blocked.example^"] },
    },
  });
  await admitAll(service, wire.atServer);
  const [v4, v6, floating, floating6] = service.listening;
  const lookUpFrom = (ip: string, { port }: HostPort, args: string) => {
    const parsed = parseIp(ip);
    // dig itself insists on the source address of an answer. A scope is text only.
    if (parsed !== null) return lookUp("dig", { ip: parsed, port }, args, wire.atClient);
    const [command, ...rest] = [...wire.atClient, "dig", `@${ip}`, "-p", `${port}`];
    return runProgram(command, ...rest, "-r", "+tries=1", "+timeout=8", ...args.split(" "))
      .then(({ stdout }) => stdout);
  };
  const asked: [string, HostPort][] = [
    ...["192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.1"].map((ip): [string, HostPort] => [
      ip,
      v4,
    ]),
    ...["2001:db8::1", "2001:db8::2", "2001:db8::3", await wire.linkLocal()].map((
      ip,
    ): [string, HostPort] => [ip, v6]),
  ];
  for (const [ip, at] of asked) {
    await t.step(`wildcard, asked at ${ip}`, async () => {
      for (const way of ["+notcp", "+tcp"]) {
        const text = await lookUpFrom(ip, at, `${way} blocked.example A`);
        assert.match(text, /status: NOERROR[^]*0\.0\.0\.0/, text);
        assert.match(text, /EDE: 15 \(Blocked\)/);
      }
    });
  }
  await t.step("addresses that come later", async () => {
    await wire.addAddress(`${FLOATING}/32`);
    await wire.addAddress(`${FLOATING_6}/128`);
    await wire.clientRoute(FLOATING, "192.0.2.2");
    await wire.clientRoute(FLOATING_6, "2001:db8::2");
    for (const [ip, at] of [[FLOATING, floating], [FLOATING_6, floating6]] as const) {
      for (const way of ["+notcp", "+tcp"]) {
        const text = await lookUpFrom(ip, at, `${way} health.svc.test A`);
        assert.match(text, /status: NOERROR[^]*127\.0\.0\.1/, text);
      }
      // The wildcard sockets stand beside them.
      const other = ip === FLOATING ? v4 : v6;
      assert.match(await lookUpFrom(ip, other, "health.svc.test A"), /status: NOERROR/);
    }
  });
  assert.equal((await service.stop()).code, 0);
  service.assertCalm();
});
