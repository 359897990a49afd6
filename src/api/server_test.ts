import assert from "node:assert/strict";
import { type HostPort, parseHostPort } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import { createApi } from "./app.ts";
import { fakeDeps } from "./fakes.ts";
import type { ApiDeps } from "./ports.ts";
import { API_LIMITS, type ApiLimits, ApiServer, type ApiServerOptions } from "./server.ts";

const local = { permissions: { net: true } };
/** Longest wait for what must happen; the limits under test are far below. */
const WAIT_MS_MAX = 10_000;

function at(text: string): HostPort {
  const address = parseHostPort(text);
  assert(address !== null);
  return address;
}

interface Running {
  readonly server: ApiServer;
  readonly port: number;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
}

async function start(
  over: Partial<Omit<ApiServerOptions, "limits">> & { limits?: Partial<ApiLimits> } = {},
): Promise<Running> {
  const server = new ApiServer({
    listen: [at("127.0.0.1:0")],
    tls: null,
    hasToken: false,
    handler: createApi(fakeDeps().deps),
    ...over,
    limits: { ...API_LIMITS, ...over.limits },
  });
  const [{ port }] = await server.start();
  return { server, port, [Symbol.asyncDispose]: () => server.stop(0) };
}

const encoder = new TextEncoder();

/** A connection that reads all it is sent until the other side ends it. */
class Client implements Disposable {
  readonly #conn: Deno.Conn;
  readonly #openedMs = performance.now();
  private constructor(conn: Deno.Conn) {
    this.#conn = conn;
  }
  static async open(port: number): Promise<Client> {
    return new Client(await Deno.connect({ hostname: "127.0.0.1", port }));
  }
  async write(text: string): Promise<void> {
    await this.#conn.write(encoder.encode(text));
  }
  /** Reads once; "" at the end. */
  async read(): Promise<string> {
    const buffer = new Uint8Array(65_536);
    try {
      const length = await this.#conn.read(buffer);
      return new TextDecoder().decode(buffer.subarray(0, length ?? 0));
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionReset) return "";
      throw error;
    }
  }
  /** Reads to the end; resolves with what came and how long after the opening it ended. */
  async ended(): Promise<{ text: string; afterMs: number }> {
    let text = "";
    for (let piece = await this.read(); piece !== ""; piece = await this.read()) text += piece;
    return { text, afterMs: performance.now() - this.#openedMs };
  }
  [Symbol.dispose](): void {
    this.#conn.close();
  }
}

const GET = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
const POST = "POST /api/v1/rules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

Deno.test("API_LIMITS are the specification's", { permissions: "none" }, () => {
  const { connectionsMax, headMs, requestMs } = API_LIMITS;
  assert.deepEqual([connectionsMax, headMs, requestMs], [64, 10_000, 30_000]);
});

Deno.test(
  "ApiServer closes one connection too many at once, and serves the others",
  local,
  async () => {
    await using running = await start();
    const { server, port } = running;
    const clients: Client[] = [];
    try {
      for (let i = 0; i < API_LIMITS.connectionsMax; i++) {
        const client = await Client.open(port);
        clients.push(client);
        await client.write(GET);
        assert.match(await client.read(), /^HTTP\/1.1 200 /);
      }
      using extra = await Client.open(port);
      assert.equal((await extra.ended()).text, "");
      assert.equal(server.refused, 1);
      await clients[0].write(GET);
      assert.match(await clients[0].read(), /^HTTP\/1.1 200 /);
      clients.pop()?.[Symbol.dispose]();
      const endsAtMs = performance.now() + WAIT_MS_MAX;
      let answered = "";
      while (answered === "" && performance.now() < endsAtMs) {
        using next = await Client.open(port);
        await next.write(GET);
        answered = await next.read();
      }
      assert.match(answered, /^HTTP\/1.1 200 /);
    } finally {
      for (const client of clients) client[Symbol.dispose]();
    }
  },
);

