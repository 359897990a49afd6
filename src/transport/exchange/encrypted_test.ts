// Goal: an encrypted upstream is asked over few connections, whoever waits is never lost with one, and
// nothing is said to a server that is not the right one. Method: the real exchange against real servers
// of TLS and HTTP/2 on loopback, with certificates of an authority of the test.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { makeAuthority } from "../../../tests/e2e/certificates.ts";
import { parseIp } from "../../addr/mod.ts";
import {
  CONNECTIONS_MAX,
  EncryptedExchange,
  type EncryptedUpstream,
  WAITING_MAX,
} from "./encrypted.ts";
import { QUERIES_PER_CONNECTION_MAX } from "./channel.ts";
import {
  type Asked,
  type AskedHttps,
  type AskedQuic,
  echo,
  fakeDoh,
  fakeDoq,
  fakeDot,
  type FakeServer,
  LOOPBACK,
  message,
  Notes,
  until,
  upstreamAt,
} from "./fakes.ts";
import { DoqChannel, STREAMS_MAX } from "./doq_channel.ts";
import { QuicDialer } from "./quic_dial.ts";

const net = { permissions: { net: true, env: true } } as const;
const authority = await makeAuthority();
const issued = await authority.issue({ names: ["dns.test"], ips: ["127.0.0.1"] });

const KINDS = [["tls", fakeDot], ["https", fakeDoh], ["quic", fakeDoq]] as const;

/** An exchange with one upstream, which is closed in the end. */
function exchangeOf(upstream: EncryptedUpstream) {
  const notes = new Notes();
  const exchange = new EncryptedExchange(notes, QuicDialer);
  const remote = exchange.remote(upstream);
  notes.cancel = (token) => exchange.cancel(token);
  const send = (token: number, packet = message(0x100 + token, token)) =>
    exchange.send(remote, packet, packet.length, token);
  return { notes, exchange, remote, send, [Symbol.dispose]: () => exchange.close() };
}

