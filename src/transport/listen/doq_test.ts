// Goal: DNS over QUIC as RFC 9250 has it, and a client that breaks its rules or holds on to what it
// has loses its own connection and nobody else's. Method: a listener that echoes, asked by the
// runtime's QUIC client; a relay between both loses packets where a handshake is to stand still.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parseIp } from "../../addr/mod.ts";
import { encodeQuery, Qtype } from "../../dns/mod.ts";
import { AUTHORITY, DOMAIN, identityOf, until } from "../fakes.ts";
import { DoqError } from "../quic_message.ts";
import { CERTIFICATES_MAX, type DoqLimits, DoqListener } from "./doq.ts";
import type { DoqClient, DoqExchange, DoqHandler } from "./doq_connection.ts";
import { SharedBounds } from "./shared_bounds.ts";
import type { TlsIdentity } from "./tls.ts";

const net = { permissions: { net: true } } as const;
const LIMITS: DoqLimits = {
  connectionsMax: 20,
  connectionsPerClientMax: 20,
  queriesMax: 8,
  idleMs: 20_000,
  requestMs: 10_000,
  handshakeMs: 10_000,
  handshakesMax: 10,
};
const LOOPBACK = parseIp("127.0.0.1")!;
const IDENTITY = await identityOf(DOMAIN, `*.${DOMAIN}`);
const QUERY = encodeQuery("www.example", Qtype.A, { id: 0 });

/** Echoes queries; those about `wait.*` wait until they are answered, `drop.*` get no answer. */
class Handler implements DoqHandler {
  readonly opened: DoqClient[] = [];
  readonly waiting: { exchange: DoqExchange; message: Uint8Array }[] = [];
  seen = 0;
  refused = 0;
  handshakeFailures = 0;
  unwelcome = "";
  /** Bytes of the answers, beside those of the query. */
  padding = 0;

  admits(client: string): boolean {
    return client !== this.unwelcome;
  }

  onOpen(from: DoqClient): void {
    this.opened.push(from);
  }

  onRefused(): void {
    this.refused++;
  }

  onHandshakeFailure(): void {
    this.handshakeFailures++;
  }

  onMessage(exchange: DoqExchange, message: Uint8Array): void {
    this.seen++;
    const name = new TextDecoder().decode(message.subarray(13));
    if (name.startsWith("drop")) exchange.cancel();
    else if (name.startsWith("wait")) this.waiting.push({ exchange, message: message.slice() });
    else this.answer(exchange, message);
  }

  answer(exchange: DoqExchange, message: Uint8Array): void {
    // The answer stands somewhere in a buffer that is used again at once.
    const bytes = new Uint8Array(3 + message.length + this.padding);
    bytes.set(message, 3);
    exchange.send(bytes, 3, bytes.length - 3);
    bytes.fill(0);
  }
}

function framed(message: Uint8Array, length = message.length): Uint8Array {
  return Uint8Array.of(length >> 8, length & 255, ...message);
}

/** Connects; the promise fails when the handshake does. */
async function dial(
  port: number,
  options: Partial<Deno.ConnectQuicOptions<false>> = {},
): Promise<Deno.QuicConn> {
  return await Deno.connectQuic<false>({
    hostname: "127.0.0.1",
    port,
    serverName: DOMAIN,
    caCerts: [AUTHORITY.cert],
    alpnProtocols: ["doq"],
    ...options,
  });
}

/** A client's connection, and how it was closed. */
class QuicClient {
  closeCode: number | null = null;
  lost: string | null = null;

  constructor(readonly conn: Deno.QuicConn) {
    conn.closed.then(
      ({ closeCode }) => this.closeCode = closeCode,
      (error) => this.lost = error.message,
    );
  }

  get isClosed(): boolean {
    return this.closeCode !== null || this.lost !== null;
  }

  /** Opens a stream and sends bytes on it, without its end. */
  async open(bytes: Uint8Array): Promise<Deno.QuicBidirectionalStream> {
    const stream = await this.conn.createBidirectionalStream({ waitUntilAvailable: true });
    if (bytes.length > 0) {
      const writer = stream.writable.getWriter();
      await writer.write(bytes);
      writer.releaseLock();
    }
    return stream;
  }

  /** Sends bytes and the end; returns all that comes back. */
  async send(bytes: Uint8Array): Promise<Uint8Array> {
    const stream = await this.open(bytes);
    await stream.writable.close();
    return await collected(stream);
  }

