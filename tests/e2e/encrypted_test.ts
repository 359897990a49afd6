// Goal: DNS over TLS and over QUIC as phones, routers and libraries speak it, a certificate that is
// renewed under open connections, and nobody who can keep others out. Method: the program with a
// certificate of an authority of the test's own, asked by dig, kdig, dnsperf, openssl and QUIC.

import assert from "node:assert/strict";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { formatHostPort, formatIp, type HostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { FrameReader } from "../../src/transport/mod.ts";
import { type Issued, makeAuthority, writePair } from "./certificates.ts";
import { ask, decode, dnsperf, framed, lookUp, TcpClient } from "./clients.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import {
  type ConfigText,
  HAS_IPV6,
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  until,
} from "./harness.ts";

const DOMAIN = "dns.svc.test";
const OWN_NAME = "health.svc.test";
const AUTHORITY = await makeAuthority();
const permissions = PERMISSIONS;
/** Log lines about the certificate of DNS have this. */
const DNS = { certificate: "server.tls.cert" };

function issue(): Promise<Issued> {
  return AUTHORITY.issue({ names: [DOMAIN, `*.${DOMAIN}`], ips: ["127.0.0.1"] });
}

/** A service with a certificate in its folder. */
class Encrypted {
  private constructor(
    readonly service: Service,
    readonly directory: string,
    private readonly stack: AsyncDisposableStack,
  ) {}

  static async start(
    config: ConfigText = {},
    without: readonly string[] = [],
    inDirectory?: string,
  ): Promise<Encrypted> {
    await using stack = new AsyncDisposableStack();
    const directory = inDirectory ?? stack.use(await OwnDirectory.make()).path;
    await Deno.writeTextFile(`${directory}/ca.crt`, AUTHORITY.cert);
    await writePair(directory, "server", await issue());
    const listen = HAS_IPV6 ? ["127.0.0.1:0", "[::1]:0"] : ["127.0.0.1:0"];
    const tls = { cert: "server.crt", key: "server.key", server_name: DOMAIN };
    const service = stack.use(
      await Service.start({
        directory,
        without,
        config: {
          ...config,
          "server.tls": { ...tls, dot: listen, doq: listen, ...config["server.tls"] },
        },
      }),
    );
    return new Encrypted(service, directory, stack.move());
  }

  get dot(): HostPort {
    return this.service.encrypted.dot[0];
  }

  get doq(): HostPort {
    return this.service.encrypted.doq[0];
  }

  /** The API's status. */
  async status(): Promise<{ problems: string[]; listeners: unknown[] }> {
    const { listen, tls } = await this.service.logged("serving the API");
    const scheme = tls === true ? "https" : "http";
    // One for each request: what is asked for is shown the certificate as it is now.
    using client = Deno.createHttpClient({ caCerts: [AUTHORITY.cert] });
    const url = `${scheme}://${(listen as string[])[0]}/api/v1/status`;
    const response = await fetch(url, { client });
    assert.equal(response.status, 200);
    return await response.json();
  }

