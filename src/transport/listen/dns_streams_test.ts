// Goal: DNS messages on connections, over TCP and over TLS alike. Method: a handler that echoes, or
// answers when it is told to, behind both listeners, asked over real sockets.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type AddressInfo, connect, createServer } from "node:net";
import { parseIp } from "../../addr/mod.ts";
import { type DotLimits, DotListener } from "./dot.ts";
import { AUTHORITY, Client, DOMAIN, EchoHandler, identityOf, until } from "../fakes.ts";
import { TcpListener } from "./tcp.ts";

const net = { permissions: { net: true } } as const;
const LIMITS: DotLimits = {
  connectionsMax: 20,
  connectionsPerClientMax: 10,
  queriesMax: 8,
  idleMs: 60_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 10_000,
  handshakesMax: 10,
};
const IDENTITY = await identityOf(DOMAIN);

interface Kind {
  readonly name: string;
  make(handler: EchoHandler, limits: DotLimits): TcpListener | DotListener;
  connect(port: number): Promise<Client>;
  /** A connection on which nothing is ever read. */
  connectDeaf(port: number): Promise<Deno.TcpConn | Deno.TlsConn>;
  /** A reset is known at once over TCP; over TLS it looks like an end, after which answers go out. */
  noticesGone(listener: { readonly connections: number }): Promise<void>;
}

const KINDS: readonly Kind[] = [
  {
    name: "TcpListener",
    make: (handler, limits) => new TcpListener(handler, limits),
    connect: (port) => Client.to(port),
    connectDeaf: (port) => Deno.connect({ hostname: "127.0.0.1", port }),
    noticesGone: (listener) => until("noticed", () => listener.connections === 0),
  },
  {
    name: "DotListener",
    make: (handler, limits) => new DotListener(IDENTITY, handler, limits),
    connect: (port) => Client.toTls(port),
    connectDeaf: async (port) =>
      await Deno.startTls(await Deno.connect({ hostname: "127.0.0.1", port }), {
        hostname: DOMAIN,
        caCerts: [AUTHORITY.cert],
      }),
    noticesGone: async () => {},
  },
];

/** Runs with a listener on a free port; everything is closed in the end. */
async function withListener(
  kind: Kind,
  limits: Partial<DotLimits>,
  use: (bench: {
    listener: TcpListener | DotListener;
    handler: EchoHandler;
    open: () => Promise<Client>;
  }) => Promise<void>,
): Promise<void> {
  const handler = new EchoHandler();
  const listener = kind.make(handler, { ...LIMITS, ...limits });
  await listener.listenAt({ ip: parseIp("127.0.0.1")!, port: 0 });
  const clients: Client[] = [];
  const open = async () => {
    const client = await kind.connect(listener.port);
    clients.push(client);
    return client;
  };
  try {
    await use({ listener, handler, open });
  } finally {
    listener.close();
    for (const { socket } of clients) socket.destroy();
    await until(
      "all is closed",
      () => listener.connections === 0 && clients.every((c) => c.closed),
    );
  }
}

