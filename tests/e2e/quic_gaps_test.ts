// Goal: streams over QUIC whose data has gaps take memory up to a bound, however many there are of
// them, end at the deadline of unfinished queries, and keep nobody else out. Method: the runtime's
// client behind a relay that withholds the first packet of each stream and every second one after it:
// what it sends again is withheld too, so that the gaps stay.
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { ask } from "./clients.ts";
import { OwnDirectory, PERMISSIONS, Service, until } from "./harness.ts";
import { scrape } from "./scrape.ts";

const DOMAIN = "dns.svc.test";
const OWN_NAME = "health.svc.test";
const AUTHORITY = await makeAuthority();
/** Connections of one address and streams of a connection, as many as the service takes. */
const CONNECTIONS = 16;
const STREAMS = 16;
/** Each comes and goes with all of its connections, one after the other: 3,072 streams. */
const WAVES: readonly (readonly string[])[] = [
  ["127.0.0.2"],
  ["127.0.0.2"],
  ["127.0.0.2", "127.0.0.3"],
  ...Array.from({ length: 2 }, () => ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"]),
];
/** Pieces of a stream, every other one of them withheld, and their bytes. */
const PIECES = 12;
const PIECE_BYTES = 4;
/** What all of it may cost: what unfinished queries may hold in all, and as much for the runtime. */
const COST_BYTES_MAX = 64 * 1024 * 1024;
/** The deadline of a query is 5 seconds; without one, an idle connection would end after 30. */
const DEADLINE_MS_MAX = 25_000;
/** A query whose first piece says that it is of 65,535 bytes. */
const PIECE = new Uint8Array(PIECE_BYTES).fill(0xff);

/** One client's packets to the service, from an address of its own. */
interface Flow {
  readonly back: Socket;
  /** Packets that came from the client. */
  seen: number;
}

/** Passes packets on both ways, but for what it is told to withhold. */
class Relay {
  /** Nothing goes to the service; nothing comes back from it, so that nothing is known to be lost. */
  withholdsQueries = false;
  withholdsAnswers = false;
  readonly flows: Flow[] = [];
  readonly #front = createSocket("udp4");

  private constructor() {}

  /** Listens; those who connect are sent on from `address`. */
  static async start(address: string, port: number): Promise<Relay> {
    const relay = new Relay();
    const byClient = new Map<number, Promise<Flow>>();
    await bound(relay.#front, "127.0.0.1");
    relay.#front.on("message", async (packet, from) => {
      let opening = byClient.get(from.port);
      if (opening === undefined) {
        byClient.set(from.port, opening = relay.#open(address, from.port));
      }
      const flow = await opening;
      flow.seen++;
      if (!relay.withholdsQueries) flow.back.send(packet, port, "127.0.0.1");
    });
    return relay;
  }

  get port(): number {
    return this.#front.address().port;
  }

  async #open(address: string, client: number): Promise<Flow> {
    const back = createSocket("udp4");
    await bound(back, address);
    back.on("message", (packet) => {
      if (!this.withholdsAnswers) this.#front.send(packet, client, "127.0.0.1");
    });
    const flow = { back, seen: 0 };
    this.flows.push(flow);
    return flow;
  }

  close(): void {
    for (const socket of [this.#front, ...this.flows.map(({ back }) => back)]) socket.close();
  }
}

function bound(socket: Socket, address: string): Promise<void> {
  return new Promise((resolve) => socket.bind(0, address, resolve));
}

function connect(port: number): Promise<Deno.QuicConn> {
  return Deno.connectQuic<false>({
    hostname: "127.0.0.1",
    port,
    serverName: DOMAIN,
    caCerts: [AUTHORITY.cert],
    alpnProtocols: ["doq"],
  });
}

type Writer = WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

/** Streams of one client that all have gaps. */
class Attack {
  private constructor(
    private readonly relay: Relay,
    private readonly conns: readonly Deno.QuicConn[],
    private readonly writers: readonly Writer[],
  ) {}

  /** Opens all there may be, of which nothing has reached the service yet. */
  static async begin(address: string, port: number): Promise<Attack> {
    const relay = await Relay.start(address, port);
    const conns: Deno.QuicConn[] = [];
    for (let i = 0; i < CONNECTIONS; i++) {
      const conn = await connect(relay.port);
      conn.closed.catch(() => {}); // To be cut off is what is expected.
      conns.push(conn);
    }
    relay.withholdsAnswers = true;
    const writers: Writer[] = [];
    for (const conn of conns) {
      for (let i = 0; i < STREAMS; i++) {
        const { writable } = await conn.createBidirectionalStream();
        writers.push(writable.getWriter());
      }
    }
    return new Attack(relay, conns, writers);
  }

  /** Sends a piece on each stream, which gets there or not. */
  async send(isWithheld: boolean): Promise<void> {
    const { relay, writers } = this;
    relay.withholdsQueries = isWithheld;
    const before = relay.flows.map(({ seen }) => seen);
    await Promise.all(writers.map((writer) => writer.write(PIECE).catch(() => {})));
    const areSent = () => relay.flows.every(({ seen }, i) => seen > before[i]);
    await until("the pieces are on their way", areSent);
  }

  /** Whatever the clients send again is withheld from now on. */
  stop(): void {
    this.relay.withholdsQueries = true;
  }

  end(): void {
    for (const conn of this.conns) conn.close();
    this.relay.close();
  }
}

Deno.test("streams over QUIC whose data has gaps take no more than a bound, and end", {
  permissions: PERMISSIONS,
  sanitizeOps: false, // Streams that are cut off end in their own time.
  sanitizeResources: false,
}, async (t) => {
  await using directory = await OwnDirectory.make();
  const issued = await AUTHORITY.issue({ names: [DOMAIN], ips: ["127.0.0.1"] });
  await writePair(directory.path, "server", issued);
  const listen = ["127.0.0.1:0"];
  await using service = await Service.start({
    directory: directory.path,
    config: {
      server: { listen },
      "server.tls": { cert: "server.crt", key: "server.key", server_name: DOMAIN, doq: listen },
    },
  });
  const { doq: [{ port }] } = service.encrypted;
  const base = (await Api.of(service)).base;
  const query = encodeQuery(OWN_NAME, Qtype.A, { id: 0 });
  const framed = Uint8Array.of(0, query.length, ...query);

  /** A client without a gap is answered, over QUIC and over UDP. */
  const answersOthers = async () => {
    const conn = await connect(port);
    const { readable, writable } = await conn.createBidirectionalStream();
    const writer = writable.getWriter();
    await writer.write(framed);
    await writer.close();
    let length = 0;
    for await (const chunk of readable) length += chunk.length;
    assert.ok(length > framed.length, "an answer over QUIC");
    conn.close();
    await ask(service.address, OWN_NAME, Qtype.A);
  };

  await t.step("a query whose gap is filled in time is answered", async () => {
    const relay = await Relay.start("127.0.0.9", port);
    const conn = await connect(relay.port);
    const { readable, writable } = await conn.createBidirectionalStream();
    const writer = writable.getWriter();
    const [flow] = relay.flows;
    relay.withholdsQueries = relay.withholdsAnswers = true;
    const before = flow.seen;
    await writer.write(framed.subarray(0, 6));
    await until("the first piece is withheld", () => flow.seen > before);
    relay.withholdsQueries = relay.withholdsAnswers = false;
    await writer.write(framed.subarray(6));
    await writer.close();
    let length = 0;
    for await (const chunk of readable) length += chunk.length;
    assert.ok(length > framed.length);
    const said = flow.seen;
    conn.close();
    await until("its end is on its way", () => flow.seen > said);
    relay.close();
  });

  await t.step("gaps that stay", async () => {
    await answersOthers();
    const before = await service.residentBytes();
    const attacks: Attack[] = [];
    let most = before;
    for (const addresses of WAVES) {
      const wave = await Promise.all(addresses.map((address) => Attack.begin(address, port)));
      attacks.push(...wave);
      for (let i = 0; i < PIECES; i++) {
        await Promise.all(wave.map((attack) => attack.send(i % 2 === 0)));
      }
      most = Math.max(most, await service.residentBytes());
      for (const attack of wave) attack.stop();
      await answersOthers();
    }
    most = Math.max(most, await service.residentBytes());
    const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
    console.log(`${mib(before)} MiB before, ${mib(most)} MiB at most`);
    assert.ok(most - before < COST_BYTES_MAX, `${mib(before)} MiB before, ${mib(most)} at most`);

    await until("the unfinished have lost their connections", async () => {
      const taken = (await scrape(base)).get("svc_connections")?.metrics
        .find(({ labels }) => labels?.protocol === "doq");
      return taken?.value === "0";
    }, DEADLINE_MS_MAX);
    await answersOthers();
    for (const attack of attacks) attack.end();
  });
  service.assertCalm();
});