  /** Asks, and says whether the answer is the echo. */
  async ask(message: Uint8Array = QUERY): Promise<void> {
    assert.deepEqual(await this.send(framed(message)), framed(message));
  }

  /** Waits until the connection is gone; the code that the server gave. */
  async closed(): Promise<number | null> {
    await until("the connection is closed", () => this.isClosed);
    const code = /closed by peer:.*?(\d+)/.exec(this.lost ?? "");
    return code === null ? this.closeCode : Number(code[1]);
  }
}

async function collected(stream: Deno.QuicBidirectionalStream): Promise<Uint8Array> {
  const chunks: number[] = [];
  for await (const chunk of stream.readable) chunks.push(...chunk);
  return Uint8Array.from(chunks);
}

interface Bench {
  readonly listener: DoqListener;
  readonly handler: Handler;
  connect(serverName?: string, port?: number): Promise<QuicClient>;
}

async function withListener(
  limits: Partial<DoqLimits>,
  use: (bench: Bench) => Promise<void>,
  identity: TlsIdentity | null = IDENTITY,
  bounds: SharedBounds = new SharedBounds(),
): Promise<void> {
  const handler = new Handler();
  const listener = new DoqListener(identity, handler, { ...LIMITS, ...limits }, bounds);
  await listener.listenAt({ ip: LOOPBACK, port: 0 });
  const clients: QuicClient[] = [];
  const connect = async (serverName = DOMAIN, port = listener.port) => {
    const conn = await dial(port, { serverName });
    const client = new QuicClient(conn);
    clients.push(client);
    return client;
  };
  try {
    await use({ listener, handler, connect });
  } finally {
    for (const { conn } of clients) conn.close();
    await listener.close();
    await until("all is closed", () => listener.connections === 0);
  }
}

Deno.test(
  "DoqListener answers each query on its own stream",
  net,
  () =>
    withListener({}, async ({ handler, connect }) => {
      const client = await connect(`phone.${DOMAIN}`);
      await client.ask();
      const names = Array.from({ length: 50 }, (_, i) => `n${i}.example`);
      await Promise.all(names.map((name) => client.ask(encodeQuery(name, Qtype.AAAA, { id: 0 }))));
      const [{ client: address, serverName }] = handler.opened;
      assert.deepEqual([address, serverName], ["127.0.0.1", `phone.${DOMAIN}`]);
      assert.deepEqual([handler.opened.length, handler.seen], [1, 51]);
    }),
);

const WITH_ID = encodeQuery("www.example", Qtype.A, { id: 1 });
const RESPONSE = Uint8Array.from(QUERY, (byte, i) => i === 2 ? byte | 0x80 : byte);
const KEEPALIVE = encodeQuery("www.example", Qtype.A, {
  id: 0,
  edns: { options: [{ code: 11, data: new Uint8Array(0) }] },
});

Deno.test("DoqListener closes the connection of whoever breaks a rule", net, async (t) => {
  const rows: readonly (readonly [string, Uint8Array])[] = [
    ["an ID other than 0", framed(WITH_ID)],
    ["a response", framed(RESPONSE)],
    ["edns-tcp-keepalive", framed(KEEPALIVE)],
    ["no message at all", new Uint8Array(0)],
    ["half a length", Uint8Array.of(0)],
    ["a message without a header", framed(new Uint8Array(11))],
    ["an empty message", framed(new Uint8Array(0))],
    ["half a message", framed(QUERY, QUERY.length * 2)],
    ["two messages", Uint8Array.of(...framed(QUERY), ...framed(QUERY))],
    ["a byte behind the message", Uint8Array.of(...framed(QUERY), 0)],
  ];
  for (const [name, bytes] of rows) {
    await t.step(name, () =>
      withListener({}, async ({ handler, connect }) => {
        const [client, other] = [await connect(), await connect()];
        await client.ask();
        await client.send(bytes).catch(() => {}); // Cut off, if not answered with the end alone.
        assert.equal(await client.closed(), DoqError.ProtocolError);
        await other.ask();
        assert.equal(handler.seen, 2);
      }));
  }
});

