// Goal: whoever holds handshakes open, sends garbage or shows up uninvited takes nothing from others,
// and a renewed certificate shows without a connection being lost. Method: a TLS listener behind real
// sockets, asked by honest clients while the others do their worst.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { parseIp } from "../../addr/mod.ts";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { Client, DOMAIN, EchoHandler, identityOf, until } from "../fakes.ts";
import { type DotLimits, DotListener } from "./dot.ts";
import { ACCEPT_UNITS, HANDSHAKE_UNITS, ReadTurns, TURN_UNITS } from "./read_turns.ts";
import { SharedBounds } from "./shared_bounds.ts";
import type { TlsIdentity } from "./tls.ts";

const net = { permissions: { net: true, env: ["SVC_SEED"] } };
const LIMITS: DotLimits = {
  connectionsMax: 200,
  connectionsPerClientMax: 200,
  queriesMax: 8,
  idleMs: 60_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 60_000,
  handshakesMax: 10,
};
const IDENTITY = await identityOf(DOMAIN, `*.${DOMAIN}`);
/** A TLS record that says so much is to come (RFC 8446 §5.1): the start of a ClientHello. */
const HELLO_START = Uint8Array.of(22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3);

interface Bench {
  readonly listener: DotListener;
  readonly handler: EchoHandler;
  /** Connects and does not say a word of TLS. */
  raw(): Promise<Socket & { wasClosed: boolean }>;
  /** Asks on a new connection. */
  ask(text: string, options?: Parameters<typeof Client.toTls>[1]): Promise<Client>;
}

async function withListener(
  limits: Partial<DotLimits>,
  use: (bench: Bench) => Promise<void>,
  identity: TlsIdentity | null = IDENTITY,
  bounds: SharedBounds = new SharedBounds(),
): Promise<void> {
  const handler = new EchoHandler();
  const listener = new DotListener(identity, handler, { ...LIMITS, ...limits }, bounds);
  await listener.listenAt({ ip: parseIp("127.0.0.1")!, port: 0 });
  const sockets: Socket[] = [];
  const raw = async () => {
    const socket = connect({ host: "127.0.0.1", port: listener.port });
    sockets.push(socket);
    const watched = Object.assign(socket, { wasClosed: false });
    socket.on("error", () => {}); // A reset is one of the ways to be closed.
    socket.on("end", () => watched.wasClosed = true);
    socket.on("close", () => watched.wasClosed = true);
    socket.resume();
    await until("connected", () => !socket.connecting);
    return watched;
  };
  const ask = async (text: string, options = {}) => {
    const client = await Client.toTls(listener.port, options);
    sockets.push(client.socket);
    client.send(text);
    await client.expect(text);
    return client;
  };
  try {
    await use({ listener, handler, raw, ask });
  } finally {
    listener.close();
    for (const socket of sockets) socket.destroy();
    await until("all is closed", () => listener.connections === 0 && listener.handshakes === 0);
  }
}

Deno.test(
  "TlsListener begins so many handshakes until the event loop goes round",
  net,
  async () => {
    const rounds: (() => void)[] = [];
    const ports = { nowMs: () => 0, later: (callback: () => void) => rounds.push(callback) };
    const bounds = new SharedBounds(new ReadTurns(ports));
    const atOnce = Math.ceil(TURN_UNITS / (HANDSHAKE_UNITS + ACCEPT_UNITS));
    await withListener(
      {},
      async ({ listener, handler, ask }) => {
        let answered = 0;
        const asking = Array.from(
          { length: 2 * atOnce },
          (_, i) => ask(`${i}`).then(() => answered++),
        );
        const begun = () => 2 * atOnce - bounds.turns.waiting;
        await until("all have come", () => listener.connections === 2 * atOnce);
        assert.equal(begun(), atOnce);
        assert.equal(handler.seen.length, 0);
        const going = setInterval(() => rounds.splice(0).forEach((callback) => callback()), 5);
        await Promise.all(asking);
        clearInterval(going);
        assert.equal(answered, 2 * atOnce);
      },
      IDENTITY,
      bounds,
    );
  },
);

Deno.test(
  "TlsListener tells the server name that was asked for",
  net,
  () =>
    withListener({}, async ({ handler, ask }) => {
      await ask("a");
      await ask("b", { servername: `phone.${DOMAIN}` });
      await ask("c", { servername: "", checkServerIdentity: () => undefined });
      assert.deepEqual(handler.serverNames, [DOMAIN, `phone.${DOMAIN}`, null]);
    }),
);