for (const kind of KINDS) {
  Deno.test(
    `${kind.name} answers many queries of a connection, however they are cut`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, open }) => {
        const client = await open();
        client.send("a", "b", "", "c");
        await client.expect("a", "b", "", "c");
        for (const byte of Client.framed(["slow"])) {
          client.socket.write(Uint8Array.of(byte));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        await client.expect("slow");
        const large = "x".repeat(65_535);
        client.send(large, "behind");
        await client.expect(large, "behind");
        client.send("drop it", "d");
        await client.expect("d");
        assert.deepEqual(handler.clients, ["127.0.0.1"]);
      }),
  );

  Deno.test(
    `${kind.name} sends answers in the order they come, not that of the queries`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, open }) => {
        const [client, other] = [await open(), await open()];
        client.send("w1", "now", "w2", "w3");
        other.send("w4");
        await client.expect("now");
        await until("all wait", () => handler.waiting.length === 4);
        for (const text of ["w3", "w4", "w1", "w2"]) handler.answer(text);
        await client.expect("w3", "w1", "w2");
        await other.expect("w4");
      }),
  );

  Deno.test(
    `${kind.name} keeps answers apart when one read settles another connection`,
    net,
    () =>
      withListener(kind, { queriesMax: 1 }, async ({ handler, open }) => {
        const [client, other] = [await open(), await open()];
        other.send("w-other", "paused until then");
        await until("one waits", () => handler.waiting.length === 1);
        const onMessage = handler.onMessage.bind(handler);
        handler.onMessage = (connection, message) => {
          const waits = onMessage(connection, message);
          if (handler.seen.at(-1) === "settle") handler.answer("w-other");
          return waits;
        };
        client.send("a", "settle", "b");
        await client.expect("a", "settle", "b");
        await other.expect("w-other", "paused until then");
      }),
  );

  Deno.test(
    `${kind.name} answers what waits after the client has sent its end`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, listener, open }) => {
        const client = await open();
        client.send("w1", "w2", "c");
        client.socket.end();
        await client.expect("c");
        await until("both wait", () => handler.waiting.length === 2);
        handler.answer("w1");
        await client.expect("w1");
        assert.equal(client.ended, false);
        handler.answer("w2");
        await client.expect("w2");
        await until("the end", () => client.ended && listener.connections === 0);
        // Nothing waits: the end is answered by the end.
        const brief = await open();
        brief.socket.end();
        await until("the end", () => brief.ended && listener.connections === 0);
      }),
  );

  Deno.test(
    `${kind.name} reads no further than so many queries that wait`,
    net,
    () =>
      withListener(kind, { queriesMax: 3 }, async ({ handler, open }) => {
        const client = await open();
        client.send("w1", "w2", "w3", "w4", "w5", "now");
        client.socket.end();
        await until("three wait", () => handler.waiting.length === 3);
        await new Promise((resolve) => setTimeout(resolve, 30));
        assert.deepEqual(handler.seen, ["w1", "w2", "w3"]);
        handler.answer("w2");
        await until("one more", () => handler.waiting.length === 3);
        assert.deepEqual(handler.seen, ["w1", "w2", "w3", "w4"]);
        for (const text of ["w1", "w3", "w4"]) handler.answer(text);
        await client.expect("w2", "w1", "w3", "w4", "now");
        handler.answer("w5");
        await client.expect("w5");
        await until("the end", () => client.ended);
      }),
  );

  Deno.test(
    `${kind.name} closes the connection that is idle for longest where one is over its limits`,
    net,
    async (t) => {
      for (const limits of [{ connectionsPerClientMax: 2 }, { connectionsMax: 2 }]) {
        await t.step(
          JSON.stringify(limits),
          () =>
            withListener(kind, limits, async ({ handler, listener, open }) => {
              const [first, second] = [await open(), await open()];
              first.send("a");
              await first.expect("a");
              const third = await open();
              await until("one makes room", () => second.ended || second.closed);
              assert.deepEqual([handler.refused, listener.connections], [1, 2]);
              for (const client of [first, third]) {
                client.send("b");
                await client.expect("b");
              }
            }),
        );
      }
    },
  );

  Deno.test(
    `${kind.name} closes whoever sends no whole query in time`,
    net,
    () =>
      withListener(kind, { idleMs: 300 }, async ({ handler, open }) => {
        const [silent, dripping, waiting] = [await open(), await open(), await open()];
        waiting.send("w1");
        const drip = setInterval(() => dripping.socket.write(Uint8Array.of(0)), 50);
        dripping.socket.write(Uint8Array.of(1, 0, 1)); // 256 bytes are to come.
        await until("both are closed", () => silent.closed || silent.ended);
        await until("both are closed", () => dripping.closed || dripping.ended);
        clearInterval(drip);
        assert.equal(waiting.ended, false, "its answer is our debt");
        handler.answer("w1");
        await waiting.expect("w1");
        await until("later closed", () => waiting.closed || waiting.ended);
      }),
  );

  Deno.test(
    `${kind.name} cuts off whoever leaves its answers unread`,
    net,
    () =>
      withListener(kind, { unreadBytesMax: 256 * 1024 }, async ({ handler, listener }) => {
        using deaf = await kind.connectDeaf(listener.port);
        handler.padding = 60_000;
        let isCutOff = false;
        for (let i = 0; i < 2_000 && !isCutOff; i++) {
          await deaf.write(Client.framed([`q${i}`])).catch(() => isCutOff = true);
          isCutOff ||= i > 0 && listener.connections === 0;
        }
        await until("cut off", () => listener.connections === 0);
        assert.ok(
          handler.seen.length > 4 && handler.seen.length < 2_000,
          `${handler.seen.length} read`,
        );
      }),
  );

  Deno.test(
    `${kind.name}.drain() answers what waits and takes nothing new`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, listener, open }) => {
        const [idle, busy] = [await open(), await open()];
        busy.send("w1", "w2");
        await until("both wait", () => handler.waiting.length === 2);
        listener.drain();
        await until("the idle one ends", () => idle.ended);
        await assert.rejects(async () => {
          const late = connect({ host: "127.0.0.1", port: listener.port || 1 });
          await new Promise((_resolve, reject) => {
            late.on("error", reject);
            late.on("close", () => reject(new Error("closed")));
          });
        });
        for (const text of ["w2", "w1"]) handler.answer(text);
        await busy.expect("w2", "w1");
        await until("the end", () => busy.ended);
      }),
  );

  Deno.test(
    `${kind.name}.drain() answers what has come in unread`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, listener, open }) => {
        const client = await open();
        await until("it is there", () => handler.clients.length === 1);
        client.send("a", "b", "c");
        listener.drain(); // Nothing has been read by now.
        await client.expect("a", "b", "c");
        await until("the end", () => client.ended);
        assert.equal(client.error, null);
      }),
  );

  Deno.test(
    `${kind.name}.retire() answers what comes until its end, and resets nobody who sends behind it`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, listener, open }) => {
        const client = await open();
        client.send("w1");
        await until("it waits", () => handler.waiting.length === 1);
        listener.retire();
        client.send("a", "w2");
        await client.expect("a");
        await until("both wait", () => handler.waiting.length === 2);
        assert.equal(client.ended, false);
        for (const text of ["w2", "w1"]) handler.answer(text);
        await client.expect("w2", "w1");
        await until("the end", () => client.ended);
        // On its way when the end came; a reset would be seen by the next one.
        for (let i = 0; i < 3; i++) {
          client.send("late");
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        assert.deepEqual([client.error, client.closed, client.answers], [null, false, []]);
        assert.ok(!handler.seen.includes("late"));
        client.socket.end();
        await until("closed", () => client.closed && listener.connections === 0);
        assert.equal(client.error, null);
      }),
  );

  Deno.test(
    `${kind.name} answers nobody who is gone`,
    net,
    () =>
      withListener(kind, {}, async ({ handler, listener, open }) => {
        const client = await open();
        client.send("w1", "w2");
        await until("both wait", () => handler.waiting.length === 2);
        client.socket.resetAndDestroy();
        await until("gone", () => client.closed);
        await kind.noticesGone(listener);
        handler.answer("w1");
        handler.answer("w2");
        await until("forgotten", () => listener.connections === 0);
        const other = await open();
        other.send("a");
        await other.expect("a");
      }),
  );
}

