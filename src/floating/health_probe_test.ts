import assert from "node:assert/strict";
import { freePort } from "../../tests/free_port.ts";
import { openNative } from "../native/mod.ts";
import { openPackets } from "../native/system.ts";
import { HealthProbe } from "./health_probe.ts";
import { Watcher } from "../native/mod.ts";

const LOOPBACK = new Uint8Array([127, 0, 0, 1]);

/** A DNS server as far as a probe can tell: each query it is asked may be answered. */
class Server {
  readonly #udp: Deno.DatagramConn;
  readonly #tcp: Deno.TcpListener;
  readonly #connections: Deno.TcpConn[] = [];
  readonly port: number;
  /** Answers to come; others are passed over. */
  answers = Infinity;
  asked = 0;
  #onConnected: () => void = () => {};
  readonly connected = new Promise<void>((resolve) => this.#onConnected = resolve);

  constructor() {
    this.port = freePort();
    this.#tcp = Deno.listen({ hostname: "127.0.0.1", port: this.port });
    this.#udp = Deno.listenDatagram({
      transport: "udp",
      hostname: "127.0.0.1",
      port: this.port,
    });
    void this.#serveUdp().catch(() => {});
    void this.#serveTcp().catch(() => {});
  }

  async #serveUdp(): Promise<void> {
    for (;;) {
      const [query, from] = await this.#udp.receive();
      this.asked++;
      if (this.answers-- <= 0) continue;
      const answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1];
      const response = new Uint8Array([...query, ...answer]);
      response[2] |= 0x80;
      response[7] = 1;
      await this.#udp.send(response, from);
    }
  }

  async #serveTcp(): Promise<void> {
    for await (const connection of this.#tcp) {
      this.#connections.push(connection);
      this.#onConnected();
    }
  }

  closeConnections(): void {
    for (const connection of this.#connections.splice(0)) connection.close();
  }

  close(): void {
    this.closeConnections();
    this.#udp.close();
    this.#tcp.close();
  }
}

/** A probe and its results, one after the other. */
class Probing {
  readonly #watcher: Watcher;
  readonly #probe: HealthProbe;
  readonly #served: Promise<void>;
  readonly #results: boolean[] = [];
  #onResult: () => void = () => {};

  constructor(port: number, checkMs?: number) {
    const libc = { native: openNative()!, packets: openPackets()! };
    this.#watcher = new Watcher(libc.native);
    this.#probe = new HealthProbe(libc, { ip: LOOPBACK, port }, {
      watch: (fd, onReadable) => this.#watcher.watch(fd, onReadable),
      onResult: (isGood) => {
        this.#results.push(isGood);
        this.#onResult();
      },
    }, checkMs);
    this.#served = this.#watcher.run();
    this.#probe.start();
  }

  async next(): Promise<boolean> {
    while (this.#results.length === 0) {
      await new Promise<void>((resolve) => this.#onResult = resolve);
    }
    return this.#results.shift()!;
  }

  async stop(): Promise<void> {
    this.#probe.stop();
    this.#watcher.stop();
    await this.#served;
  }
}

const options = { permissions: { net: true, ffi: true }, ignore: openNative() === null } as const;

Deno.test("HealthProbe tells of each check, and asks again within one", options, async () => {
  const server = new Server();
  const probing = new Probing(server.port);
  try {
    assert.equal(await probing.next(), true);
    server.answers = 0;
    const before = server.asked;
    assert.equal(await probing.next(), false);
    assert.ok(server.asked - before > 1, "a lost packet alone fails no check");
    server.answers = Infinity;
    assert.equal(await probing.next(), true);
  } finally {
    await probing.stop();
    server.close();
  }
});

/** Longer than a test: no check comes by time alone. */
const NEVER_MS = 3_600_000;

Deno.test("HealthProbe checks at once when the server's connections end", options, async () => {
  const server = new Server();
  const probing = new Probing(server.port, NEVER_MS);
  try {
    await Promise.all([server.connected, probing.next()]);
    server.closeConnections();
    assert.equal(await probing.next(), true);
  } finally {
    await probing.stop();
    server.close();
  }
});

Deno.test("HealthProbe fails three times in a row where nobody listens", options, async () => {
  const server = new Server();
  server.close();
  const probing = new Probing(server.port, NEVER_MS);
  try {
    for (let i = 0; i < 3; i++) assert.equal(await probing.next(), false);
  } finally {
    await probing.stop();
  }
});
