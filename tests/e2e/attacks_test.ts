// Goal: whoever fills connections with what is never whole, or never takes an answer, costs memory up
// to a bound, is told of, and keeps nobody else out. Method: the program under one attack after the
// other, from a few addresses of loopback; its memory is the system's count.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { ask, TcpClient } from "./clients.ts";
import { OwnDirectory, pause, PERMISSIONS, Service, until } from "./harness.ts";

const DOMAIN = "dns.svc.test";
const OWN_NAME = "health.svc.test";
const AUTHORITY = await makeAuthority();
const permissions = PERMISSIONS;
/** What an attack may cost, whatever it sends. */
const COST_BYTES_MAX = 64 * 1024 * 1024;
const ATTACKERS = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
const CONNECTIONS = 128;
/** Memory is looked at for this long, so often. */
const WATCH_MS = 4_000;
const LOOK_MS = 100;

async function start(directory: string): Promise<Service> {
  await writePair(
    directory,
    "server",
    await AUTHORITY.issue({ names: [DOMAIN], ips: ["127.0.0.1"] }),
  );
  const listen = ["127.0.0.1:0"];
  const tls = { cert: "server.crt", key: "server.key", server_name: DOMAIN };
  return await Service.start({
    directory,
    config: {
      server: { listen },
      "server.tls": { ...tls, dot: listen, doh: listen, doq: listen },
      "server.rate_limit": { queries_per_second: 0 },
    },
  });
}

const message = encodeQuery(OWN_NAME, Qtype.A, { id: 0 });
const query = Uint8Array.of(message.length >> 8, message.length & 255, ...message);
/** As many of them as a socket is given at once. */
const queries = Uint8Array.from(Array.from({ length: 1_000 }, () => [...query]).flat());
/** A message of 65,535 bytes but for its last ones. */
const unfinished = new Uint8Array(65_000).fill(1);
unfinished.set([0xff, 0xff]);

/** A frame of HTTP/2. */
function frame(type: number, flags: number, stream: number, payload: Uint8Array): Uint8Array {
  const head = [payload.length >> 16, payload.length >> 8 & 255, payload.length & 255, type, flags];
  return Uint8Array.of(...head, 0, 0, stream >> 8, stream & 255, ...payload);
}

const encoder = new TextEncoder();
const field = (name: string, value: string) => [
  ...[0, name.length, ...encoder.encode(name), value.length, ...encoder.encode(value)],
];
const POST = Uint8Array.from([
  ...field(":method", "POST"),
  ...field(":scheme", "https"),
  ...field(":path", "/dns-query"),
  ...field("content-type", "application/dns-message"),
]);
const HELLO = encoder.encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** Bodies of 16 KB each that go on and on. */
const unfinishedBodies = Uint8Array.from([
  ...HELLO,
  ...frame(4, 0, 0, new Uint8Array(0)),
  ...[1, 3, 5, 7, 9, 11, 13].flatMap((stream) => [
    ...frame(1, 4, stream, POST),
    ...frame(0, 0, stream, new Uint8Array(16_000)),
    ...frame(0, 0, stream, new Uint8Array(16_000)),
  ]),
]);

/** Opens connections from all attackers, and sends `bytes` on each again and again, or once. */
async function attack(
  port: number,
  protocol: string | null,
  bytes: Uint8Array,
  isEndless: boolean,
): Promise<() => void> {
  const sockets: Socket[] = [];
  for (let i = 0; i < CONNECTIONS; i++) {
    const localAddress = ATTACKERS[i % ATTACKERS.length];
    const raw = connect({ host: "127.0.0.1", port, localAddress });
    const socket = protocol === null ? raw : connectTls({
      socket: raw,
      ca: AUTHORITY.cert,
      servername: DOMAIN,
      ALPNProtocols: [protocol],
    });
    let isOpen = false;
    socket.on("error", () => {}); // To be cut off is what is expected.
    socket.on("close", () => isOpen = true);
    socket.pause(); // Nothing that comes back is read.
    socket.once(protocol === null ? "connect" : "secureConnect", () => {
      isOpen = true;
      const send = () => {
        while (socket.write(bytes) && isEndless && !socket.destroyed) { /* On. */ }
      };
      if (isEndless) socket.on("drain", send);
      send();
    });
    sockets.push(socket);
    if (i % 16 === 15) await until("connected", () => isOpen);
  }
  return () => sockets.forEach((socket) => socket.destroy());
}