Deno.test(
  "DoqListener takes the largest message, and one in many pieces",
  net,
  () =>
    withListener({}, async ({ handler, connect }) => {
      const client = await connect();
      const large = new Uint8Array(65_535);
      large.set(QUERY);
      await client.ask(large);
      const stream = await client.open(new Uint8Array(0));
      const writer = stream.writable.getWriter();
      for (const byte of framed(QUERY)) {
        await writer.write(Uint8Array.of(byte));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await writer.close();
      assert.deepEqual(await collected(stream), framed(QUERY));
      handler.padding = 60_000;
      const padded = await client.send(framed(QUERY));
      assert.equal(padded.length, 2 + QUERY.length + 60_000);
    }),
);

Deno.test(
  "DoqListener answers in any order, and nobody who has cancelled",
  net,
  () =>
    withListener({}, async ({ handler, connect }) => {
      const client = await connect();
      const messages = ["wait1", "wait2", "wait3"].map((name) =>
        encodeQuery(name, Qtype.A, { id: 0 })
      );
      const streams = [];
      for (const message of messages) {
        const stream = await client.open(framed(message));
        await stream.writable.close();
        streams.push(stream);
      }
      await until("all wait", () => handler.waiting.length === 3);
      await streams[1].readable.cancel();
      await client.ask();
      for (const { exchange, message } of handler.waiting.toReversed()) {
        handler.answer(exchange, message);
        exchange.cancel(); // One end is enough.
      }
      assert.deepEqual(await collected(streams[0]), framed(handler.waiting[0].message));
      assert.deepEqual(await collected(streams[2]), framed(handler.waiting[2].message));
      await client.ask();
      const none = client.send(framed(encodeQuery("drop.example", Qtype.A, { id: 0 })));
      assert.equal((await none.catch(() => "")).length, 0, "reset, or at its end");
      await client.ask();
      assert.equal(client.isClosed, false);
    }),
);

Deno.test(
  "DoqListener lets a connection have so many streams and no more",
  net,
  () =>
    withListener({ queriesMax: 3 }, async ({ handler, connect }) => {
      const [client, other] = [await connect(), await connect()];
      const message = encodeQuery("wait.example", Qtype.A, { id: 0 });
      const asked = [];
      for (let i = 0; i < 3; i++) {
        const stream = await client.open(framed(message));
        await stream.writable.close();
        asked.push(collected(stream));
      }
      await assert.rejects(client.conn.createBidirectionalStream(), "the fourth");
      await assert.rejects(client.conn.createUnidirectionalStream(), "one without an answer");
      await until("three wait", () => handler.waiting.length === 3);
      await other.ask();
      for (const { exchange, message } of handler.waiting) handler.answer(exchange, message);
      assert.equal((await Promise.all(asked)).length, 3);
      await client.ask();
    }),
);

Deno.test(
  "DoqListener closes the connection that is idle for longest where one is over its limits",
  net,
  async (t) => {
    for (const limits of [{ connectionsPerClientMax: 2 }, { connectionsMax: 2 }]) {
      await t.step(
        JSON.stringify(limits),
        () =>
          withListener(limits, async ({ listener, handler, connect }) => {
            const [first, second] = [await connect(), await connect()];
            await first.ask();
            const third = await connect();
            assert.equal(await second.closed(), DoqError.ExcessiveLoad);
            assert.equal(handler.refused, 1);
            await Promise.all([first.ask(), third.ask()]);
            await until("two are left", () => listener.connections === 2);
          }),
      );
    }
  },
);

Deno.test(
  "DoqListener closes who drips a query, however often a byte comes",
  net,
  () =>
    withListener({ requestMs: 500 }, async ({ connect }) => {
      const client = await connect();
      const stream = await client.open(Uint8Array.of(0xff, 0xff));
      const writer = stream.writable.getWriter();
      const drip = setInterval(() => void writer.write(Uint8Array.of(0)).catch(() => {}), 50);
      assert.equal(await client.closed(), DoqError.ExcessiveLoad);
      clearInterval(drip);
    }),
);

Deno.test(
  "DoqListener closes whose unfinished queries are more than all may hold, and serves the others",
  net,
  async () => {
    const bounds = new SharedBounds(undefined, 4 * 65_536);
    await withListener(
      {},
      async ({ connect }) => {
        const [honest, greedy] = [await connect(), await connect()];
        await honest.ask();
        for (let i = 0; i < LIMITS.queriesMax; i++) {
          greedy.open(framed(new Uint8Array(65_000), 65_535)).catch(() => {});
        }
        assert.equal(await greedy.closed(), DoqError.ExcessiveLoad);
        await honest.ask();
        assert.ok(bounds.unfinished.cutOff > 0);
      },
      IDENTITY,
      bounds,
    );
  },
);

Deno.test(
  "DoqListener refuses who is not admitted, before the handshake",
  net,
  () =>
    withListener({}, async ({ handler, connect }) => {
      handler.unwelcome = "127.0.0.1";
      await assert.rejects(connect());
      assert.deepEqual([handler.opened.length, handler.refused], [0, 0]);
      handler.unwelcome = "";
      await (await connect()).ask();
    }),
);

Deno.test(
  "DoqListener closes who asks nothing, and who keeps a stream from its end",
  net,
  () =>
    withListener({ idleMs: 700, requestMs: 700 }, async ({ handler, connect }) => {
      const [silent, slow, waiting, asking] = await Promise.all([1, 2, 3, 4].map(() => connect()));
      await slow.open(framed(QUERY).subarray(0, 5));
      const message = encodeQuery("wait.example", Qtype.A, { id: 0 });
      const stream = await waiting.open(framed(message));
      await stream.writable.close();
      const keeping = setInterval(
        () => void Promise.allSettled([asking.ask(), waiting.ask()]),
        100,
      );
      try {
        await Promise.all([silent.closed(), slow.closed()]);
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        assert.deepEqual([asking.isClosed, waiting.isClosed], [false, false]);
      } finally {
        clearInterval(keeping);
      }
      const [{ exchange }] = handler.waiting;
      handler.answer(exchange, message);
      assert.deepEqual(await collected(stream), framed(message), "its answer was our debt");
    }),
);

/** Passes packets on both ways; once `isCut`, none come back to the client. */
class Relay {
  isCut = false;
  readonly #front = createSocket("udp4");
  readonly #back = createSocket("udp4");
  #client: { address: string; port: number } | null = null;

  async start(serverPort: number): Promise<number> {
    for (const socket of [this.#front, this.#back]) {
      await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    }
    this.#front.on("message", (packet, from) => {
      this.#client = from;
      this.#back.send(packet, serverPort, "127.0.0.1");
    });
    this.#back.on("message", (packet) => {
      if (this.isCut || this.#client === null) return;
      this.#front.send(packet, this.#client.port, this.#client.address);
    });
    return this.#front.address().port;
  }

  async close(): Promise<void> {
    for (const socket of [this.#front, this.#back]) {
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    }
  }
}

