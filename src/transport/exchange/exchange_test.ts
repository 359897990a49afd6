import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import { type HostPort, parseIp } from "../../addr/mod.ts";
import { getU16 } from "../../bytes/mod.ts";
import { closeSocket, EventQueue, openEpoll, openNative } from "../../native/mod.ts";
import { FrameReader } from "../frames.ts";
import { PlainRemote } from "./remote.ts";
import { CONNECTIONS_ALL_MAX, TcpExchange } from "./tcp.ts";
import { type ExchangeEvents, NativeUdpExchange } from "./udp.ts";
import { PortableUdpExchange } from "./udp_portable.ts";

const native = openNative();
const LOOPBACK = parseIp("127.0.0.1")!;
const WAIT_MS_MAX = 5_000;

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Notes what an exchange tells, as `token: bytes` and `token failure`. */
class Notes implements ExchangeEvents {
  readonly lines: string[] = [];
  onPacket(token: number, packet: Uint8Array, length: number): void {
    this.lines.push(`${token}: ${packet.slice(0, length).join(" ")}`);
  }
  onFailure(token: number, failure: string): void {
    this.lines.push(`${token} ${failure}`);
  }
  async expect(...lines: string[]): Promise<void> {
    await until(lines.join(), () => this.lines.length >= lines.length);
    assert.deepEqual(this.lines.splice(0).sort(), lines);
  }
}