  async metric(name: string): Promise<number> {
    const { listen } = await this.service.logged("serving the API");
    const text = await (await fetch(`http://${(listen as string[])[0]}/metrics`)).text();
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    assert.ok(line !== undefined, `${name} is in\n${text}`);
    return Number(line.split(" ").at(-1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}

/** A DoT connection that checks the certificate. */
class DotClient {
  readonly answers: Uint8Array[] = [];
  closed = false;
  readonly #frames = new FrameReader();

  private constructor(readonly socket: TLSSocket) {
    socket.on("data", (chunk: Uint8Array) => {
      this.#frames.push(chunk);
      for (let m = this.#frames.next(); m !== null; m = this.#frames.next()) {
        this.answers.push(m.slice());
      }
    });
    socket.on("error", () => {}); // A reset is one of the ways to be closed.
    socket.on("close", () => this.closed = true);
  }

  static async connect({ ip, port }: HostPort, servername = DOMAIN): Promise<DotClient> {
    const socket = connectTls({
      ...{ host: formatIp(ip), port, servername, ca: AUTHORITY.cert, ALPNProtocols: ["dot"] },
    });
    const client = new DotClient(socket);
    let isSecure = false;
    socket.on("secureConnect", () => isSecure = socket.authorized);
    await until("a handshake", () => isSecure || client.closed);
    assert.ok(isSecure, "the certificate is good");
    return client;
  }

  send(...packets: Uint8Array[]): void {
    this.socket.write(framed(packets));
  }

  /** Asks once; the response code. */
  async ask(name = OWN_NAME): Promise<number> {
    const before = this.answers.length;
    this.send(encodeQuery(name, Qtype.A, { id: 1 }));
    await until("an answer", () => this.answers.length > before || this.closed);
    assert.ok(this.answers.length > before, "the connection stands");
    return decode(this.answers[before]).rcode;
  }

  get serialNumber(): string {
    return this.socket.getPeerCertificate().serialNumber;
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

async function connectQuic({ ip, port }: HostPort, serverName = DOMAIN): Promise<Deno.QuicConn> {
  return await Deno.connectQuic<false>({
    ...{ hostname: formatIp(ip), port, serverName },
    ...{ caCerts: [AUTHORITY.cert], alpnProtocols: ["doq"] },
  });
}

/** Asks on a stream of its own; all that comes back. */
async function askQuic(conn: Deno.QuicConn, packet: Uint8Array): Promise<Uint8Array> {
  const stream = await conn.createBidirectionalStream({ waitUntilAvailable: true });
  const writer = stream.writable.getWriter();
  await writer.write(framed([packet]));
  await writer.close();
  const bytes: number[] = [];
  for await (const chunk of stream.readable) bytes.push(...chunk);
  return Uint8Array.from(bytes.slice(2));
}

Deno.test({
  name: "dig and kdig ask over TLS",
  ignore: !hasProgram("dig") || !hasProgram("kdig"),
  permissions,
  fn: async () => {
    await using upstream = await FakeUpstream.start((query) => address(query));
    await using running = await Encrypted.start({
      server: { workers: 2 },
      upstream: [{ address: upstream.text }],
    });
    const { service, directory } = running;
    for (const server of service.encrypted.dot) {
      const checked = `+tls-ca=${directory}/ca.crt +tls-hostname=${DOMAIN}`;
      const text = await lookUp("dig", server, `+tls ${checked} ${OWN_NAME} A`);
      assert.match(text, /status: NOERROR/);
      assert.match(text, /\(TLS\)/);
      assert.match(text, /127\.0\.0\.1/);
      const names = Array.from({ length: 5 }, (_, i) => `n${i}.example`).join(" ");
      const sni = `phone.${DOMAIN}`;
      const kept = await lookUp(
        "kdig",
        server,
        `+tls +tls-ca=${directory}/ca.crt +tls-hostname=${sni} +tls-sni=${sni} +keepopen ${names}`,
      );
      assert.equal(kept.match(/status: NOERROR/g)?.length, 5, kept);
      assert.match(kept, /TLS1\.3/);
    }
    service.assertCalm();
  },
});

Deno.test({
  name: "dnsperf keeps connections over TLS busy, and every query is answered",
  ignore: !hasProgram("dnsperf"),
  permissions,
  fn: async () => {
    await using running = await Encrypted.start({ server: { workers: 2 } });
    const lines = Array.from({ length: 2_000 }, () => `${OWN_NAME} A`);
    const { directory, dot, service } = running;
    const load = await dnsperf(dot, directory, lines, 2_000, "-m", "dot", "-c", "10");
    assert.deepEqual([load.sent, load.completed, load.lost], [2_000, 2_000, 0], load.text);
    assert.deepEqual(load.rcodes, { NOERROR: 2_000 });
    service.assertCalm();
  },
});

Deno.test({
  name: "openssl finds TLS 1.2 and 1.3, no older version, and no other protocol",
  ignore: !hasProgram("openssl"),
  permissions,
  fn: async () => {
    await using running = await Encrypted.start();
    const handshake = async (...args: string[]) => {
      const { stdout, stderr } = await runProgram(
        "openssl",
        ...["s_client", "-connect", formatHostPort(running.dot), "-servername", DOMAIN],
        ...["-CAfile", `${running.directory}/ca.crt`, "-verify_return_error", ...args],
      );
      return stdout + stderr;
    };
    assert.match(await handshake("-tls1_3", "-alpn", "dot"), /ALPN protocol: dot/);
    assert.match(await handshake("-tls1_2", "-alpn", "dot"), /ALPN protocol: dot/);
    assert.match(await handshake("-tls1_2"), /Verify return code: 0 \(ok\)/);
    const old = await handshake("-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0");
    assert.match(old, /alert (protocol version|handshake failure)|no protocols available/);
    assert.match(await handshake("-alpn", "http/1.1"), /no application protocol/);
    await until(
      "failures are counted",
      async () => await running.metric("svc_tls_handshake_failures_total") > 0,
    );
  },
});

Deno.test("DoQ and DoT clients ask side by side, and the status names the listeners", {
  permissions,
}, async () => {
  await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
  await using running = await Encrypted.start({ upstream: [{ address: upstream.text }] });
  const { service } = running;
  for (const [i, server] of service.encrypted.doq.entries()) {
    const conn = await connectQuic(server, `phone.${DOMAIN}`);
    // More than a client may ask at once: the others wait.
    const names = Array.from({ length: 20 }, (_, k) => `q${i}-${k}.example`);
    const answers = await Promise.all(
      names.map((name) => askQuic(conn, encodeQuery(name, Qtype.A, { id: 0 }))),
    );
    for (const [k, answer] of answers.entries()) {
      const { id, questions, answers: [record] } = decode(answer);
      assert.deepEqual([id, questions[0].name, record.data], [0, names[k], "192.0.2.7"]);
    }
    // An ID of its own ends the connection, and no other one (RFC 9250 §4.2.1).
    const other = await connectQuic(server);
    const broken = askQuic(other, encodeQuery(OWN_NAME, Qtype.A, { id: 7 })).catch(() => null);
    assert.equal((await other.closed).closeCode, 2);
    await broken;
    const again = decode(await askQuic(conn, encodeQuery(OWN_NAME, Qtype.A, { id: 0 })));
    assert.equal(again.rcode, Rcode.NoError);
    conn.close();
  }
  using dot = await DotClient.connect(running.dot);
  dot.send(...[1, 2, 3].map((id) => encodeQuery(`t${id}.example`, Qtype.A, { id })));
  await until("three answers", () => dot.answers.length === 3);
  assert.deepEqual(dot.answers.map((answer) => decode(answer).id).sort(), [1, 2, 3]);
  const { listeners } = await running.status();
  const expected = [
    ...service.listening.flatMap((listen) =>
      ["udp", "tcp"].map((protocol) => ({ protocol, address: formatHostPort(listen) }))
    ),
    ...(["dot", "doq"] as const).flatMap((protocol) =>
      service.encrypted[protocol].map((listen) => ({ protocol, address: formatHostPort(listen) }))
    ),
  ];
  assert.deepEqual(listeners, expected);
  service.assertCalm();
});

Deno.test("SIGHUP renews the certificate under open connections, and refuses a bad one", {
  permissions,
}, async () => {
  await using running = await Encrypted.start({ server: { workers: 2 } });
  const { service, directory } = running;
  using open = await DotClient.connect(running.dot);
  const quic = await connectQuic(running.doq);
  const health = encodeQuery(OWN_NAME, Qtype.A, { id: 0 });
  assert.deepEqual((await running.status()).problems, []);
  const first = open.serialNumber;

  await Deno.writeTextFile(`${directory}/server.key`, "garbage");
  service.kill("SIGHUP");
  await service.logged("the certificate is not renewed: the former one stays", DNS);
  const [problem] = (await running.status()).problems;
  assert.match(problem, /^server\.tls\.key: .*server\.key is no PEM private key: .* SIGHUP$/);
  using same = await DotClient.connect(running.dot);
  assert.equal(same.serialNumber, first);

  const soon = new Date(Date.now() + 5 * 24 * 60 * 60 * 1_000);
  await writePair(directory, "server", await AUTHORITY.issue({ names: [DOMAIN], notAfter: soon }));
  service.kill("SIGHUP");
  await service.logged("the certificate is shown as it is now", DNS);
  await until("every isolate shows it", async () => {
    const serials = new Set<string>();
    for (let i = 0; i < 8; i++) {
      using client = await DotClient.connect(running.dot);
      serials.add(client.serialNumber);
    }
    return serials.size === 1 && !serials.has(first);
  });
  assert.match((await running.status()).problems.join(), /expires in 4 days, at/);
  // The new one has no wildcard.
  await until(
    "no connection over QUIC by the former one",
    () =>
      connectQuic(running.doq, `phone.${DOMAIN}`).then((conn) => {
        conn.close();
        return false;
      }, () => true),
  );
  assert.equal(await open.ask(), Rcode.NoError);
  assert.equal(decode(await askQuic(quic, health)).rcode, Rcode.NoError);
  quic.close();
});

Deno.test("SIGHUP renews the API's certificate, whose end the status tells", {
  permissions,
}, async () => {
  const api = { tls_cert: "api.crt", tls_key: "api.key" };
  await using own = await OwnDirectory.make();
  const directory = own.path;
  const soon = new Date(Date.now() + 5.5 * 24 * 60 * 60 * 1_000);
  const ips = ["127.0.0.1"];
  await writePair(directory, "api", await AUTHORITY.issue({ ips, notAfter: soon }));
  await using running = await Encrypted.start({ api }, [], directory);
  const problems = async () => (await running.status()).problems.join();
  assert.match(await problems(), /^api\.tls_cert: the certificate expires in 5 days, at [^,]*$/);
  await Deno.writeTextFile(`${directory}/api.key`, "garbage");
  running.service.kill("SIGHUP");
  const certificate = "api.tls_cert";
  await running.service.logged("the certificate is not renewed: the former one stays", {
    certificate,
  });
  assert.match(await problems(), /^api\.tls_key: .*api\.key is no PEM private key: .* still shown/);
  await writePair(directory, "api", await AUTHORITY.issue({ ips }));
  running.service.kill("SIGHUP");
  await running.service.logged("the certificate is shown as it is now", { certificate });
  assert.equal(await problems(), "");
});

Deno.test("a service without a usable certificate answers plain DNS, and encrypted DNS later", {
  permissions,
}, async () => {
  await using running = await Encrypted.start({ "server.tls": { key: "missing.key" } });
  const { service, directory } = running;
  assert.equal((await ask(service.address, OWN_NAME, Qtype.A)).answers.length, 1);
  assert.match((await running.status()).problems[0], /missing\.key can't be read/);
  using tcp = await TcpClient.connect(running.dot);
  assert.equal(await tcp.next(), null);
  await Deno.copyFile(`${directory}/server.key`, `${directory}/missing.key`);
  service.kill("SIGHUP");
  await service.logged("the certificate is shown as it is now", DNS);
  using dot = await DotClient.connect(running.dot);
  assert.equal(await dot.ask(), Rcode.NoError);
  (await connectQuic(running.doq)).close();
  assert.deepEqual((await running.status()).problems, []);
});

Deno.test("clients that hold handshakes open keep nobody out", { permissions }, async () => {
  await using running = await Encrypted.start();
  const held: TcpClient[] = [];
  try {
    // As many as one client may have.
    for (let i = 0; i < 120; i++) {
      const client = await TcpClient.connect(running.dot);
      await client.write(Uint8Array.of(22, 3, 1, 2, 0, 1));
      held.push(client);
    }
    using dot = await DotClient.connect(running.dot);
    assert.equal(await dot.ask(), Rcode.NoError);
    await until(
      "they are given up",
      async () => await running.metric("svc_tls_handshake_failures_total") >= 120,
    );
    assert.equal(await dot.ask(), Rcode.NoError);
  } finally {
    for (const client of held) client[Symbol.dispose]();
  }
});

Deno.test("SIGTERM lets queries over TLS and QUIC be answered", { permissions }, async () => {
  const hold = Promise.withResolvers<void>();
  await using upstream = await FakeUpstream.start(async (query) => {
    await hold.promise;
    return address(query);
  });
  await using running = await Encrypted.start({
    upstream: [{ address: upstream.text, timeout: "5s" }],
  });
  const { service } = running;
  using dot = await DotClient.connect(running.dot);
  const quic = await connectQuic(running.doq);
  dot.send(encodeQuery("tls.example", Qtype.A, { id: 1 }));
  const answer = askQuic(quic, encodeQuery("quic.example", Qtype.A, { id: 0 }));
  for (const name of ["tls", "quic"]) await upstream.asked(`${name}.example`);
  service.kill("SIGTERM");
  await service.logged("stopping", { signal: "SIGTERM" });
  hold.resolve();
  assert.equal(decode(await answer).answers.length, 1);
  await until("the answer over TLS", () => dot.answers.length === 1);
  assert.equal((await service.ended).code, 0);
  service.assertCalm();
});

Deno.test("encrypted DNS works without the C library", { permissions }, async () => {
  await using running = await Encrypted.start({}, ["--allow-ffi"]);
  using dot = await DotClient.connect(running.dot);
  assert.equal(await dot.ask(), Rcode.NoError);
  const quic = await connectQuic(running.doq);
  const health = await askQuic(quic, encodeQuery(OWN_NAME, Qtype.A, { id: 0 }));
  assert.equal(decode(health).answers.length, 1);
  quic.close();
});