for (const [transport, start] of KINDS) {
  const test = (name: string, fn: (server: FakeServer) => Promise<void>) =>
    Deno.test(`EncryptedExchange, ${transport}: ${name}`, net, async () => {
      await using server = await start(issued);
      await fn(server);
    });

  test("asks over one connection, answers in any order", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    const { notes, send } = bench;
    for (let token = 1; token <= 3; token++) assert.ok(send(token));
    await until("three queries", () => server.asked.length === 3);
    assert.deepEqual(notes.lines, []);
    for (const asked of server.asked.toReversed()) echo(asked);
    await notes.expect("1: 1 1 2", "2: 1 2 3", "3: 1 3 4");
    server.script = echo;
    assert.ok(send(4));
    await notes.expect("4: 1 4 5");
    assert.deepEqual(server.connections, { opened: 1, open: 1 });
  });

  test("sends again, once, what waits when a connection is lost", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    const { notes, send } = bench;
    send(1);
    send(2);
    await until("both queries", () => server.asked.length === 2);
    server.asked[0].hangUp();
    await until("both, on another connection", () => server.asked.length === 4);
    assert.deepEqual(server.connections, { opened: 2, open: 1 });
    echo(server.asked[2]);
    const [first] = server.asked[2].packet.subarray(2);
    await notes.expect(`${first}: 1 ${first} ${first + 1}`);
    server.asked[3].hangUp();
    await notes.expect(`${3 - first} closed the connection`);
    assert.equal(server.connections.opened, 2, "a third time would be no use");
  });

  test("asks anew after the server closed an idle connection", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    const { notes, send, exchange } = bench;
    server.script = echo;
    send(1);
    await notes.expect("1: 1 1 2");
    server.asked[0].hangUp();
    await until("no connection", () => exchange.connections === 0);
    send(2);
    await notes.expect("2: 1 2 3");
    assert.equal(server.connections.opened, 2);
  });

  test("answers who waited while the server was away", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    const { notes, send } = bench;
    send(1);
    await until("the query", () => server.asked.length === 1);
    await server.stop();
    await notes.expect("1 refused the connection");
    server.script = echo;
    await server.restart();
    send(1);
    await notes.expect("1: 1 1 2");
  });

  test("says nothing more of what was cancelled", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    const { notes, send, exchange } = bench;
    send(1);
    send(2);
    exchange.cancel(1); // Still waiting for the connection.
    await until("the other query", () => server.asked.length === 1);
    send(3);
    await until("the third", () => server.asked.length === 2);
    exchange.cancel(2);
    for (const asked of server.asked) echo(asked);
    await notes.expect("3: 1 3 4");
  });

  test("refuses servers that are not the right one, and says why", async () => {
    const day = 24 * 60 * 60 * 1_000;
    const at = (days: number) => new Date(Date.now() + days * day);
    const other = await makeAuthority("another authority");
    const rows = [
      [
        { names: ["other.test"] },
        authority,
        /^1 shows a certificate that is not valid for dns\.test$/,
      ],
      [
        { names: ["dns.test"], notBefore: at(-9), notAfter: at(-1) },
        authority,
        /^1 shows a certificate that expired at \d{4}-\d\d-\d\dT/,
      ],
      [
        { names: ["dns.test"], notBefore: at(1), notAfter: at(9) },
        authority,
        /^1 shows a certificate that is not valid before \d{4}-\d\d-\d\dT/,
      ],
      [
        { names: ["dns.test"] },
        other,
        /^1 shows a certificate of an authority that is not trusted/,
      ],
    ] as const;
    for (const [options, issuer, want] of rows) {
      await using wrong = await start(await issuer.issue(options));
      using bench = exchangeOf(upstreamAt(transport, wrong.port, authority.cert));
      bench.send(1);
      await until("the refusal", () => bench.notes.lines.length === 1);
      assert.match(bench.notes.lines[0], want);
      assert.equal(wrong.asked.length, 0, "nothing was said to it");
    }
  });

  test("checks a server without a name by its address", async (server) => {
    server.script = echo;
    const byAddress = upstreamAt(transport, server.port, authority.cert, {
      serverName: "127.0.0.1",
    });
    using bench = exchangeOf(byAddress);
    bench.send(1);
    await bench.notes.expect("1: 1 1 2");
    await using named = await start(await authority.issue({ names: ["dns.test"] }));
    using refused = exchangeOf({ ...byAddress, port: named.port });
    refused.send(1);
    await refused.notes.expect("1 shows a certificate that is not valid for 127.0.0.1");
  });

  test("trusts nobody but the public authorities without a file of its own", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, null));
    bench.send(1);
    await bench.notes.expect("1 shows a certificate of an authority that is not trusted");
  });

  test("tries the addresses in turn, and waits for one that is looked up", async (server) => {
    server.script = echo;
    const nobody = LOOPBACK.map((byte, i) => i === 3 ? 9 : byte); // Nobody listens at 127.0.0.9.
    using bench = exchangeOf(
      upstreamAt(transport, server.port, authority.cert, { ips: [nobody, LOOPBACK] }),
    );
    bench.send(1);
    await bench.notes.expect("1: 1 1 2");
    using named = exchangeOf(upstreamAt(transport, server.port, authority.cert, { ips: [] }));
    named.send(1);
    named.send(2);
    named.remote.failWaiting("has a name that can't be looked up");
    await named.notes.expect(
      "1 has a name that can't be looked up",
      "2 has a name that can't be looked up",
    );
    named.send(3);
    named.remote.ips = [LOOPBACK];
    await named.notes.expect("3: 1 3 4");
  });

  test("bounds connections and those who wait", async (server) => {
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    const { send, exchange, notes } = bench;
    const perConnection =
      { tls: QUERIES_PER_CONNECTION_MAX, https: 100, quic: STREAMS_MAX }[transport];
    const most = CONNECTIONS_MAX * perConnection;
    let sent = 0;
    while (sent < WAITING_MAX) assert.equal(send(sent++), "sent", `query ${sent}`);
    assert.equal(send(WAITING_MAX), "full", "no room to wait");
    await until("every connection, full", () => server.asked.length === most);
    assert.equal(exchange.connections, CONNECTIONS_MAX);
    // As answers come, those who waited go out.
    server.script = echo;
    for (const asked of server.asked.slice()) echo(asked);
    await until("an answer for each", () => notes.lines.length === WAITING_MAX);
    assert.ok(notes.lines.every((line) => line.includes(": ")));
    assert.equal(server.connections.opened, CONNECTIONS_MAX);
  });
}