/** A UDP server that answers a packet with its bytes, each one higher; [9] gets no answer. */
async function udpServer(): Promise<{ address: HostPort; froms: number[]; close: () => void }> {
  const socket = createSocket("udp4");
  const froms: number[] = [];
  socket.on("message", (message: Uint8Array, from) => {
    froms.push(from.port);
    if (message[0] !== 9) {
      socket.send(Uint8Array.from(message, (b) => b + 1), from.port, from.address);
    }
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    address: { ip: LOOPBACK, port: socket.address().port },
    froms,
    close: () => socket.close(),
  };
}

interface UdpExchange {
  send(remote: PlainRemote, packet: Uint8Array, lengthBytes: number, token: number): string;
  cancel(token: number): void;
}

/** Nobody listens there. */
const NOBODY = new PlainRemote({ ip: LOOPBACK, port: 1 });

async function checkUdp(
  exchange: UdpExchange,
  remote: PlainRemote,
  notes: Notes,
  froms: number[],
): Promise<void> {
  // More bytes than are to be sent, and changed after: the exchange takes what it is told to.
  const packet = Uint8Array.of(1, 2, 3, 4);
  assert.equal(exchange.send(remote, packet, 2, 0), "sent");
  packet.fill(50);
  assert.equal(exchange.send(remote, packet, 1, 1), "sent");
  await notes.expect("0: 2 3", "1: 51");
  assert.equal(new Set(froms).size, 2, "a port each");
  exchange.cancel(0);
  exchange.cancel(1);
  // Used again, and cancelled before the answer is there.
  assert.equal(exchange.send(remote, packet, 1, 0), "sent");
  assert.equal(exchange.send(remote, Uint8Array.of(9), 1, 1), "sent");
  exchange.cancel(0);
  await until("the server has heard all", () => froms.length === 4);
  await new Promise((resolve) => setTimeout(resolve, 30));
  await notes.expect();
  exchange.cancel(1);
  exchange.cancel(1);
  assert.equal(exchange.send(NOBODY, Uint8Array.of(1), 1, 5), "sent");
  await notes.expect("5 is unreachable");
  exchange.cancel(5);
}

Deno.test({
  name: "NativeUdpExchange asks from a port of its own each and tells the answers",
  ignore: native === null,
  permissions: { net: true, ffi: true },
  fn: async () => {
    if (native === null) return;
    const server = await udpServer();
    const epoll = openEpoll(native);
    const queue = new EventQueue(native, epoll, new SharedArrayBuffer(EventQueue.MEMORY_BYTES));
    const notes = new Notes();
    const remote = new PlainRemote(server.address);
    const base = 1 << 30;
    const exchange = new NativeUdpExchange(native, queue, base, notes);
    const turn = setInterval(() => {
      const count = queue.poll();
      for (let i = 0; i < count; i++) {
        assert.ok((queue.token(i) & base) !== 0);
        exchange.ready(queue.token(i));
      }
    }, 1);
    try {
      await checkUdp(exchange, remote, notes, server.froms);
      // An event of the socket before is not taken for one of the socket now.
      const stale = base | (1 << 16) | 7;
      assert.equal(exchange.send(remote, Uint8Array.of(9), 1, 7), "sent");
      exchange.cancel(7);
      assert.equal(exchange.send(remote, Uint8Array.of(9), 1, 7), "sent");
      exchange.ready(stale);
      exchange.ready(base | 8);
      await notes.expect();
      exchange.cancel(7);
    } finally {
      clearInterval(turn);
      closeSocket(native, epoll);
      server.close();
    }
  },
});

Deno.test("PortableUdpExchange does the same without the C library", {
  permissions: { net: true },
}, async () => {
  const server = await udpServer();
  const notes = new Notes();
  const exchange = new PortableUdpExchange(notes);
  const remote = new PlainRemote(server.address);
  try {
    const packet = Uint8Array.of(1, 2, 3, 4);
    assert.equal(exchange.send(remote, packet, 2, 0), "sent");
    packet.fill(50);
    assert.equal(exchange.send(remote, packet, 1, 1), "sent");
    await notes.expect("0: 2 3", "1: 51");
    assert.equal(new Set(server.froms).size, 2, "a port each");
    for (const token of [0, 1, 1]) exchange.cancel(token);
    assert.equal(exchange.send(remote, packet, 1, 0), "sent");
    exchange.cancel(0);
    await new Promise((resolve) => setTimeout(resolve, 30));
    await notes.expect();
  } finally {
    server.close();
  }
});

/** A TCP server whose connections a test answers by hand. */
class TcpServer {
  readonly server: Server;
  readonly queries: { socket: Socket; message: Uint8Array }[] = [];
  readonly sockets: Socket[] = [];

  constructor() {
    this.server = createServer((socket) => {
      this.sockets.push(socket);
      const frames = new FrameReader();
      socket.on("error", () => {});
      socket.on("data", (chunk: Uint8Array) => {
        frames.push(chunk);
        for (let m = frames.next(); m !== null; m = frames.next()) {
          this.queries.push({ socket, message: m.slice() });
        }
      });
    });
  }

  async listen(): Promise<HostPort> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", () => resolve()));
    const address = this.server.address();
    assert.ok(address !== null && typeof address === "object");
    return { ip: LOOPBACK, port: address.port };
  }

  async heard(count: number): Promise<void> {
    await until(`${count} queries`, () => this.queries.length === count);
  }

  /** Answers query `i` with its ID and one byte. */
  answer(i: number, byte: number): void {
    const { socket, message } = this.queries[i];
    socket.write(Uint8Array.of(0, 3, message[0], message[1], byte));
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }
}

