import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { parseIp } from "../../addr/mod.ts";
import { FrameReader } from "../frames.ts";
import { type TcpConnection, type TcpHandler, type TcpLimits, TcpListener } from "./tcp.ts";

const net = { permissions: { net: true } } as const;
const LIMITS: TcpLimits = {
  connectionsMax: 20,
  connectionsPerClientMax: 10,
  queriesMax: 8,
  idleMs: 60_000,
  unreadBytesMax: 1024 * 1024,
};
/** Longest wait for anything in these tests. */
const WAIT_MS_MAX = 5_000;

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Echoes messages; those that start with `w` wait until they are answered by name. */
class EchoHandler implements TcpHandler {
  readonly waiting: { connection: TcpConnection; text: string }[] = [];
  readonly seen: string[] = [];
  readonly clients: string[] = [];
  refused = 0;
  /** Bytes behind each answer. */
  padding = 0;

  onMessage(connection: TcpConnection, message: Uint8Array): boolean {
    const text = new TextDecoder().decode(message);
    this.seen.push(text);
    if (text.startsWith("w")) {
      this.waiting.push({ connection, text });
      return true;
    }
    if (!text.startsWith("drop")) this.send(connection, text);
    return false;
  }

  onOpen(connection: TcpConnection): void {
    this.clients.push(connection.client);
  }

  onRefused(): void {
    this.refused++;
  }

  send(connection: TcpConnection, text: string): void {
    // The answer stands somewhere in a buffer that is used again at once.
    const bytes = new TextEncoder().encode(`##${text}${".".repeat(this.padding)}##`);
    connection.send(bytes, 2, bytes.length - 4);
    bytes.fill(0);
  }

  answer(text: string): void {
    const i = this.waiting.findIndex((w) => w.text === text);
    const [{ connection }] = this.waiting.splice(i, 1);
    this.send(connection, text);
    connection.settled();
  }
}

class Client {
  readonly answers: string[] = [];
  ended = false;
  closed = false;
  readonly #frames = new FrameReader();

  private constructor(readonly socket: Socket) {
    socket.on("data", (chunk: Uint8Array) => {
      this.#frames.push(chunk);
      for (let m = this.#frames.next(); m !== null; m = this.#frames.next()) {
        this.answers.push(new TextDecoder().decode(m));
      }
    });
    socket.on("end", () => this.ended = true);
    socket.on("error", () => {}); // A reset is one of the ways to be closed.
    socket.on("close", () => this.closed = true);
  }

  static async to(port: number): Promise<Client> {
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    const client = new Client(socket);
    await until("connected", () => !socket.connecting);
    return client;
  }

  /** Sends messages in one write. */
  send(...texts: string[]): void {
    this.socket.write(Client.framed(texts));
  }

  static framed(texts: string[]): Uint8Array {
    return Uint8Array.from(texts.flatMap((text) => {
      const bytes = new TextEncoder().encode(text);
      return [bytes.length >> 8, bytes.length & 255, ...bytes];
    }));
  }

  async expect(...answers: string[]): Promise<void> {
    await until(`answers ${answers}`, () => this.answers.length >= answers.length);
    assert.deepEqual(this.answers.splice(0), answers);
  }
}

/** Runs with a listener on a free port; everything is closed in the end. */
async function withListener(
  limits: Partial<TcpLimits>,
  use: (bench: {
    listener: TcpListener;
    handler: EchoHandler;
    open: () => Promise<Client>;
  }) => Promise<void>,
): Promise<void> {
  const handler = new EchoHandler();
  const listener = new TcpListener(handler, { ...LIMITS, ...limits });
  await listener.listenAt({ ip: parseIp("127.0.0.1")!, port: 0 });
  const clients: Client[] = [];
  const open = async () => {
    const client = await Client.to(listener.port);
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

Deno.test(
  "TcpListener answers many queries of a connection, however they are cut",
  net,
  () =>
    withListener({}, async ({ handler, open }) => {
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
  "TcpListener sends answers in the order they come, not that of the queries",
  net,
  () =>
    withListener({}, async ({ handler, open }) => {
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
  "TcpListener keeps answers apart when one read settles another connection",
  net,
  () =>
    withListener({ queriesMax: 1 }, async ({ handler, open }) => {
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
  "TcpListener answers what waits after the client has sent its end",
  net,
  () =>
    withListener({}, async ({ handler, listener, open }) => {
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
  "TcpListener reads no further than so many queries that wait",
  net,
  () =>
    withListener({ queriesMax: 3 }, async ({ handler, open }) => {
      const client = await open();
      client.send("w1", "w2", "w3", "w4", "w5", "now");
      client.socket.end();
      await until("three wait", () => handler.waiting.length === 3);
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.deepEqual(handler.seen, ["w1", "w2", "w3"]);
      handler.answer("w2");
      await until("one more", () => handler.waiting.length === 3);
      assert.deepEqual(handler.seen, ["w1", "w2", "w3", "w4"]);
      for (const text of ["w1", "w3", "w4", "w5"]) handler.answer(text);
      await client.expect("w2", "w1", "w3", "now", "w4", "w5");
      await until("the end", () => client.ended);
    }),
);

Deno.test(
  "TcpListener closes connections over its limits, and takes others later",
  net,
  async (t) => {
    for (const limits of [{ connectionsPerClientMax: 2 }, { connectionsMax: 2 }]) {
      await t.step(
        JSON.stringify(limits),
        () =>
          withListener(limits, async ({ handler, listener, open }) => {
            const [first] = [await open(), await open()];
            await until("two", () => listener.connections === 2);
            const third = await open();
            await until("refused", () => handler.refused === 1 && (third.ended || third.closed));
            third.socket.destroy();
            first.socket.destroy();
            await until("one", () => listener.connections === 1);
            const fourth = await open();
            fourth.send("a");
            await fourth.expect("a");
          }),
      );
    }
  },
);

Deno.test(
  "TcpListener closes whoever sends no whole query in time",
  net,
  () =>
    withListener({ idleMs: 300 }, async ({ handler, open }) => {
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
  "TcpListener cuts off whoever leaves its answers unread",
  net,
  () =>
    withListener({ unreadBytesMax: 256 * 1024 }, async ({ handler, listener, open }) => {
      const client = await open();
      handler.padding = 60_000;
      client.socket.pause();
      for (let i = 0; i < 2_000 && !client.socket.destroyed && listener.connections > 0; i++) {
        client.send(`q${i}`);
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
      await until("cut off", () => listener.connections === 0);
      assert.ok(
        handler.seen.length > 4 && handler.seen.length < 2_000,
        `${handler.seen.length} read`,
      );
    }),
);

Deno.test(
  "TcpListener.drain() answers what waits and takes nothing new",
  net,
  () =>
    withListener({}, async ({ handler, listener, open }) => {
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
  "TcpListener answers nobody who is gone",
  net,
  () =>
    withListener({}, async ({ handler, listener, open }) => {
      const client = await open();
      client.send("w1", "w2");
      await until("both wait", () => handler.waiting.length === 2);
      client.socket.resetAndDestroy();
      await until("gone", () => listener.connections === 0);
      handler.answer("w1");
      handler.answer("w2");
      const other = await open();
      other.send("a");
      await other.expect("a");
    }),
);
