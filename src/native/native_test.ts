import assert from "node:assert/strict";
import { formatIp, parseIp } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import {
  closeSocket,
  dupSocket,
  EventQueue,
  EVENTS_MAX,
  type Native,
  openEpoll,
  openListener,
  openNative,
  openServer,
  openWake,
  portOf,
  UdpBatch,
  UdpEphemeral,
  wake,
} from "./mod.ts";

const ffi = { permissions: { ffi: true } } as const;
const native = openNative();
const LOOPBACKS = ["127.0.0.1", "::1"] as const;
/** Longest wait for a packet that is on its way within this machine. */
const WAIT_MS_MAX = 5_000;

function ip(text: string): Uint8Array<ArrayBuffer> {
  const bytes = parseIp(text);
  assert.ok(bytes !== null);
  return bytes;
}

/** Says whether this machine has the loopback address of a family. */
function has(address: string): boolean {
  if (native === null) return false;
  try {
    closeSocket(native, openListener(native, "udp", { ip: ip(address), port: 0 }));
    // Free binding takes any address: whether it can be used shows when something is sent.
    const sockets = new UdpEphemeral(native);
    const fd = sockets.open(UdpEphemeral.remote({ ip: ip(address), port: 9 }));
    if (fd >= 0) sockets.close(fd);
    return fd >= 0;
  } catch {
    return false;
  }
}

/** A test that needs the C library and, for some, a family; it is ignored where that is absent. */
function test(name: string, address: string, run: (native: Native) => void | Promise<void>): void {
  const usable = native !== null && has(address);
  if (!usable) console.warn(`${name}: ignored, there is no C library or no ${address} here`);
  Deno.test({ name, ignore: !usable, ...ffi, fn: () => run(native!) });
}