async function withTcp(
  use: (
    server: TcpServer,
    exchange: TcpExchange,
    notes: Notes,
    remote: PlainRemote,
  ) => Promise<void>,
  nowMs?: () => number,
): Promise<void> {
  const server = new TcpServer();
  const notes = new Notes();
  const exchange = new TcpExchange(notes, nowMs);
  const remote = new PlainRemote(await server.listen());
  try {
    await use(server, exchange, notes, remote);
  } finally {
    exchange.close();
    await server.close();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const id = (n: number) => Uint8Array.of(n >> 8, n, 0xaa);

Deno.test("TcpExchange shares a connection and takes answers in any order", {
  permissions: { net: true },
}, () =>
  withTcp(async (server, exchange, notes, remote) => {
    for (let token = 0; token < 3; token++) {
      assert.equal(exchange.send(remote, id(100 + token), 2, token), "sent");
    }
    await server.heard(3);
    assert.equal(server.sockets.length, 1);
    assert.deepEqual(server.queries.map(({ message }) => [...message]), [[0, 100], [0, 101], [
      0,
      102,
    ]]);
    exchange.cancel(1);
    for (const [i, byte] of [[2, 7], [1, 8], [0, 9]]) {
      server.answer(i, byte);
    }
    await notes.expect("0: 0 100 9", "2: 0 102 7");
    // An ID that is on its way goes by another connection.
    exchange.cancel(0);
    assert.equal(exchange.send(remote, id(102), 2, 5), "sent");
    await server.heard(4);
    assert.equal(server.sockets.length, 2);
    assert.equal(getU16(server.queries[3].message, 0), 102);
    // What is no message of ours is left alone.
    server.queries[3].socket.write(Uint8Array.of(0, 1, 5, 0, 3, 9, 9, 9, 0, 0));
    server.answer(3, 1);
    await notes.expect("5: 0 102 1");
  }));

Deno.test("TcpExchange tells all who wait when a connection ends, and opens so many", {
  permissions: { net: true },
}, () =>
  withTcp(async (server, exchange, notes, remote) => {
    for (let token = 0; token < 2; token++) exchange.send(remote, id(token), 3, token);
    await server.heard(2);
    server.sockets[0].destroy();
    await notes.expect("0 closed the connection", "1 closed the connection");
    for (let token = 0; token < 4; token++) {
      assert.equal(exchange.send(remote, id(1), 3, token), "sent");
    }
    assert.equal(exchange.send(remote, id(1), 3, 4), "full", "no fifth connection");
    await server.heard(6);
    for (let i = 2; i < 6; i++) {
      server.answer(i, i);
    }
    await until("answers", () => notes.lines.length === 4);
    notes.lines.length = 0;
    assert.equal(exchange.send(NOBODY, id(1), 3, 9), "sent", "it can't be known yet");
    await notes.expect("9 closed the connection");
  }));

Deno.test("TcpExchange leaves a connection that owes answers and says nothing", {
  permissions: { net: true },
}, () => {
  let nowMs = 0;
  return withTcp(
    async (server, exchange, notes, remote) => {
      exchange.send(remote, id(1), 3, 1);
      await server.heard(1);
      server.answer(0, 7);
      await notes.expect("1: 0 1 7");
      exchange.cancel(1);
      // From here on, nothing is heard of whatever goes over it.
      for (let token = 2; token < 5; token++) {
        exchange.send(remote, id(token), 3, token);
        nowMs += 900;
      }
      exchange.send(remote, id(5), 3, 5);
      await until("all that is wanted comes anew", () => server.queries.length === 8);
      assert.equal(server.sockets.length, 2);
      for (let i = 4; i < 8; i++) server.answer(i, i);
      await until("answers to all", () => notes.lines.length === 4);
      assert.ok(notes.lines.every((line) => line.includes(": ")), notes.lines.join());
    },
    () => nowMs,
  );
});

Deno.test("TcpExchange bounds connections to all servers, and closes an idle one for the next", {
  permissions: { net: true },
}, () =>
  withTcp(async (server, exchange, notes, first) => {
    // As name servers are: many, each asked once. They all are one machine's.
    const remotes = [first];
    while (remotes.length < CONNECTIONS_ALL_MAX) remotes.push(new PlainRemote(first.address));
    for (const [token, remote] of remotes.entries()) {
      assert.equal(exchange.send(remote, id(token), 3, token), "sent");
    }
    const next = new PlainRemote(first.address);
    assert.equal(exchange.send(next, id(1), 3, 999), "full", "each of them owes an answer");
    await server.heard(CONNECTIONS_ALL_MAX);
    exchange.cancel(0);
    assert.equal(exchange.send(next, id(999), 3, 999), "sent");
    assert.deepEqual([first.connections.length, next.connections.length], [0, 1]);
    await server.heard(CONNECTIONS_ALL_MAX + 1);
    server.answer(CONNECTIONS_ALL_MAX, 7);
    await notes.expect("999: 3 231 7");
    // Who was let go is asked again, where there is room: the one that has just answered is idle.
    assert.equal(exchange.send(next, id(998), 3, 998), "sent");
    assert.equal(exchange.send(first, id(0), 3, 0), "full");
  }));
