import assert from "node:assert/strict";
import { parseIp } from "../../addr/mod.ts";
import { encodeQuery } from "../../dns/mod.ts";
import { closeSocket, openListener, openNative, portOf, UdpEphemeral } from "../../native/mod.ts";
import { a, describe } from "../../resolver/fakes.ts";
import { Transport } from "../../resolver/mod.ts";
import { ForwarderBench, quietly } from "../../resolver/forward/fakes.ts";
import { Counter } from "../../telemetry/mod.ts";
import { type DoqExchange, type TcpConnection, UdpListener } from "../../transport/mod.ts";
import { DatagramFront, DoqFront, OVER_DOT, OVER_TCP, StreamFront, UdpFront } from "./fronts.ts";

const none = { permissions: "none" } as const;
const native = openNative();
const LOOPBACK = parseIp("127.0.0.1")!;
const HEALTH = encodeQuery("health.svc.test", 1, { id: 1 });
const HEALTHY = "NOERROR rd ra; health.svc.test 10 A 127.0.0.1";
const QUERY = encodeQuery("www.example", 1, { id: 2 });
const ANSWER = "NOERROR rd ra; www.example 300 A 192.0.2.1";
const RESPONSE = Uint8Array.from(QUERY, (byte, i) => i === 2 ? byte | 0x80 : byte);
const SILENT = "SERVFAIL rd ra";

function answerAll(bench: ForwarderBench): void {
  for (const sent of bench.open) {
    bench.answer(sent, { records: [a(sent.message.questions[0].name, 300)] });
  }
}

/** A connection that notes what is sent on it. */
class FakeConnection implements TcpConnection {
  readonly client = "192.0.2.99";
  serverName: string | null = null;
  readonly sent: string[] = [];
  unsettled = 0;

  send(message: Uint8Array, offset: number, length: number): void {
    this.sent.push(describe(message.slice(offset, offset + length)));
  }

  settled(): void {
    this.unsettled--;
  }

  overLimit(): void {}
}

Deno.test("StreamFront answers at once or later, and settles what waited", none, () => {
  const bench = new ForwarderBench();
  let turns = 0;
  const front = new StreamFront(OVER_TCP, {
    resolver: bench.resolver,
    counts: bench.front.counters.values,
    turn: () => void turns++,
    admits: () => true,
    serverName: null,
  });
  const [first, second] = [new FakeConnection(), new FakeConnection()];
  const ask = (connection: FakeConnection, packet: Uint8Array) => {
    const message = packet.slice();
    if (front.onMessage(connection, message)) connection.unsettled++;
    message.fill(0); // Its bytes are the connection's again.
  };
  for (const connection of [first, second]) front.onOpen(connection);
  ask(first, HEALTH);
  ask(first, QUERY);
  ask(second, QUERY);
  ask(first, RESPONSE);
  ask(first, new Uint8Array(3));
  ask(first, HEALTH);
  assert.deepEqual([first.sent, second.sent], [[HEALTHY, HEALTHY], []]);
  assert.deepEqual([first.unsettled, second.unsettled], [1, 1]);
  answerAll(bench);
  assert.deepEqual([first.sent.at(-1), second.sent], [ANSWER, [ANSWER]]);
  assert.deepEqual([first.unsettled, second.unsettled], [0, 0]);
  ask(first, encodeQuery("silent.example", 1));
  quietly(() => bench.flights.close());
  assert.deepEqual([first.sent.at(-1), first.unsettled], [SILENT, 0]);
  front.onRefused();
  const { values } = bench.front.counters;
  const counted = [Counter.QueriesTcp, Counter.TcpConnections, Counter.TcpRefused, Counter.Dropped];
  assert.deepEqual(counted.map((counter) => values[counter]), [7, 2, 1, 2]);
  assert.equal(turns, 7);
});

Deno.test("StreamFront hands in the client ID of a TLS server name", none, () => {
  const bench = new ForwarderBench();
  const ids: (string | null)[] = [];
  const { resolver } = bench;
  const decide = resolver.decide.bind(resolver);
  resolver.decide = (transport, from, ...rest) => {
    assert.equal(transport, Transport.Dot);
    ids.push(from.id === null ? null : new TextDecoder().decode(from.id));
    return decide(transport, from, ...rest);
  };
  const front = new StreamFront(OVER_DOT, {
    resolver,
    counts: bench.front.counters.values,
    turn: () => {},
    admits: (transport, { bytes, offset }) =>
      transport === Transport.Dot && bytes[offset + 3] === 1,
    serverName: "dns.svc.test",
  });
  for (const name of ["Phone.dns.svc.test", "dns.svc.test", null]) {
    const connection = new FakeConnection();
    connection.serverName = name;
    front.onOpen(connection);
    front.onMessage(connection, HEALTH.slice());
    assert.deepEqual(connection.sent, [HEALTHY]);
  }
  assert.deepEqual(ids, ["phone", null, null]);
  assert.deepEqual([front.admits("192.0.2.1"), front.admits("192.0.2.2")], [true, false]);
  front.onHandshakeFailure();
  const counters = [
    ...[Counter.QueriesDot, Counter.DotConnections, Counter.TlsHandshakeFailures],
    ...[Counter.QueriesTcp, Counter.TcpConnections],
  ];
  assert.deepEqual(counters.map((counter) => bench.count(counter)), [3, 3, 1, 0, 0]);
});