Deno.test("EncryptedExchange keeps two queries of one ID apart", net, async () => {
  await using server = await fakeDot(issued);
  using bench = exchangeOf(upstreamAt("tls", server.port, authority.cert));
  bench.send(1, message(7, 1));
  bench.send(2, message(7, 5));
  await until("both", () => server.asked.length === 2);
  const ids = server.asked.map(({ packet }) => packet.subarray(0, 2).join());
  assert.notEqual(ids[0], ids[1]);
  for (const asked of server.asked) echo(asked);
  await bench.notes.expect("1: 0 7 2", "2: 0 7 6");
});

Deno.test(
  "EncryptedExchange speaks to servers of TLS that know no ALPN, and of 1.2",
  net,
  async () => {
    await using server = await fakeDot(issued, ["dot"]);
    server.script = echo;
    using bench = exchangeOf(upstreamAt("tls", server.port, authority.cert));
    bench.send(1);
    await bench.notes.expect("1: 1 1 2");
    await using other = await fakeDot(issued, ["h2"]);
    using refused = exchangeOf(upstreamAt("tls", other.port, authority.cert));
    refused.send(1);
    await refused.notes.expect("1 does not speak DNS over TLS");
  },
);

Deno.test("EncryptedExchange says what is no TLS, and takes no answer from it", net, async () => {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.resume();
    socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  using bench = exchangeOf(upstreamAt("tls", port, authority.cert));
  bench.send(1);
  await bench.notes.expect("1 does not speak TLS on this port");
  await new Promise((resolve) => server.close(resolve));
});