Deno.test("TlsListener speaks TLS 1.2 and 1.3, with its protocol or none", net, async (t) => {
  const rows: readonly (readonly [string, Parameters<typeof Client.toTls>[1], boolean])[] = [
    ["TLS 1.3", { minVersion: "TLSv1.3" }, true],
    ["TLS 1.2", { maxVersion: "TLSv1.2" }, true],
    ["no ALPN", { ALPNProtocols: [] }, true],
    ["dot among others", { ALPNProtocols: ["h2", "dot"] }, true],
    ["others only", { ALPNProtocols: ["h2", "http/1.1"] }, false],
  ];
  for (const [name, options, isTaken] of rows) {
    await t.step(name, () =>
      withListener({}, async ({ listener, handler, ask }) => {
        if (isTaken) {
          await ask("a", options);
        } else {
          const client = await Client.toTls(listener.port, options);
          await until("closed", () => client.closed);
          await until("counted", () => handler.handshakeFailures === 1);
        }
        assert.equal(handler.handshakeFailures, isTaken ? 0 : 1);
      }));
  }
});

Deno.test(
  "TlsListener gives up the oldest of too many handshakes, and serves others",
  net,
  () =>
    withListener({ handshakesMax: 4 }, async ({ listener, handler, raw, ask }) => {
      const held: { readonly wasClosed: boolean }[] = [];
      for (let i = 0; i < 4; i++) {
        const socket = await raw();
        socket.write(HELLO_START);
        held.push(socket);
      }
      await until("all are held", () => listener.handshakes === 4);
      await ask("a");
      await until("the oldest is closed", () => held[0].wasClosed);
      assert.deepEqual(held.map(({ wasClosed }) => wasClosed), [true, false, false, false]);
      assert.equal(handler.handshakeFailures, 1);
      for (let i = 0; i < 50; i++) await raw();
      await until("they give way to each other", () => held.every(({ wasClosed }) => wasClosed));
      assert.ok(listener.handshakes <= 4);
      await ask("b");
    }),
);

Deno.test(
  "TlsListener gives up a handshake that takes too long",
  net,
  () =>
    withListener({ handshakeMs: 200 }, async ({ handler, raw, ask }) => {
      const honest = await ask("a");
      const [silent, slow] = [await raw(), await raw()];
      slow.write(HELLO_START);
      await until("both are closed", () => silent.wasClosed && slow.wasClosed);
      assert.equal(handler.handshakeFailures, 2);
      honest.send("b");
      await honest.expect("b");
    }),
);

Deno.test(
  "TlsListener notices at once who leaves in a handshake",
  net,
  () =>
    withListener({}, async ({ listener, handler, raw }) => {
      const [ended, reset] = [await raw(), await raw()];
      for (const socket of [ended, reset]) socket.write(HELLO_START);
      await until("both are held", () => listener.handshakes === 2);
      ended.end();
      reset.resetAndDestroy();
      await until("both are forgotten", () => listener.connections === 0);
      assert.equal(handler.handshakeFailures, 2);
    }),
);

Deno.test(
  "TlsListener is not disturbed by garbage, seeded",
  net,
  () =>
    withListener({ handshakesMax: 64 }, async ({ listener, handler, raw, ask }) => {
      const prng = new Prng(seedFromEnv());
      const honest = await ask("a");
      for (let i = 0; i < 200; i++) {
        const socket = await raw();
        const bytes = prng.bytes(1 + prng.int(600));
        // Half of it begins as a record does, a quarter as a ClientHello does.
        if (prng.chance(0.5)) bytes.set([22, 3, prng.int(5)].slice(0, bytes.length));
        if (prng.chance(0.5)) bytes.set(HELLO_START.subarray(0, bytes.length));
        socket.end(bytes);
        if (i % 20 === 0) await ask(`q${i}`);
      }
      await until("all have failed", () => listener.handshakes === 0);
      assert.equal(handler.handshakeFailures, 200);
      honest.send("b");
      await honest.expect("b");
    }),
);

Deno.test(
  "TlsListener says nothing to those who are not admitted",
  net,
  () =>
    withListener({}, async ({ listener, handler, raw, ask }) => {
      await ask("a");
      handler.unwelcome = "127.0.0.1";
      const socket = await raw();
      let heard = 0;
      socket.on("data", (chunk) => heard += chunk.length);
      socket.write(HELLO_START);
      await until("closed", () => socket.wasClosed);
      assert.deepEqual([heard, listener.handshakes, handler.refused], [0, 0, 0]);
    }),
);

Deno.test("TlsListener.renew() shows another certificate and keeps connections", net, async () => {
  const other = await identityOf(DOMAIN);
  await withListener({}, async ({ listener, ask }) => {
    const serialOf = ({ socket }: Client) =>
      (socket as TLSSocket).getPeerCertificate().serialNumber;
    const before = await ask("a");
    const first = serialOf(before);
    listener.renew(other);
    assert.notEqual(serialOf(await ask("b")), first);
    before.send("c");
    await before.expect("c");
  });
});

Deno.test(
  "TlsListener without a certificate closes connections until it has one",
  net,
  () =>
    withListener({}, async ({ listener, handler, raw, ask }) => {
      const socket = await raw();
      await until("closed", () => socket.wasClosed);
      await until("counted", () => handler.handshakeFailures === 1);
      listener.renew(IDENTITY);
      await ask("a");
    }, null),
);