Deno.test(
  "DoqListener gives up handshakes: the oldest of too many, and slow ones",
  net,
  () =>
    withListener(
      { handshakesMax: 3, handshakeMs: 1_000 },
      async ({ listener, handler, connect }) => {
        const honest = await connect();
        const relay = new Relay();
        const port = await relay.start(listener.port);
        relay.isCut = true;
        const endpoints = Array.from({ length: 5 }, () =>
          new Deno.QuicEndpoint({ hostname: "127.0.0.1", port: 0 }));
        const stuck = endpoints.map((endpoint) =>
          dial(port, { endpoint, maxIdleTimeout: 2_000 }).catch(() => {})
        );
        await until("the first are given up", () =>
          handler.handshakeFailures >= 2);
        assert.ok(listener.handshakes <= 3);
        await (await connect()).ask();
        await until("all are given up", () => handler.handshakeFailures >= 5);
        await honest.ask();
        await Promise.all(stuck);
        await relay.close();
        assert.equal(listener.handshakes, 0);
      },
    ),
);

Deno.test(
  "DoqListener speaks no other protocol, and survives garbage",
  net,
  () =>
    withListener({}, async ({ listener, handler, connect }) => {
      const { port } = listener;
      await assert.rejects(dial(port, { alpnProtocols: ["h3"] }));
      await until("counted", () => handler.handshakeFailures === 1);
      const socket = createSocket("udp4");
      for (let i = 0; i < 200; i++) {
        const packet = crypto.getRandomValues(new Uint8Array(8 + i * 7));
        packet[0] |= 0xc0; // The long header of a new connection (RFC 9000 §17.2).
        if (i % 2 === 0) packet.set([0, 0, 0, 1], 1);
        socket.send(packet, port, "127.0.0.1");
      }
      await (await connect()).ask();
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    }),
);

