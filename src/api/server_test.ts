import assert from "node:assert/strict";
import { type HostPort, parseHostPort } from "../addr/mod.ts";
import { SvcError } from "../errors.ts";
import { createApi } from "./app.ts";
import { fakeDeps } from "./fakes.ts";
import { SECURITY_HEADERS } from "./headers.ts";
import type { ApiDeps } from "./ports.ts";
import { RawClient } from "../../tests/raw_client.ts";
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

const GET = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
const POST = "POST /api/v1/rules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

Deno.test("API_LIMITS are the specification's", { permissions: "none" }, () => {
  const { connectionsMax, headMs, requestMs } = API_LIMITS;
  assert.deepEqual([connectionsMax, headMs, requestMs], [64, 10_000, 30_000]);
});

Deno.test("ApiServer closes one connection too many while all are answered", local, async () => {
  const going = Promise.withResolvers<void>();
  let busy = 0;
  const all = Promise.withResolvers<void>();
  await using running = await start({
    handler: async () => {
      if (++busy === API_LIMITS.connectionsMax) all.resolve();
      await going.promise;
      return new Response("done");
    },
  });
  const { server, port } = running;
  const clients: RawClient[] = [];
  try {
    for (let i = 0; i < API_LIMITS.connectionsMax; i++) {
      clients.push(await RawClient.open(port));
      await clients[i].write(GET);
    }
    await all.promise;
    using extra = await RawClient.open(port);
    assert.equal((await extra.ended()).text, "");
    assert.equal(server.refused, 1);
    going.resolve();
    for (const client of clients) assert.match(await client.read(), /^HTTP\/1.1 200 /);
  } finally {
    going.resolve();
    for (const client of clients) client[Symbol.dispose]();
  }
});

/** What the connections do that fill the server. */
const IDLERS: readonly (readonly [string, string])[] = [
  ["are silent", ""],
  ["stop in a head", "GET / HTTP/1.1\r\nHo"],
  ["stop in a body", `${POST}Content-Length: 10\r\n\r\n{`],
  ["have been answered", GET],
];

Deno.test(
  "ApiServer ends the oldest connection without a request for a new one",
  local,
  async (t) => {
    for (const [what, sent] of IDLERS) {
      await t.step(`where all others ${what}`, async () => {
        await using running = await start();
        const { server, port } = running;
        const clients: RawClient[] = [];
        try {
          for (let i = 0; i < API_LIMITS.connectionsMax; i++) {
            clients.push(await RawClient.open(port));
            if (sent !== "") await clients[i].write(sent);
            if (sent === GET) await clients[i].read();
          }
          // A connection is accepted before a later one; its bytes may still be on their way.
          for (let i = 0; i < 3; i++) {
            using next = await RawClient.open(port);
            await next.write(GET);
            assert.match(await next.read(), /^HTTP\/1.1 200 /);
          }
          assert.equal((await clients[0].ended()).text, "", "the oldest goes first");
          assert.equal(server.connections <= API_LIMITS.connectionsMax, true);
        } finally {
          for (const client of clients) client[Symbol.dispose]();
        }
      });
    }
  },
);

/** An address of this machine that is not loopback. */
const OWN = Deno.networkInterfaces().find(({ family, address }) =>
  family === "IPv4" && !address.startsWith("127.")
)?.address;