Deno.test("ApiServer sends the security headers with every response", local, async (t) => {
  const { deps } = fakeDeps();
  const broken = { ...deps, logs: null } as unknown as ApiDeps;
  await using running = await start({ handler: createApi(broken) });
  const rows = [
    ["GET /api/v1/health", 200],
    ["HEAD /api/v1/health", 200],
    ["GET /metrics", 200],
    ["GET /api/docs", 200],
    ["GET /nothing", 404],
    ["PATCH /api/v1/rules", 405],
    ["POST /api/v1/rules", 400],
    ["GET /api/v1/leak-tests", 500],
  ] as const;
  for (const [line, status] of rows) {
    await t.step(line, async () => {
      const [method, path] = line.split(" ");
      const response = await fetch(`http://127.0.0.1:${running.port}${path}`, { method });
      await response.body?.cancel();
      assert.equal(response.status, status);
      const policy = response.headers.get("content-security-policy") ?? "";
      for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]) {
        assert.ok(policy.includes(part), policy);
      }
      assert.equal(/script-src/.test(policy), path === "/api/docs", policy);
      assert.ok(!/unsafe|\*|https?:/.test(policy), policy);
      assert.equal(response.headers.get("x-content-type-options"), "nosniff");
      assert.equal(response.headers.get("referrer-policy"), "no-referrer");
      assert.equal(response.headers.get("cache-control"), "no-store");
    });
  }
});

/** What a client sends and then leaves, with the limit that ends it. */
const SLOW: readonly (readonly [string, string, Partial<ApiLimits>, RegExp])[] = [
  ["nothing", "", { headMs: 300 }, /^$|^HTTP\/1.1 408 /],
  ["half a head", "GET / HTTP/1.1\r\nHo", { headMs: 300 }, /^HTTP\/1.1 408 /],
  [
    "half a body",
    `${POST}Content-Length: 10\r\n\r\n{`,
    { headMs: 200, requestMs: 500 },
    /^$|^HTTP\/1.1 (408|400) /,
  ],
  ["no further request", GET, { idleMs: 200 }, /^HTTP\/1.1 200 /],
];

Deno.test("ApiServer ends connections that are slow", local, async (t) => {
  for (const [name, sent, limits, want] of SLOW) {
    await t.step(name, async () => {
      await using running = await start({ limits });
      using client = await Client.open(running.port);
      if (sent !== "") await client.write(sent);
      const { text, afterMs } = await client.ended();
      assert.match(text, want);
      assert.ok(afterMs >= 150 && afterMs < WAIT_MS_MAX, `after ${afterMs} ms`);
      if (text !== "") assert.match(text, /content-security-policy: default-src 'none'/i);
    });
  }
});

/** Requests that are no requests, or not ours. */
const ODD: readonly (readonly [string, string, RegExp])[] = [
  ["no HTTP", "\x16\x03\x01\x02\x00\x01\r\n\r\n", /^HTTP\/1.1 400 /],
  ["no host", "GET /api/v1/health HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400 /],
  ["no host, HTTP/1.0", "GET /api/v1/health HTTP/1.0\r\n\r\n", /^HTTP\/1.1 403 /],
  ["a target that is no path", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 400 /],
  [
    "an absolute target",
    "GET http://evil.example/api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 400 /,
  ],
  [
    "a path with a host in it",
    "GET //evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 404 /,
  ],
  [
    "two hosts",
    "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    /^HTTP\/1.1 40[03] /,
  ],
  ["TRACE", "TRACE /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 40[05] /],
  [
    "a head without end",
    `GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: ${"y".repeat(70_000)}\r\n\r\n`,
    /^HTTP\/1.1 431 |^$/,
  ],
  [
    "a length announced as too large",
    `${POST}Content-Length: 9999999999\r\n\r\n{`,
    /^HTTP\/1.1 413 [^]*connection: close/i,
  ],
  [
    "an upgrade",
    "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    /^HTTP\/1.1 200 /,
  ],
];

Deno.test("ApiServer refuses what is no request of the API", local, async (t) => {
  await using running = await start({ limits: { headMs: 2_000, idleMs: 200 } });
  for (const [name, sent, want] of ODD) {
    await t.step(name, async () => {
      using client = await Client.open(running.port);
      await client.write(sent);
      assert.match(await client.read(), want);
    });
  }
  assert.equal((await fetch(`http://127.0.0.1:${running.port}/api/v1/health`)).status, 200);
});

Deno.test(
  "ApiServer stops reading a body that is too large without its length",
  local,
  async () => {
    await using running = await start();
    using client = await Client.open(running.port);
    await client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    let sentBytes = 0;
    try {
      for (; sentBytes < 64 * 1024 * 1024; sentBytes += 0x10000) await client.write(chunk);
      assert.fail("all of it was taken");
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error; // Else the connection was closed.
    }
  },
);

Deno.test("ApiServer answers 413 with its reason", local, async () => {
  await using running = await start();
  const response = await fetch(`http://127.0.0.1:${running.port}/api/v1/rules`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ rule: "x".repeat(1024 * 1024) }),
  });
  assert.equal(response.status, 413);
  assert.equal((await response.json()).error.code, "bad_request");
});