async function until<T>(what: string, poll: () => T | null): Promise<T> {
  const endMs = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const result = poll();
    if (result !== null) return result;
    assert.ok(performance.now() < endMs, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** A listener with its batch, and sockets of clients. */
class Bench {
  readonly fd: number;
  readonly port: number;
  readonly batch: UdpBatch;
  readonly clients: UdpEphemeral;
  readonly #fds: number[] = [];

  constructor(readonly native: Native, readonly address: string, listen = address) {
    this.fd = openListener(native, "udp", { ip: ip(listen), port: 0 });
    this.port = portOf(native, this.fd);
    this.batch = new UdpBatch(native, this.fd);
    this.clients = new UdpEphemeral(native);
  }

  /** A socket connected to the listener at `address`. */
  connect(address = this.address): number {
    const fd = this.clients.open(UdpEphemeral.remote({ ip: ip(address), port: this.port }));
    assert.ok(fd >= 0);
    this.#fds.push(fd);
    return fd;
  }

  send(fd: number, ...bytes: number[]): void {
    assert.ok(this.clients.send(fd, Uint8Array.from(bytes), bytes.length));
  }

  receive(): Promise<number> {
    return until("a packet", () => this.batch.receive() || null);
  }

  async answerTo(fd: number): Promise<number[]> {
    const target = new Uint8Array(2_000);
    const length = await until("an answer", () => {
      const n = this.clients.receive(fd, target);
      return n < 0 ? null : n;
    });
    return [...target.subarray(0, length)];
  }

  packet(i: number): number[] {
    const at = this.batch.packetOffset(i);
    return [...this.batch.bytes.subarray(at, at + this.batch.packetLength(i))];
  }

  /** Writes the next response; its length. */
  write(...bytes: number[]): number {
    this.batch.bytes.set(bytes, this.batch.responseOffset());
    return bytes.length;
  }

  close(): void {
    for (const fd of [this.fd, ...this.#fds]) closeSocket(this.native, fd);
  }
}

async function withBench(
  native: Native,
  address: string,
  use: (bench: Bench) => void | Promise<void>,
  listen?: string,
): Promise<void> {
  const bench = new Bench(native, address, listen);
  try {
    await use(bench);
  } finally {
    bench.close();
  }
}

for (const address of LOOPBACKS) {
  test(
    `UdpBatch answers each packet to whoever sent it, ${address}`,
    address,
    (native) =>
      withBench(native, address, async (bench) => {
        const { batch } = bench;
        const fds = Array.from({ length: 10 }, () => bench.connect());
        for (const [i, fd] of fds.entries()) bench.send(fd, i, 7, 7);
        const seen: number[] = [];
        while (seen.length < fds.length) {
          const count = await bench.receive();
          for (let i = 0; i < count; i++) {
            const packet = bench.packet(i);
            assert.deepEqual(packet.slice(1), [7, 7]);
            assert.equal(batch.packetCut(i), false);
            const from = batch.senderOffset(i);
            const ip = batch.bytes.subarray(from, from + batch.senderLength(i));
            assert.equal(formatIp(ip), address);
            seen.push(packet[0]);
            batch.queueReply(i, bench.write(packet[0], 9));
          }
          assert.equal(batch.queued, count);
          batch.flush();
          assert.equal(batch.queued, 0);
        }
        assert.deepEqual(seen.sort((a, b) => a - b), fds.map((_, i) => i));
        for (const [i, fd] of fds.entries()) assert.deepEqual(await bench.answerTo(fd), [i, 9]);
        assert.equal(batch.unsent, 0);
        assert.equal(batch.receive(), 0, "there is no more");
      }),
  );

  test(
    `UdpBatch.saveSender() outlives the batch, ${address}`,
    address,
    (native) =>
      withBench(native, address, async (bench) => {
        const { batch } = bench;
        const [first, second] = [bench.connect(), bench.connect()];
        const sender = new Uint8Array(UdpBatch.SENDER_BYTES);
        bench.send(first, 1);
        await bench.receive();
        batch.saveSender(0, sender);
        bench.send(second, 2);
        await bench.receive();
        batch.queueReply(0, bench.write(22));
        batch.queueTo(sender, bench.write(11));
        batch.flush();
        assert.deepEqual(await bench.answerTo(first), [11]);
        assert.deepEqual(await bench.answerTo(second), [22]);
      }),
  );
}

for (const [address, listen] of [["127.0.0.77", "0.0.0.0"], ["::1", "::"]] as const) {
  // The client's socket is connected: an answer from any other address would not reach it.
  test(
    `UdpBatch answers from the address that was asked, ${address}`,
    address,
    (native) =>
      withBench(native, address, async (bench) => {
        const fd = bench.connect();
        bench.send(fd, 5);
        await bench.receive();
        bench.batch.queueReply(0, bench.write(6));
        bench.batch.flush();
        assert.deepEqual(await bench.answerTo(fd), [6]);
        const sender = new Uint8Array(UdpBatch.SENDER_BYTES);
        bench.send(fd, 7);
        await bench.receive();
        bench.batch.saveSender(0, sender);
        bench.batch.queueTo(sender, bench.write(8));
        bench.batch.flush();
        assert.deepEqual(await bench.answerTo(fd), [8]);
      }, listen),
  );
}

test(
  "UdpBatch takes 64 packets at a time, empty and large ones too",
  "127.0.0.1",
  (native) =>
    withBench(native, "127.0.0.1", async (bench) => {
      const { batch } = bench;
      const fd = bench.connect();
      for (let i = 0; i < UdpBatch.BATCH + 5; i++) bench.send(fd, i);
      await until("a full batch", () => batch.receive() === UdpBatch.BATCH || null);
      assert.deepEqual(bench.packet(UdpBatch.BATCH - 1), [UdpBatch.BATCH - 1]);
      assert.equal(batch.receive(), 5);
      assert.deepEqual(bench.packet(0), [UdpBatch.BATCH]);
      bench.send(fd);
      assert.equal(await bench.receive(), 1);
      assert.equal(batch.packetLength(0), 0);
      bench.send(fd, ...new Array<number>(2_304).fill(1));
      await bench.receive();
      assert.deepEqual([batch.packetLength(0), batch.packetCut(0)], [2_304, false]);
      bench.send(fd, ...new Array<number>(2_305).fill(1));
      await bench.receive();
      assert.deepEqual([batch.packetLength(0), batch.packetCut(0)], [2_304, true]);
      bench.send(fd, 3);
      await bench.receive();
      assert.deepEqual([bench.packet(0), batch.packetCut(0)], [[3], false], "nothing is left over");
    }),
);

test(
  "UdpBatch sends what it can and counts what the system refuses",
  "127.0.0.1",
  (native) =>
    withBench(native, "127.0.0.1", async (bench) => {
      const { batch } = bench;
      const fd = bench.connect();
      bench.send(fd, 1);
      await bench.receive();
      batch.queueTo(nowhere(), bench.write(98));
      batch.queueReply(0, bench.write(1));
      batch.queueTo(nowhere(), bench.write(99));
      batch.queueReply(0, bench.write(2));
      batch.flush();
      assert.deepEqual([batch.unsent, batch.queued], [2, 0]);
      assert.deepEqual([await bench.answerTo(fd), await bench.answerTo(fd)], [[1], [2]]);
    }),
);

/** A sender with port 0, as `saveSender` would have it. */
function nowhere(): Uint8Array {
  const sender = new Uint8Array(UdpBatch.SENDER_BYTES);
  sender.set([2, 0, 0, 0, 127, 0, 0, 1]);
  sender[UdpBatch.SENDER_BYTES - 8] = 16;
  return sender;
}

test("UdpEphemeral draws its ports at random from the whole range", "127.0.0.1", (native) => {
  const sockets = new UdpEphemeral(native);
  const remote = UdpEphemeral.remote({ ip: ip("127.0.0.1"), port: 9 });
  const ports: number[] = [];
  for (let i = 0; i < 300; i++) {
    const fd = sockets.open(remote);
    assert.ok(fd >= 0);
    ports.push(portOf(native, fd));
    sockets.close(fd);
  }
  assert.ok(ports.every((port) => port >= 1_024));
  // By chance alone fewer than 280 different ones, or an empty quarter, do not happen.
  assert.ok(new Set(ports).size >= 280, `${new Set(ports).size} different ports`);
  const quarters = new Set(ports.map((port) => Math.floor((port - 1_024) / 16_128)));
  assert.ok(quarters.size >= 4, `${quarters.size} quarters`);
  const near = ports.slice(1).filter((port, i) => Math.abs(port - ports[i]) < 64).length;
  assert.ok(near < 30, `${near} of 300 near the one before`);
});

test(
  "UdpEphemeral hears the one it asked, and nobody else",
  "127.0.0.1",
  (native) =>
    withBench(native, "127.0.0.1", async (bench) => {
      const other = new Bench(native, "127.0.0.1");
      try {
        const fd = bench.connect();
        bench.send(fd, 1);
        await bench.receive();
        const sender = new Uint8Array(UdpBatch.SENDER_BYTES);
        bench.batch.saveSender(0, sender);
        other.batch.queueTo(sender, other.write(66)); // Right address and port, from another port.
        other.batch.flush();
        assert.equal(other.batch.unsent, 0);
        bench.batch.queueTo(sender, bench.write(2));
        bench.batch.flush();
        assert.deepEqual(await bench.answerTo(fd), [2]);
        assert.equal(bench.clients.receive(fd, new Uint8Array(9)), -1);
      } finally {
        other.close();
      }
    }),
);

test("openListener() has a port of its own where the system gives one", "127.0.0.1", (native) => {
  const address = ip("127.0.0.1");
  for (const kind of ["udp", "tcp"] as const) {
    // Some nine would be shared, if they were drawn among those in use.
    const fds = Array.from(
      { length: 1_000 },
      () => openListener(native, kind, { ip: address, port: 0 }),
    );
    try {
      const ports = fds.map((fd) => portOf(native, fd));
      assert.equal(new Set(ports).size, fds.length, kind);
      assert.throws(
        () => openListener(native, kind, { ip: address, port: ports[0] }, true),
        (error) => error instanceof SvcError && error.code === "unavailable",
      );
      closeSocket(native, openListener(native, kind, { ip: address, port: ports[0] }));
    } finally {
      for (const fd of fds) closeSocket(native, fd);
    }
  }
});

test("openServer() shares its port with nobody", "127.0.0.1", (native) => {
  const address = ip("127.0.0.1");
  const fd = openServer(native, { ip: address, port: 0 });
  const port = portOf(native, fd);
  const others = [
    () => openServer(native, { ip: address, port }),
    () => openListener(native, "tcp", { ip: address, port }),
  ];
  for (const open of others) {
    assert.throws(
      open,
      (error) => error instanceof SvcError && error.message.includes(`tcp 127.0.0.1:${port}: `),
    );
  }
  closeSocket(native, fd);
  closeSocket(native, openServer(native, { ip: address, port }));
});

test("openListener() shares a port, and says what is in the way", "127.0.0.1", (native) => {
  const address = ip("127.0.0.1");
  for (const kind of ["udp", "tcp"] as const) {
    const first = openListener(native, kind, { ip: address, port: 0 });
    const port = portOf(native, first);
    assert.ok(port > 0);
    const second = openListener(native, kind, { ip: address, port });
    assert.equal(portOf(native, second), port);
    const copy = dupSocket(native, first);
    closeSocket(native, first);
    assert.equal(portOf(native, copy), port, "a copy outlives the first number");
    for (const fd of [copy, second]) closeSocket(native, fd);
  }
  assert.equal(dupSocket(native, 1_000_000), -1);
  assert.equal(portOf(native, 1_000_000), 0);
  // An address of nobody's: the service listens on a floating one before it has it.
  closeSocket(native, openListener(native, "udp", { ip: ip("192.0.2.1"), port: 0 }));
  const taken = native.socket(2, 1, 0);
  try {
    const sockaddr = new Uint8Array(28);
    sockaddr.set([2, 0, 0, 0, 127, 0, 0, 1]);
    assert.equal(native.bind(taken, sockaddr, 16), 0);
    assert.equal(native.listen(taken, 1), 0);
    const port = portOf(native, taken);
    assert.throws(
      () => openListener(native, "tcp", { ip: address, port }),
      (error) =>
        error instanceof SvcError && error.code === "unavailable" &&
        error.message.startsWith(`tcp 127.0.0.1:${port}: cannot listen`),
    );
  } finally {
    closeSocket(native, taken);
  }
});

test(
  "EventQueue tells which sockets can be read, also of those added during a wait",
  "127.0.0.1",
  async (native) => {
    const epoll = openEpoll(native);
    const queue = new EventQueue(native, epoll, new SharedArrayBuffer(EventQueue.MEMORY_BYTES));
    const [a, b] = [new Bench(native, "127.0.0.1"), new Bench(native, "127.0.0.1")];
    const waking = openWake(native);
    try {
      assert.equal(queue.poll(), 0);
      assert.ok(queue.add(a.fd, 5));
      const parked = queue.wait(-1);
      assert.ok(queue.add(b.fd, 2 ** 31 - 1));
      b.send(b.connect(), 1);
      assert.equal(await parked, 1);
      assert.equal(queue.token(0), 2 ** 31 - 1);
      assert.equal(queue.poll(), 1, "it can still be read");
      await b.receive();
      assert.equal(queue.poll(), 0);
      a.send(a.connect(), 1);
      b.send(b.connect(), 1);
      await until("both", () => queue.poll() === 2 || null);
      assert.deepEqual([queue.token(0), queue.token(1)].sort((x, y) => x - y), [5, 2 ** 31 - 1]);
      queue.atOnce = 1;
      const inTurn = [0, 1].map(() => (assert.equal(queue.poll(), 1), queue.token(0)));
      assert.deepEqual(inTurn.sort((x, y) => x - y), [5, 2 ** 31 - 1], "one after the other");
      queue.atOnce = EVENTS_MAX;
      assert.deepEqual([await a.receive(), await b.receive()], [1, 1]);
      // Ending a wait is what `wake` is for.
      assert.ok(queue.add(waking, 9));
      const idle = queue.wait(-1);
      wake(native, waking);
      assert.equal(await idle, 1);
      assert.equal(queue.token(0), 9);
      assert.equal(queue.add(1_000_000, 1), false, "no such descriptor");
    } finally {
      for (const bench of [a, b]) bench.close();
      for (const fd of [epoll, waking]) closeSocket(native, fd);
    }
  },
);
