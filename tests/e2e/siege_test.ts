// Goal: whatever comes over any listener at once, a household's queries are answered, and nothing is
// left of it afterwards: no problem, no memory, no restart. Method: one service with every
// transport, attacked from addresses of its own on all of them while one client asks over UDP.

import { concat } from "../../src/bytes/mod.ts";
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { formatIp, type HostPort, parseHostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { decode, framed, UdpClient } from "./clients.ts";
import { OwnDirectory, pause, PERMISSIONS, Service, until } from "./harness.ts";

const DOMAIN = "dns.svc.test";
/** The household, and those who attack it. Only the household's address has no rate limit. */
const HOME = "127.0.0.1";
const ATTACKER = "127.0.0.2";
const NEIGHBOUR = "127.0.0.3";
const RULES = 5_000;
const SIEGE_MS = 8_000;
const MIB_BYTES = 1024 * 1024;
/** What code that was not loaded before, and a heap that grew, may keep. */
const KEPT_BYTES_MAX = 64 * MIB_BYTES;
const QUERY = encodeQuery("nas.home.arpa", Qtype.A, { id: 1 });
const FRAME = framed([QUERY]);

/** Opens connections, and ends all of them behind the attack. */
class Attacker implements Disposable {
  readonly sockets: Socket[] = [];

  constructor(private readonly from: string) {}

  tcp({ ip, port }: HostPort): Socket {
    return this.#keep(connect({ host: formatIp(ip), port, localAddress: this.from }));
  }

  tls({ ip, port }: HostPort, alpn: string): Socket {
    return this.#keep(connectTls(
      {
        host: formatIp(ip),
        port,
        localAddress: this.from,
        servername: DOMAIN,
        ALPNProtocols: [alpn],
        rejectUnauthorized: false,
      } as ConnectionOptions,
    ));
  }

  /** Writes again and again without ever waiting for an answer, which it reads and forgets. */
  flood(socket: Socket, bytes: Uint8Array, event: "connect" | "secureConnect"): void {
    socket.resume();
    const write = () => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on("drain", write);
    socket.on(event, write);
  }

  #keep(socket: Socket): Socket {
    socket.on("error", () => {}); // To be cut off is what it gets.
    this.sockets.push(socket);
    return socket;
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

/** An HTTP/2 frame (RFC 9113 §4.1). */
function http2Frame(type: number, flags: number, stream: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(9 + payload.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, (payload.length << 8) | type);
  view.setUint8(4, flags);
  view.setUint32(5, stream);
  frame.set(payload, 9);
  return frame;
}

const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const SETTINGS = http2Frame(4, 0, 0, new Uint8Array(0));
const PING = http2Frame(6, 0, 0, new Uint8Array(8));

function repeated(bytes: Uint8Array, times: number): Uint8Array {
  return concat(...Array.from({ length: times }, () => bytes));
}

/** Streams of a message's length that never end. */
async function holdStreams({ ip, port }: HostPort, from: string): Promise<() => void> {
  const endpoint = new Deno.QuicEndpoint({ hostname: from, port: 0 });
  const connections: Deno.QuicConn[] = [];
  for (let i = 0; i < 16; i++) {
    try {
      const connection = await Deno.connectQuic({
        hostname: formatIp(ip),
        port,
        serverName: DOMAIN,
        alpnProtocols: ["doq"],
        endpoint,
        caCerts: [AUTHORITY.cert],
      });
      connections.push(connection);
      for (let stream = 0; stream < 64; stream++) {
        void hold(connection);
      }
    } catch {
      break; // No more of them are taken.
    }
  }
  return () => {
    for (const connection of connections) connection.close({ closeCode: 0, reason: "" });
    endpoint.close();
  };
}

async function hold(connection: Deno.QuicConn): Promise<void> {
  try {
    const { writable, readable } = await connection.createBidirectionalStream();
    void readable.cancel().catch(() => {});
    const writer = writable.getWriter();
    const message = new Uint8Array(60_000);
    message.set([0xff, 0xff]);
    await writer.write(message);
  } catch {
    // Cut off: that is what it gets.
  }
}