/** Streams over QUIC whose queries never end. */
async function attackOverQuic(port: number): Promise<() => void> {
  const conns: Deno.QuicConn[] = [];
  await Promise.all(ATTACKERS.map(async (hostname) => {
    const endpoint = new Deno.QuicEndpoint({ hostname, port: 0 });
    for (let i = 0; i < CONNECTIONS / ATTACKERS.length; i++) {
      const conn = await Deno.connectQuic<false>({
        hostname: "127.0.0.1",
        port,
        serverName: DOMAIN,
        caCerts: [AUTHORITY.cert],
        alpnProtocols: ["doq"],
        endpoint,
      });
      conns.push(conn);
      conn.closed.catch(() => {});
      for (let stream = 0; stream < 64; stream++) {
        const opened = await conn.createBidirectionalStream().catch(() => null);
        if (opened === null) break; // As many as there may be.
        opened.readable.cancel().catch(() => {});
        opened.writable.getWriter().write(unfinished).catch(() => {});
      }
    }
  }));
  return () => conns.forEach((conn) => conn.close());
}

Deno.test("attacks with what is never whole, or never read, take no more than a bound", {
  permissions,
  sanitizeOps: false, // Sockets and streams that are cut off end in their own time.
  sanitizeResources: false,
}, async (t) => {
  await using directory = await OwnDirectory.make();
  await using service = await start(directory.path);
  const { doh: [doh], dot: [dot], doq: [doq] } = service.encrypted;
  const plain = service.address;
  const rows: readonly (readonly [string, () => Promise<() => void>])[] = [
    ["half messages over TCP", () => attack(plain.port, null, unfinished, false)],
    ["half messages over TLS", () => attack(dot.port, "dot", unfinished, false)],
    ["half bodies over HTTP/2", () => attack(doh.port, "h2", unfinishedBodies, false)],
    ["answers over TCP that nobody reads", () => attack(plain.port, null, queries, true)],
    ["answers over TLS that nobody reads", () => attack(dot.port, "dot", queries, true)],
    ["half messages over QUIC", () => attackOverQuic(doq.port)],
  ];
  await ask(plain, OWN_NAME, Qtype.A);
  // Heaps that are collected at rest take what they had again.
  let taken = 0;
  for (const [name, begin] of rows) {
    await t.step(name, async () => {
      const before = Math.max(taken, await service.residentBytes());
      const end = await begin();
      let most = 0;
      for (let ms = 0; ms < WATCH_MS; ms += LOOK_MS) {
        most = Math.max(most, await service.residentBytes());
        await pause(LOOK_MS);
      }
      taken = Math.max(taken, most);
      await ask(plain, OWN_NAME, Qtype.A);
      using client = await TcpClient.connect(plain);
      await client.send(encodeQuery(OWN_NAME, Qtype.A, { id: 7 }));
      assert.equal((await client.message()).id, 7);
      end();
      const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20);
      console.log(`${name}: ${megabytes(before)} MiB before, ${megabytes(most)} MiB at most`);
      assert.ok(
        most - before < COST_BYTES_MAX,
        `${name}: ${megabytes(before)} MiB before, ${megabytes(most)} MiB at most`,
      );
    });
  }
  service.assertCalm();
});

Deno.test("silent connections keep nobody out, and the status says whose they are", {
  permissions,
  sanitizeOps: false,
  sanitizeResources: false,
}, async () => {
  await using directory = await OwnDirectory.make();
  await using service = await start(directory.path);
  const api = await Api.of(service);
  const silent: Socket[] = [];
  const { port } = service.address;
  // A client may have 128: it takes some of them to hold all of the 1,024.
  for (let i = 0; i < 1_100; i++) {
    const socket = connect({ host: "127.0.0.1", port, localAddress: `127.0.1.${1 + i % 9}` });
    socket.on("error", () => {});
    silent.push(socket);
    if (i % 50 === 49) await until("connected", () => !socket.connecting);
  }
  using client = await TcpClient.connect(service.address);
  await client.send(encodeQuery(OWN_NAME, Qtype.A, { id: 7 }));
  assert.equal((await client.message()).id, 7);
  await until("the status says so", async () => {
    const { problems } = await api.call("GET", "status");
    return problems.some((problem: string) =>
      /^tcp: 1,024 of 1,024 connections are taken, \d+ of them by 127\.0\.1\./.test(problem)
    );
  });
  for (const socket of silent) socket.destroy();
});