Deno.test("ApiServer listens beyond loopback with a token only", local, async (t) => {
  const handler = createApi(fakeDeps().deps);
  for (const address of ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"]) {
    await t.step(address, async () => {
      const listen = [at("127.0.0.1:0"), at(address)];
      const server = new ApiServer({ listen, tls: null, hasToken: false, handler });
      await assert.rejects(server.start(), (error) => {
        assert(error instanceof SvcError);
        assert.match(error.message, /^api\.listen: .* beyond loopback: set api\.token_sha256/);
        return true;
      });
    });
  }
  const listen = [at("0.0.0.0:0"), at("127.0.0.1:0")];
  await using running = await start({ listen, hasToken: true });
  assert.equal((await fetch(`http://127.0.0.1:${running.port}/api/v1/health`)).status, 200);
});

Deno.test("ApiServer listens on every address or on none", local, async () => {
  await using running = await start();
  const listen = [at("127.0.0.1:0"), at(`127.0.0.1:${running.port}`)];
  const handler = createApi(fakeDeps().deps);
  const server = new ApiServer({ listen, tls: null, hasToken: false, handler });
  await assert.rejects(server.start(), (error) => {
    assert(error instanceof SvcError);
    assert.equal(error.code, "unavailable");
    assert.match(error.message, new RegExp(`^api.listen: 127.0.0.1:${running.port}: `));
    return true;
  });
});

Deno.test("ApiServer.stop() lets a request end", local, async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  await using running = await start({
    handler: async () => {
      entered.resolve();
      await promise;
      return new Response("done");
    },
  });
  const answer = fetch(`http://127.0.0.1:${running.port}/`);
  await entered.promise;
  const stopped = running.server.stop(WAIT_MS_MAX);
  resolve();
  assert.equal(await (await answer).text(), "done");
  await stopped;
  await assert.rejects(Client.open(running.port));
});

/** A certificate for localhost, or `null` where `openssl` is missing. */
async function makeCertificate(): Promise<{ cert: string; key: string } | null> {
  const args = [
    ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30".split(" "),
    ..."-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1".split(" "),
    ..."-addext basicConstraints=critical,CA:FALSE -keyout - -out -".split(" "),
  ];
  try {
    const made = await new Deno.Command("openssl", { args, stderr: "null" }).output();
    const pem = new TextDecoder().decode(made.stdout);
    const part = (kind: string) =>
      new RegExp(`-----BEGIN ${kind}-----[^]*-----END ${kind}-----\n`).exec(pem)?.[0] ?? "";
    return { cert: part("CERTIFICATE"), key: part("PRIVATE KEY") };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) {
      return null;
    }
    throw error;
  }
}

const [certificate, renewed] = [await makeCertificate(), await makeCertificate()];
if (certificate === null) console.log("skipped: the tests over TLS need the command openssl");
const tls = { ...local, ignore: certificate === null || renewed === null };

async function statusOverTls(port: number, cert: string): Promise<number> {
  using client = Deno.createHttpClient({ caCerts: [cert] });
  const response = await fetch(`https://localhost:${port}/api/v1/health`, { client });
  await response.body?.cancel();
  return response.status;
}

Deno.test("ApiServer speaks TLS and takes a renewed certificate", tls, async () => {
  assert(certificate !== null && renewed !== null);
  await using running = await start({ tls: certificate, limits: { idleMs: 200 } });
  const { server, port } = running;
  assert.equal(await statusOverTls(port, certificate.cert), 200);
  server.renewTls(renewed);
  assert.equal(await statusOverTls(port, renewed.cert), 200);
  await assert.rejects(statusOverTls(port, certificate.cert));
  for (const bad of [{ cert: "none", key: "none" }, { ...renewed, key: certificate.key }]) {
    assert.throws(
      () => server.renewTls(bad),
      (error) => error instanceof SvcError && error.code === "invalid",
    );
  }
  assert.equal(await statusOverTls(port, renewed.cert), 200);
});

Deno.test("ApiServer bounds the TLS handshake in time", tls, async () => {
  assert(certificate !== null);
  await using running = await start({ tls: certificate, limits: { headMs: 300 } });
  using silent = await Client.open(running.port);
  const { text, afterMs } = await silent.ended();
  assert.equal(text, "");
  assert.ok(afterMs >= 250 && afterMs < WAIT_MS_MAX, `after ${afterMs} ms`);
  // Clear text where TLS is spoken gets no word of HTTP.
  using plain = await Client.open(running.port);
  await plain.write(GET);
  assert.ok(!(await plain.ended()).text.includes("HTTP/1.1"));
});