/** Passes bytes on to `port`, and notes the lengths of the TLS records that come back. */
async function withRelay(
  port: number,
  use: (relayPort: number, records: number[]) => Promise<void>,
): Promise<void> {
  const records: number[] = [];
  const server = createServer((near) => {
    const far = connect({ host: "127.0.0.1", port, noDelay: true });
    let kept = Buffer.alloc(0);
    far.on("data", (chunk: Buffer) => {
      kept = Buffer.concat([kept, chunk]);
      while (kept.length >= RECORD_HEADER_BYTES) {
        const end = RECORD_HEADER_BYTES + kept.readUInt16BE(3);
        if (kept.length < end) break;
        records.push(end - RECORD_HEADER_BYTES);
        kept = kept.subarray(end);
      }
      near.write(chunk);
    });
    near.on("data", (chunk) => far.write(chunk));
    for (const [one, other] of [[near, far], [far, near]]) {
      one.on("error", () => {});
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use((server.address() as AddressInfo).port, records);
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

/** RFC 8446 §5.1; what follows is the content with its type and a tag (§5.2). */
const RECORD_HEADER_BYTES = 5;
const RECORD_EXTRA_BYTES = 1 + 16;

Deno.test(
  "DotListener sends the last of several answers in a record of its own",
  net,
  () =>
    withListener(KINDS[1], {}, async ({ listener, handler }) => {
      await withRelay(listener.port, async (port, records) => {
        const client = await Client.toTls(port);
        const alone = 2 + "c".length + RECORD_EXTRA_BYTES;
        for (let i = 0; i < 10; i++) {
          client.send("a", "bb", "c");
          await client.expect("a", "bb", "c");
          assert.equal(records.at(-1), alone);
        }
        client.send("w1", "w2", "w3");
        await until("they wait", () => handler.waiting.length === 3);
        for (const text of ["w1", "w2", "w3"]) handler.answer(text);
        await client.expect("w1", "w2", "w3");
        assert.deepEqual(records.slice(-3), Array(3).fill(alone + 1), "one each");
        client.socket.destroy();
        await until("closed", () => client.closed);
      });
    }),
);