Deno.test(
  {
    name: "ApiServer gives one address a quarter of its connections, and nobody's place",
    permissions: { net: true, sys: ["networkInterfaces"] },
    ignore: OWN === undefined,
  },
  async () => {
    await using running = await start({ listen: [at("0.0.0.0:0")], hasToken: true });
    const { server, port } = running;
    const clients: RawClient[] = [];
    try {
      using neighbour = await RawClient.open(port);
      await neighbour.write("GET /api/v1/health HTTP/1.1\r\nHost: loc");
      for (let i = 0; i < 80; i++) {
        const client = await RawClient.open(port, OWN);
        clients.push(client);
        await client.write("GET / HTTP/1.1\r\nHo");
      }
      // The oldest of the address itself made room.
      assert.equal((await clients[63].ended()).text, "");
      assert.equal(server.connections, 1 + API_LIMITS.connectionsPerAddressMax);
      await neighbour.write("alhost\r\n\r\n");
      assert.match(await neighbour.read(), /^HTTP\/1.1 200 /);
      await clients[79].write("st: localhost\r\n\r\n");
      assert.match(await clients[79].read(), /^HTTP\/1.1 404 /);
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
    /^HTTP\/1.1 408 [^]*connection: close[^]*"bad_request"/i,
  ],
  [
    "half a chunk",
    `${POST}Transfer-Encoding: chunked\r\n\r\n5\r\n{`,
    { headMs: 200, requestMs: 500 },
    /^HTTP\/1.1 408 [^]*connection: close/i,
  ],
  [
    "no leave to go on taken",
    `${POST}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n`,
    { headMs: 200, requestMs: 500 },
    /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 408 /,
  ],
  [
    "half of a second head",
    `${GET}GET / HT`,
    { headMs: 300 },
    /^HTTP\/1.1 200 [^]*HTTP\/1.1 408 /,
  ],
  ["no further request", GET, { idleMs: 200 }, /^HTTP\/1.1 200 /],
];

Deno.test("ApiServer ends connections that are slow", local, async (t) => {
  for (const [name, sent, limits, want] of SLOW) {
    await t.step(name, async () => {
      await using running = await start({ limits });
      using client = await RawClient.open(running.port);
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
    "the URL of another host as a target",
    "GET http://evil.example/api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 403 /,
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
  [
    "TRACE",
    "TRACE /api/v1/rules HTTP/1.1\r\nHost: localhost\r\nCookie: a=b\r\n\r\n",
    /^HTTP\/1.1 405 (?![^]*a=b)[^]*allow: POST, GET, HEAD\r\n/i,
  ],
  [
    "TRACK",
    "TRACK /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 405 [^]*allow: GET, HEAD\r\n/i,
  ],
  [
    "CONNECT",
    "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n",
    /^HTTP\/1.1 405 [^]*content-length: 0\r\n[^]*allow: GET, HEAD, POST, PUT, DELETE\r\n[^]*\r\n\r\n$/i,
  ],
  [
    "OPTIONS",
    "OPTIONS /api/v1/settings HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 405 [^]*allow: GET, HEAD, PUT\r\n/i,
  ],
  [
    "a method nobody knows",
    "BREW /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 405 [^]*allow: GET, HEAD\r\n/i,
  ],
  [
    "a method in small letters",
    "get /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    /^HTTP\/1.1 405 [^]*allow: GET, HEAD\r\n/i,
  ],
  [
    "the same with a body",
    "get /api/v1/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    /^HTTP\/1.1 405 [^]*allow: GET, HEAD\r\n/i,
  ],
  ["a TRACE of nothing", "TRACE /x HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 404 /],
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
      using client = await RawClient.open(running.port);
      await client.write(sent);
      const text = await client.read();
      assert.match(text, want);
      if (text === "") return;
      for (const [name, value] of Object.entries(SECURITY_HEADERS)) {
        assert.ok(text.includes(`\r\n${name}: ${value}\r\n`), `${name}: ${text}`);
      }
    });
  }
  assert.equal((await fetch(`http://127.0.0.1:${running.port}/api/v1/health`)).status, 200);
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
  await assert.rejects(RawClient.open(running.port));
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
  using silent = await RawClient.open(running.port);
  const { text, afterMs } = await silent.ended();
  assert.equal(text, "");
  assert.ok(afterMs >= 250 && afterMs < WAIT_MS_MAX, `after ${afterMs} ms`);
  // Clear text where TLS is spoken gets no word of HTTP.
  using plain = await RawClient.open(running.port);
  await plain.write(GET);
  assert.ok(!(await plain.ended()).text.includes("HTTP/1.1"));
});

Deno.test("ApiServer ends the oldest handshake for a new connection", tls, async () => {
  assert(certificate !== null);
  await using running = await start({ tls: certificate });
  const silent: RawClient[] = [];
  try {
    for (let i = 0; i < API_LIMITS.connectionsMax; i++) {
      silent.push(await RawClient.open(running.port));
    }
    for (let i = 0; i < 3; i++) {
      assert.equal(await statusOverTls(running.port, certificate.cert), 200);
    }
    assert.equal((await silent[0].ended()).text, "");
    assert.ok(running.server.connections <= API_LIMITS.connectionsMax);
  } finally {
    for (const client of silent) client[Symbol.dispose]();
  }
});

Deno.test("ApiServer sends large answers over TLS whole, a piece at a time", tls, async () => {
  assert(certificate !== null);
  const large = crypto.getRandomValues(new Uint8Array(60_000));
  let left = 200;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      controller.enqueue(large);
      if (--left === 0) controller.close();
    },
  }, { highWaterMark: 0 });
  await using running = await start({
    tls: certificate,
    handler: () =>
      Promise.resolve(new Response(body, { headers: { "transfer-encoding": "chunked" } })),
  });
  using client = Deno.createHttpClient({ caCerts: [certificate.cert] });
  const response = await fetch(`https://localhost:${running.port}/`, { client });
  let bytes = 0;
  for await (const piece of response.body!) {
    bytes += piece.length;
    assert.ok(running.server.bufferedBytes < 1024 * 1024);
  }
  assert.equal(bytes, 200 * large.length);
});