Deno.test("DoqListener.renew() shows another certificate and keeps connections", net, async () => {
  const other = await identityOf("other.example");
  await withListener({}, async ({ listener, connect }) => {
    const before = await connect();
    listener.renew(other);
    for (let i = 0; i < 3; i++) {
      await (await connect("other.example")).ask();
      await assert.rejects(connect(DOMAIN), "the former name");
    }
    await before.ask();
    const broken = new TextEncoder().encode("no PEM");
    assert.throws(() => listener.renew({ cert: broken, key: broken }));
    await (await connect("other.example")).ask();
  });
});

Deno.test("DoqListener.renew() many times keeps nobody waiting", net, async () => {
  const names = ["a.example", "b.example", "c.example", "d.example", "e.example", "f.example"];
  const identities = await Promise.all(names.map((name) => identityOf(name)));
  await withListener({}, async ({ listener, connect }) => {
    const before = await connect();
    // Nobody connects in between. A handshake that is left to what was shown before is sent again
    // after 1, 2, 4, ... seconds, and given up after 30.
    for (const identity of identities) listener.renew(identity);
    await (await connect("f.example")).ask();
    await assert.rejects(connect("e.example"), "the former name");
    await before.ask();
  });
});

Deno.test("DoqListener.renew() ends the isolate when it has shown too many", net, async () => {
  const identities = [await identityOf("a.example"), await identityOf("b.example")];
  const reasons: string[] = [];
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault(); // Where nobody does, it ends the isolate.
    reasons.push(event.reason.message);
  };
  addEventListener("unhandledrejection", onRejection);
  try {
    await withListener({}, async ({ listener, connect }) => {
      for (let shown = 1; shown < CERTIFICATES_MAX - 1; shown++) {
        listener.renew(identities[shown % 2]);
      }
      await (await connect("a.example")).ask();
      assert.deepEqual(reasons, []);
      listener.renew(identities[1]);
      await until("it wants an end", () => reasons.length > 0);
      assert.match(reasons.join(), /^doq: \d+ certificates were shown/);
      await (await connect("b.example")).ask();
    });
  } finally {
    removeEventListener("unhandledrejection", onRejection);
  }
});

Deno.test("DoqListener goes on when what it showed before is collected", net, async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const other = await identityOf("other.example");
  await withListener({}, async ({ listener, connect }) => {
    for (const [identity, name] of [[other, "other.example"], [IDENTITY, DOMAIN]] as const) {
      listener.renew(identity);
      listener.renew(identity); // As an isolate does that is told what it started with.
      // The former one's wait for a connection ends with the first, and nothing holds it any more.
      for (let i = 0; i < 3; i++) {
        await (await connect(name)).ask();
        collectGarbage();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  });
});

Deno.test(
  "DoqListener answers nobody without a certificate, until it has one",
  net,
  () =>
    withListener({}, async ({ listener, connect }) => {
      listener.renew(IDENTITY);
      await (await connect()).ask();
    }, null),
);

Deno.test(
  "DoqListener.drain() answers what waits and takes nothing new",
  net,
  () =>
    withListener({}, async ({ listener, handler, connect }) => {
      const client = await connect();
      const message = encodeQuery("wait.example", Qtype.A, { id: 0 });
      const stream = await client.open(framed(message));
      await stream.writable.close();
      await until("it waits", () => handler.waiting.length === 1);
      listener.drain();
      const late = client.send(framed(QUERY)).catch(() => "cut off");
      handler.answer(handler.waiting[0].exchange, message);
      const answered = collected(stream);
      await listener.close();
      assert.deepEqual(await answered, framed(message));
      assert.equal(await late, "cut off");
      assert.equal(handler.seen, 1);
      assert.equal(await client.closed(), DoqError.NoError);
    }),
);

Deno.test(
  "DoqListener.listenAt() names an address that is taken",
  net,
  () =>
    withListener({}, async ({ listener, handler }) => {
      const second = new DoqListener(IDENTITY, handler, LIMITS);
      const address = { ip: LOOPBACK, port: listener.port };
      await assert.rejects(second.listenAt(address, 50), {
        name: "SvcError",
        message: /^doq 127\.0\.0\.1:\d+: cannot listen: .*in use/,
      });
      await second.close();
    }),
);