Deno.test("DoqFront ends each exchange once: an answer now, later, or none", none, () => {
  const bench = new ForwarderBench();
  const front = new DoqFront({
    resolver: bench.resolver,
    counts: bench.front.counters.values,
    turn: () => {},
    admits: () => true,
    serverName: null,
  });
  const from = { client: "2001:db8::1", serverName: null, overLimit: () => {} };
  front.onOpen(from);
  const ask = (packet: Uint8Array): string[] => {
    const ends: string[] = [];
    const exchange: DoqExchange = {
      from,
      send: (bytes, offset, length) =>
        void ends.push(describe(bytes.slice(offset, offset + length))),
      cancel: () => void ends.push("cancelled"),
    };
    const message = packet.slice();
    front.onMessage(exchange, message);
    return ends;
  };
  assert.deepEqual(ask(HEALTH), [HEALTHY]);
  assert.deepEqual(ask(RESPONSE), ["cancelled"]);
  const waiting = [ask(QUERY), ask(QUERY)];
  assert.deepEqual(waiting, [[], []]);
  answerAll(bench);
  assert.deepEqual(waiting, [[ANSWER], [ANSWER]]);
  const silent = ask(encodeQuery("silent.example", 1));
  quietly(() => bench.flights.close());
  assert.deepEqual(silent, [SILENT]);
  front.onRefused();
  front.onHandshakeFailure();
  const counters = [
    ...[Counter.QueriesDoq, Counter.DoqConnections, Counter.DoqRefused],
    Counter.TlsHandshakeFailures,
  ];
  assert.deepEqual(counters.map((counter) => bench.count(counter)), [5, 1, 1, 1]);
});

Deno.test("DatagramFront answers each datagram where it came from", none, () => {
  const bench = new ForwarderBench();
  const replies: string[] = [];
  const ask = (packet: Uint8Array, who: string) => {
    const reply = (response: Uint8Array) => void replies.push(`${who}: ${describe(response)}`);
    new DatagramFront(bench.resolver, "192.0.2.1", reply).onPacket(packet);
  };
  ask(HEALTH, "a");
  ask(QUERY, "b");
  ask(QUERY, "c");
  ask(RESPONSE, "d");
  assert.deepEqual(replies.splice(0), [`a: ${HEALTHY}`]);
  answerAll(bench);
  assert.deepEqual(replies.splice(0).sort(), [`b: ${ANSWER}`, `c: ${ANSWER}`]);
  ask(encodeQuery("silent.example", 1), "e");
  quietly(() => bench.flights.close());
  assert.deepEqual(replies, [`e: ${SILENT}`]);
  bench.checkIdle();
});

Deno.test({
  name: "UdpFront answers at once or later, each to whoever asked",
  ignore: native === null,
  permissions: { ffi: true },
  fn: async () => {
    if (native === null) return;
    const bench = new ForwarderBench();
    const fd = openListener(native, "udp", { ip: LOOPBACK, port: 0 });
    const front = new UdpFront(bench.resolver, bench.front.counters.values);
    const listener = new UdpListener(native, fd, front);
    const sockets = new UdpEphemeral(native);
    const remote = UdpEphemeral.remote({ ip: LOOPBACK, port: portOf(native, fd) });
    // More wait than one batch has room for.
    const clients = Array.from({ length: 100 }, () => sockets.open(remote));
    const target = new Uint8Array(2_000);
    const heard = (client: number) => {
      const length = sockets.receive(client, target);
      return length < 0 ? "" : describe(target.slice(0, length));
    };
    const turn = () => {
      listener.receive();
      if (listener.batch.queued > 0) listener.batch.flush();
    };
    const all = async (packet: Uint8Array<ArrayBuffer>) => {
      for (const client of clients) assert.ok(sockets.send(client, packet, packet.length));
      const before = bench.count(Counter.QueriesUdp);
      for (let i = 0; i < 500 && bench.count(Counter.QueriesUdp) < before + 100; i++) {
        turn();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      assert.equal(bench.count(Counter.QueriesUdp), before + 100);
    };
    try {
      await all(HEALTH);
      for (const client of clients) assert.equal(heard(client), HEALTHY);
      await all(QUERY);
      for (const client of clients) assert.equal(heard(client), "");
      assert.equal(bench.flights.waiting, 100);
      answerAll(bench);
      turn();
      for (const client of clients) assert.equal(heard(client), ANSWER);
      await all(RESPONSE as Uint8Array<ArrayBuffer>);
      await all(encodeQuery("silent.example", 1));
      quietly(() => bench.flights.close());
      turn();
      for (const client of clients) assert.deepEqual([heard(client), heard(client)], [SILENT, ""]);
      assert.equal(listener.batch.unsent, 0);
      bench.checkIdle();
    } finally {
      for (const socket of [fd, ...clients]) closeSocket(native, socket);
    }
  },
});