const AUTHORITY = await makeAuthority();

Deno.test({
  name:
    "svc run holds a siege on every listener, answers its household, and is as it was behind it",
  permissions: PERMISSIONS,
  // What an attack has open ends when the other side says so.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using own = await OwnDirectory.make();
    const issued = await AUTHORITY.issue({ names: [DOMAIN], ips: [HOME] });
    await writePair(own.path, "server", issued);
    const listen = [`${HOME}:0`];
    await using service = await Service.start({
      directory: own.path,
      config: {
        server: { listen },
        "server.rate_limit": { queries_per_second: 300, burst: 1_000, exempt: [`${HOME}/32`] },
        "server.tls": {
          cert: "server.crt",
          key: "server.key",
          server_name: DOMAIN,
          dot: listen,
          doh: listen,
          doq: listen,
        },
      },
    });
    const api = await Api.of(service);
    await api.create("records", { name: "nas.home.arpa", type: "A", value: "192.0.2.5" });
    const add = Array.from({ length: RULES }, (_, i) => ({ rule: `||n${i}.example^` }));
    assert.equal((await api.call("POST", "rules/batch", { add })).added.length, RULES);
    const { listen: [apiAddress] } = await service.logged("serving the API") as unknown as {
      listen: string[];
    };
    const apiAt = parseHostPort(apiAddress)!;
    const { dot: [dot], doh: [doh], doq: [doq] } = service.encrypted;
    const problems = async () => (await api.call("GET", "status")).problems as string[];
    assert.deepEqual(await problems(), []);
    const before = await service.residentBytes();

    using household = await UdpClient.open(service.address);
    let asked = 0;
    let answered = 0;
    {
      using attacker = new Attacker(ATTACKER);
      using neighbour = new Attacker(NEIGHBOUR);
      const release = await holdStreams(doq, ATTACKER);
      for (let i = 0; i < 4; i++) {
        attacker.flood(attacker.tcp(service.address), repeated(FRAME, 500), "connect");
        attacker.flood(attacker.tls(dot, "dot"), repeated(FRAME, 500), "secureConnect");
        const hello = attacker.tls(doh, "h2");
        hello.once("secureConnect", () => hello.write(concat(PREFACE, SETTINGS)));
        attacker.flood(hello, repeated(PING, 1_000), "secureConnect");
      }
      for (let i = 0; i < 300; i++) {
        neighbour.tcp(service.address); // Says nothing.
        neighbour.tcp(dot); // Begins no handshake.
      }
      for (let i = 0; i < 80; i++) neighbour.tcp(apiAt).write("GET /api/v1/health HTTP/1.1\r\n");
      const pipelined = new TextEncoder().encode(
        "GET /api/v1/rules HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(64),
      );
      for (let i = 0; i < 8; i++) attacker.tcp(apiAt).pause().write(pipelined);
      const chunk = new TextEncoder().encode(`3e8\r\n${"a".repeat(1_000)}\r\n`);
      const head = "POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\n" +
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
      attacker.tcp(apiAt).write(concat(new TextEncoder().encode(head), repeated(chunk, 1_100)));

      const endsAtMs = performance.now() + SIEGE_MS;
      while (performance.now() < endsAtMs) {
        asked++;
        const answer = decode(await household.exchange(QUERY));
        if (answer.answers[0]?.data === "192.0.2.5") answered++;
        await pause(5);
      }
      assert.equal((await api.call("GET", "health")).status !== undefined, true);
      release();
    }
    assert.equal(answered, asked);
    assert.ok(asked > 100, `${asked} queries make a siege`);
    await until("no problem is left", async () => (await problems()).length === 0, 90_000);
    await until(
      `memory: ${before / MIB_BYTES} MiB before`,
      async () => await service.residentBytes() < before + KEPT_BYTES_MAX,
    );
    assert.equal(service.count("a dns isolate crashed"), 0, service.transcript());
    assert.equal((await service.stop()).code, 0);
  },
});