Deno.test(
  "EncryptedExchange goes on at the address that works when all are told anew",
  net,
  async () => {
    await using server = await fakeDot(issued);
    server.script = echo;
    let tried = 0;
    const other = createServer((socket) => {
      tried++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => other.listen(server.port, "127.0.0.2", resolve));
    const ips = () => [parseIp("127.0.0.2")!, parseIp("127.0.0.1")!];
    using bench = exchangeOf({ ...upstreamAt("tls", server.port, authority.cert), ips: ips() });
    bench.send(1);
    await bench.notes.expect("1: 1 1 2");
    assert.equal(tried, 1);
    bench.remote.ips = ips();
    await server.stop();
    await server.restart();
    bench.send(2);
    await bench.notes.expect("2: 1 2 3");
    assert.deepEqual([server.connections.opened, tried], [2, 1]);
    bench.remote.ips = [parseIp("127.0.0.2")!];
    await server.stop();
    bench.send(3);
    await bench.notes.expect("3 closed the connection before it was secure");
    await new Promise((resolve) => other.close(resolve));
  },
);

Deno.test("EncryptedExchange posts to the path of the URL (RFC 8484 §4.1)", net, async () => {
  await using server = await fakeDoh(issued);
  server.script = echo;
  const path = "/some/path?key=1";
  using bench = exchangeOf(upstreamAt("https", server.port, authority.cert, { path }));
  bench.send(1);
  await bench.notes.expect("1: 1 1 2");
  const { head } = server.asked[0] as AskedHttps;
  assert.deepEqual(
    [head[":method"], head[":path"], head[":authority"], head["content-type"], head.accept],
    [
      "POST",
      path,
      `dns.test:${server.port}`,
      "application/dns-message",
      "application/dns-message",
    ],
  );
});

/** Responses that are no answer, and what is said of each. */
const REFUSALS: readonly (readonly [string, (asked: AskedHttps) => void, string])[] = [
  ["a status", ({ stream }) => {
    stream.respond({ ":status": 404, "content-type": "text/plain" });
    stream.end("there is nothing");
  }, "answered with HTTP status 404"],
  ["another type", ({ stream }) => {
    stream.respond({ ":status": 200, "content-type": "text/html" });
    stream.end("<p>");
  }, "answered with something else than a DNS message"],
  ["a body without end", ({ stream }) => {
    stream.respond({ ":status": 200, "content-type": "application/dns-message" });
    stream.write(new Uint8Array(70_000));
  }, "sent more than a DNS message"],
];

Deno.test("EncryptedExchange takes no response of HTTP that is no answer", net, async (t) => {
  for (const [name, react, want] of REFUSALS) {
    await t.step(name, async () => {
      await using server = await fakeDoh(issued);
      server.script = (asked: Asked) => react(asked as AskedHttps);
      using bench = exchangeOf(upstreamAt("https", server.port, authority.cert));
      bench.send(1);
      await bench.notes.expect(`1 ${want}`);
      server.script = echo;
      bench.send(2);
      await bench.notes.expect("2: 1 2 3");
      assert.equal(server.connections.opened, 1, "the connection is as good as before");
    });
  }
});

Deno.test("EncryptedExchange keeps to the streams that a server takes", net, async () => {
  await using server = await fakeDoh(issued, 3);
  using bench = exchangeOf(upstreamAt("https", server.port, authority.cert));
  server.script = echo;
  bench.send(1); // The server has said by then how many it takes.
  await bench.notes.expect("1: 1 1 2");
  server.script = null;
  for (let token = 2; token <= 5; token++) bench.send(token);
  await until("as many as fit, and another connection", () => server.asked.length === 5);
  const counts = [0, 1].map((i) => server.asked.filter((asked) => asked.connection === i).length);
  assert.deepEqual(counts, [4, 1]);
});

Deno.test("EncryptedExchange lets a server go that says so, and loses no answer", net, async () => {
  await using server = await fakeDoh(issued);
  using bench = exchangeOf(upstreamAt("https", server.port, authority.cert));
  bench.send(1);
  await until("the query", () => server.asked.length === 1);
  (server.asked[0] as AskedHttps).stream.session?.close(); // GOAWAY (RFC 9113 §6.8).
  await new Promise((resolve) => setTimeout(resolve, 50));
  bench.send(2);
  await until("the other, on a connection of its own", () => server.asked.length === 2);
  assert.deepEqual(server.asked.map(({ connection }) => connection), [0, 1]);
  for (const asked of server.asked) echo(asked);
  await bench.notes.expect("1: 1 1 2", "2: 1 2 3");
});

for (const [transport, start] of KINDS) {
  const name =
    `EncryptedExchange leaves a dead connection of ${transport}, and those who wait go on`;
  Deno.test(name, net, async () => {
    await using server = await start(issued);
    server.script = (asked) => asked.connection > 0 ? echo(asked) : undefined; // Silent at first.
    using bench = exchangeOf(upstreamAt(transport, server.port, authority.cert));
    bench.send(1);
    await bench.notes.expect("1: 1 1 2");
    assert.equal(server.connections.opened, 2);
  });
}

Deno.test(
  "DoqChannel asks with ID 0 and the end behind the query (RFC 9250 §4.2)",
  net,
  async () => {
    await using server = fakeDoq(issued);
    using bench = exchangeOf(upstreamAt("quic", server.port, authority.cert));
    bench.send(1, message(7, 1));
    bench.send(2, message(7, 5));
    await until("both", () => server.asked.length === 2); // The server saw the end of each.
    assert.ok(server.asked.every(({ packet }) => packet[0] === 0 && packet[1] === 0));
    for (const asked of server.asked.toReversed()) echo(asked);
    await bench.notes.expect("1: 0 7 2", "2: 0 7 6");
  },
);

Deno.test("DoqChannel takes the longest answer there is", net, async () => {
  await using server = fakeDoq(issued);
  server.script = ({ reply }) => reply(new Uint8Array(0xffff));
  using bench = exchangeOf(upstreamAt("quic", server.port, authority.cert));
  bench.send(1);
  await until("the answer", () => bench.notes.lines.length === 1);
  assert.equal(bench.notes.lines[0].split(" ").length, 1 + 0xffff);
});

const OTHER = "1 sent something else than one DNS message";
/** Streams that are no answer, and what is said of each. */
const MISDEEDS: readonly (readonly [string, (asked: AskedQuic) => void, string])[] = [
  ["half an answer", ({ write }) => write(Uint8Array.of(0, 9, 0, 0, 1), true), OTHER],
  ["half a length", ({ write }) => write(Uint8Array.of(0), true), OTHER],
  ["nothing", ({ write }) => write(new Uint8Array(0), true), OTHER],
  ["a length that is too short", ({ write }) => write(Uint8Array.of(0, 2, 0, 0, 1), true), OTHER],
  [
    "two answers",
    ({ write }) => write(Uint8Array.of(0, 3, 0, 0, 1, 0, 3, 0, 0, 1), true),
    OTHER,
  ],
  ["more than an answer, without end", ({ write }) => write(new Uint8Array(70_000), false), OTHER],
  ["an ID", ({ packet, reply }) => reply(Uint8Array.of(1, 1, ...packet.subarray(2))), OTHER],
];

Deno.test("DoqChannel takes no stream that is no answer, and keeps the others", net, async (t) => {
  for (const [name, react, want] of MISDEEDS) {
    await t.step(name, async () => {
      await using server = fakeDoq(issued);
      using bench = exchangeOf(upstreamAt("quic", server.port, authority.cert));
      bench.send(1);
      bench.send(2);
      await until("both", () => server.asked.length === 2);
      const [wrong, other] = server.asked.toSorted((a, b) => a.packet[2] - b.packet[2]);
      react(wrong as AskedQuic);
      await bench.notes.expect(want);
      echo(other);
      await bench.notes.expect("2: 1 2 3");
      assert.deepEqual(server.connections, { opened: 1, open: 1 }, "as good as before");
    });
  }
});

/** A connection whose streams end as a test says: the runtime's own servers reset none. */
function connOf(readError: string): Deno.QuicConn {
  const createBidirectionalStream = () =>
    Promise.resolve({
      readable: new ReadableStream({ type: "bytes", pull: () => Promise.reject(Error(readError)) }),
      writable: new WritableStream(),
    });
  const closed = new Promise<never>(() => {});
  const conn = { closed, createBidirectionalStream, close: () => {} };
  return conn as unknown as Deno.QuicConn;
}

Deno.test("DoqChannel tells a stream that was reset from a connection that is gone", async () => {
  const rows = [
    ["stream reset by peer: error 3", ["failed: broke off the answer"]],
    ["connection lost", ["ended", "lost"]],
  ] as const;
  for (const [readError, want] of rows) {
    const lines: string[] = [];
    const channel = new DoqChannel(connOf(readError), {
      onAnswer: () => lines.push("answered"),
      onFailure: (_query, reason) => lines.push(`failed: ${reason}`),
      onLost: () => lines.push("lost"),
      onEnd: () => lines.push("ended"),
    });
    channel.send({ token: 1, packet: message(1, 1), channel: null, isAgain: false });
    await until("what becomes of it", () => lines.length === want.length);
    assert.deepEqual(lines, want);
    assert.equal(channel.pending, 0);
    channel.close();
  }
});

Deno.test("DoqChannel lets go of an answer that never ends", net, async () => {
  await using server = fakeDoq(issued);
  server.script = (asked) => (asked as AskedQuic).write(Uint8Array.of(0, 3, 0, 0, 1), false);
  using bench = exchangeOf(upstreamAt("quic", server.port, authority.cert));
  bench.send(1);
  await until("the query", () => server.asked.length === 1);
  bench.exchange.cancel(1); // As who asks does, when its time is over.
  server.script = echo;
  bench.send(2);
  await bench.notes.expect("2: 1 2 3");
  assert.deepEqual(server.connections, { opened: 1, open: 1 });
});

Deno.test("DoqChannel waits where the server takes few streams", net, async () => {
  await using server = fakeDoq(issued, 2);
  using bench = exchangeOf(upstreamAt("quic", server.port, authority.cert));
  for (let token = 1; token <= 5; token++) bench.send(token);
  await until("as many as fit", () => server.asked.length === 2);
  bench.exchange.cancel(3); // Its stream is another one's.
  server.script = echo;
  for (const asked of server.asked.slice()) echo(asked);
  await bench.notes.expect("1: 1 1 2", "2: 1 2 3", "4: 1 4 5", "5: 1 5 6");
  for (let token = 6; token <= 9; token++) {
    bench.send(token);
    await bench.notes.expect(`${token}: 1 ${token} ${token + 1}`);
  }
  assert.equal(server.connections.opened, 1);
});

Deno.test("QuicDialer says who speaks something else, and where there is nobody", net, async () => {
  await using other = fakeDoq(issued, 1, "h3");
  using refused = exchangeOf(upstreamAt("quic", other.port, authority.cert));
  refused.send(1);
  await refused.notes.expect("1 does not speak DNS over QUIC");
  const nobody = LOOPBACK.map((byte, i) => i === 3 ? 9 : byte);
  using silent = exchangeOf(upstreamAt("quic", other.port, authority.cert, { ips: [nobody] }));
  silent.send(1);
  await silent.notes.expect("1 took no connection within 3000 ms");
});
