// Goal: both versions of HTTP on sockets, held against clients that others wrote: `node:http2` and
// `node:http` here, curl and kdig in tests/e2e. Method: an echoing server on a plain TCP socket.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { request as request1 } from "node:http";
import { type ClientHttp2Session, connect as connect2, constants } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { Prng, seedFromEnv } from "../../../tests/prng.ts";
import { EchoHandler, FakeSocket } from "./fakes.ts";
import type { HttpRequest } from "./http.ts";
import { Http1Connection } from "./http1.ts";
import { Outbox } from "./outbox.ts";
import { Flow } from "./flow.ts";
import { type HttpsLimits, HttpsServer } from "./https.ts";

const net = { permissions: { net: true, read: true, env: true } } as const;
const LIMITS: HttpsLimits = {
  requestsMax: 100,
  idleMs: 60_000,
  requestMs: 60_000,
  unreadBytesMax: 256 * 1024,
};
/** Longest wait for anything in these tests. */
const WAIT_MS_MAX = 10_000;

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

class Bench {
  readonly https: HttpsServer;
  readonly #server;
  port = 0;

  constructor(protocol: string | null, limits: HttpsLimits, readonly handler: EchoHandler) {
    this.https = new HttpsServer(this.handler, limits);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.https.take({
        socket,
        flow: new Flow(socket),
        sender: { address: "192.0.2.1", network: "192.0.2.1", touch: () => {} },
        serverName: null,
        protocol,
      });
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.port = (this.#server.address() as { port: number }).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.https.close();
    await new Promise((resolve) => this.#server.close(resolve));
    await until("every connection closed", () => this.https.connections === 0);
  }
}

async function listening(
  protocol: string | null,
  limits: HttpsLimits = LIMITS,
  handler: EchoHandler = new EchoHandler(),
): Promise<Bench> {
  const bench = new Bench(protocol, limits, handler);
  await bench.listen();
  return bench;
}

/** One request over HTTP/2; returns status and body. */
function ask2(
  session: ClientHttp2Session,
  path: string,
  body?: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const method = body === undefined ? "GET" : "POST";
  const stream = session.request({ ":method": method, ":path": path, ...headers });
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let status = 0;
    stream.on("response", (fields) => status = Number(fields[":status"]));
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("end", () => resolve(`${status} ${Buffer.concat(parts).toString()}`));
    stream.on("error", reject);
    stream.end(body);
  });
}

Deno.test("HttpsServer serves many streams of node:http2", net, async () => {
  await using bench = await listening("h2");
  const session = connect2(`http://127.0.0.1:${bench.port}`);
  try {
    const asked = Array.from({ length: 500 }, (_, i) => {
      const body = i % 3 === 0 ? undefined : `body ${i} ${"b".repeat(i % 7 === 0 ? 9_000 : i)}`;
      const method = body === undefined ? "GET" : "POST";
      // Fields that fill and turn over the dynamic table.
      const headers = { "x-some": "v".repeat(i % 600), "user-agent": `client ${i % 5}` };
      return { i, body, want: `200 ${method} /p/${i} ${body ?? ""}`, headers };
    });
    for (let at = 0; at < asked.length; at += 50) {
      const part = asked.slice(at, at + 50);
      const got = await Promise.all(
        part.map(({ i, body, headers }) => ask2(session, `/p/${i}`, body, headers)),
      );
      assert.deepEqual(got, part.map(({ want }) => want));
    }
    assert.equal(bench.handler.rejected, 0);
  } finally {
    session.destroy();
  }
});

Deno.test("HttpsServer fills the windows of node:http2", net, async () => {
  await using bench = await listening("h2");
  const session = connect2(`http://127.0.0.1:${bench.port}`, {
    settings: { initialWindowSize: 999 },
  });
  try {
    const lengths = [60_000, 1, 0, 45_000, 60_000, 60_000];
    const got = await Promise.all(lengths.map((length) => ask2(session, `/long/${length}`)));
    assert.deepEqual(got.map((text) => text.length), lengths.map((length) => length + 4));
  } finally {
    session.destroy();
  }
});

Deno.test("HttpsServer stands node:http2's resets and end", net, async () => {
  await using bench = await listening("h2");
  const session = connect2(`http://127.0.0.1:${bench.port}`);
  const stream = session.request({ ":path": "/wait" });
  const closed = new Promise((resolve) => stream.on("close", resolve));
  stream.on("error", () => {}); // It is this test that resets it.
  await until("the request came", () => bench.handler.waiting.length === 1);
  stream.close(constants.NGHTTP2_CANCEL);
  await closed;
  assert.equal(await ask2(session, "/next"), "200 GET /next ");
  bench.handler.answer();
  const waiting = ask2(session, "/wait/2");
  await until("the request came", () => bench.handler.waiting.length === 1);
  bench.https.drain();
  bench.handler.answer();
  assert.equal(await waiting, "200 GET /wait/2 ");
  await until("the connection ended", () => session.closed || session.destroyed);
});

/** Sends bytes and returns everything that comes back until the server closes or `enough` does. */
async function exchange(
  port: number,
  parts: readonly (string | Uint8Array)[],
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  const socket: Socket = connect(port, "127.0.0.1");
  let text = "";
  let closed = false;
  socket.on("data", (part) => text += part.toString());
  socket.on("error", () => {}); // Told by `close`.
  socket.on("close", () => closed = true);
  for (const part of parts) {
    socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await until(`an answer to ${JSON.stringify(parts)}: ${text}`, () => closed || enough(text));
  socket.destroy();
  return text.replaceAll(/date: [^\r]*\r\n/g, "");
}

const OK = (text: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: ${text.length}\r\n` +
  `cache-control: max-age=60\r\n\r\n${text}`;
const HOST = "host: dns.example\r\n";

Deno.test("HttpsServer answers pipelined requests of HTTP/1.1 in order", net, async () => {
  await using bench = await listening("http/1.1");
  const text = exchange(
    bench.port,
    [
      `GET /wait/1 HTTP/1.1\r\n${HOST}\r\nGET /2?a=b HTTP/1.1\r\n${HOST}\r\n`,
      `POST /3 HTTP/1.1\r\n${HOST}content-length: 4\r\n\r\nbo`,
      `dyHEAD https://dns.example/4 HTTP/1.1\r\n${HOST}\r\n`,
      `POST /5 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3;ext=1\r\nabc\r\n1`,
      `0\r\n${"d".repeat(16)}\r\n0\r\ntrailer: x\r\n\r\nGET /last HTTP/1.1\r\n${HOST}\r\n`,
    ],
    (text) => text.includes("/last"),
  );
  await until("the first request", () => bench.handler.waiting.length === 1);
  bench.handler.answer();
  assert.equal(
    await text,
    OK("GET /wait/1 ") + OK("GET /2?a=b ") + OK("POST /3 body") +
      OK("HEAD /4 ").replace(/HEAD .*$/, "") + OK(`POST /5 abc${"d".repeat(16)}`) +
      OK("GET /last "),
  );
});

Deno.test("HttpsServer closes connections that HTTP/1.1 lets end", net, async () => {
  await using bench = await listening(null);
  const close = await exchange(bench.port, [
    `GET / HTTP/1.1\r\n${HOST}Connection: x, Close\r\n\r\n`,
  ]);
  assert.match(close, /\r\nconnection: close\r\n\r\nGET \/ $/);
  const old = await exchange(bench.port, ["GET / HTTP/1.0\r\n\r\n"]);
  assert.match(old, /^HTTP\/1\.1 200 OK\r\n[^]*\r\nconnection: close\r\n\r\nGET \/ $/);
});

Deno.test("HttpsServer lets a client send its body that asks first", net, async () => {
  await using bench = await listening("http/1.1");
  const head = `POST /p HTTP/1.1\r\n${HOST}expect: 100-continue\r\ncontent-length: 4\r\n\r\n`;
  const text = await exchange(bench.port, [head, "bo", "dy"], (text) => text.includes("/p body"));
  assert.equal(text, "HTTP/1.1 100 Continue\r\n\r\n" + OK("POST /p body"));
});

const REFUSED: readonly (readonly [string, string, number])[] = [
  ["no request line", "\r\n\r\nnonsense\r\n\r\n", 400],
  ["no Host", "GET / HTTP/1.1\r\n\r\n", 400],
  ["two Hosts", `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, 400],
  ["two lengths", `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400],
  ["a length that is none", `POST / HTTP/1.1\r\n${HOST}content-length: +1\r\n\r\n`, 400],
  [
    "length and chunks",
    `POST / HTTP/1.1\r\n${HOST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
    400,
  ],
  ["white space before a colon", `GET / HTTP/1.1\r\n${HOST}a : b\r\n\r\n`, 400],
  ["a folded line", `GET / HTTP/1.1\r\n${HOST}a: b\r\n c\r\n\r\n`, 400],
  ["a control character", `GET / HTTP/1.1\r\n${HOST}a: b\x01\r\n\r\n`, 400],
  [
    "a size of a chunk that is none",
    `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\nx\r\n`,
    400,
  ],
  [
    "a chunk without its end",
    `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n1\r\nab`,
    400,
  ],
  ["another coding", `POST / HTTP/1.1\r\n${HOST}transfer-encoding: gzip, chunked\r\n\r\n`, 501],
  ["another expectation", `POST / HTTP/1.1\r\n${HOST}expect: tea\r\n\r\n`, 417],
  ["HTTP/2.0 in a request line", `GET / HTTP/2.0\r\n${HOST}\r\n`, 505],
  ["a long target", `GET /${"a".repeat(13_000)} HTTP/1.1\r\n${HOST}\r\n`, 414],
  ["an endless target", `GET /${"a".repeat(17_000)}`, 414],
  ["another scheme", `GET ftp://dns.example/ HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["a target without a host", `GET https:///1 HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["a user in a target", `GET https://a@dns.example/1 HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["no port in a target", `GET https://dns.example:x/1 HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["large fields", `GET / HTTP/1.1\r\n${HOST}${"a: b\r\n".repeat(3_000)}`, 431],
  ["many fields", `GET / HTTP/1.1\r\n${HOST}${"a:b\r\n".repeat(200)}\r\n`, 431],
  ["a large body", `POST / HTTP/1.1\r\n${HOST}content-length: 65536\r\n\r\n`, 413],
  [
    "a large chunk",
    `POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n10000\r\n`,
    413,
  ],
];

Deno.test("HttpsServer refuses what is no request and closes", net, async (t) => {
  await using bench = await listening("http/1.1");
  for (const [name, request, status] of REFUSED) {
    await t.step(name, async () => {
      const text = await exchange(bench.port, [request]);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\nconnection: close\r\n\r\n[^]`));
    });
  }
  assert.equal(bench.handler.rejected, REFUSED.length);
  assert.deepEqual(bench.handler.seen, []);
});

Deno.test("HttpsServer serves node:http with and without a length", net, async () => {
  await using bench = await listening("http/1.1");
  const ask = (path: string, body: string, chunked: boolean) =>
    new Promise<string>((resolve, reject) => {
      const headers = chunked ? {} : { "content-length": body.length };
      const request = request1(
        { host: "127.0.0.1", port: bench.port, path, method: "POST", headers },
        (response) => {
          let text = `${response.statusCode} `;
          response.on("data", (part: Buffer) => text += part.toString());
          response.on("end", () => resolve(text));
        },
      );
      request.on("error", reject);
      for (let at = 0; at < body.length; at += 20_000) request.write(body.slice(at, at + 20_000));
      request.end();
    });
  for (const length of [1, 4_000, 65_535]) {
    for (const chunked of [false, true]) {
      const body = "b".repeat(length);
      assert.equal(await ask("/p", body, chunked), `200 POST /p ${body}`);
    }
  }
});

Deno.test("HttpsServer hands on plain arrays, which `slice` copies", net, async () => {
  for (const protocol of ["h2", "http/1.1"]) {
    const kinds: string[] = [];
    class KindHandler extends EchoHandler {
      override onRequest(request: HttpRequest, body: Uint8Array, start: number, end: number): void {
        kinds.push(request.target.constructor.name, body.constructor.name);
        super.onRequest(request, body, start, end);
      }
    }
    await using bench = await listening(protocol, LIMITS, new KindHandler());
    if (protocol === "h2") {
      const session = connect2(`http://127.0.0.1:${bench.port}`);
      assert.equal(await ask2(session, "/p", "body"), "200 POST /p body");
      session.destroy();
    } else {
      const post = `POST /p HTTP/1.1\r\n${HOST}content-length: 4\r\n\r\nbody`;
      await exchange(bench.port, [post], (text) => text.includes("POST /p body"));
    }
    assert.deepEqual(kinds, ["Uint8Array", "Uint8Array"]);
  }
});

// The windows of HTTP/2 hold such a client back before: see the tests of `Http2Connection`.
Deno.test("HttpsServer cuts off clients that read nothing", net, async () => {
  await using bench = await listening("http/1.1", { ...LIMITS, unreadBytesMax: 64 * 1024 });
  const socket = connect(bench.port, "127.0.0.1");
  socket.on("error", () => {}); // The cut is what is awaited.
  let closed = false;
  socket.on("close", () => closed = true);
  socket.pause();
  for (let i = 0; i < 400; i++) socket.write(`GET /long/65000 HTTP/1.1\r\n${HOST}\r\n`);
  await until("it is cut off", () => bench.https.connections === 0);
  socket.resume();
  await until("it is told", () => closed);
});

Deno.test("HttpsServer takes any bytes as HTTP/1.1 without harm", net, () => {
  const prng = new Prng(seedFromEnv());
  const seeds = [
    ...REFUSED.map(([, request]) => request.slice(0, 2_000)),
    `GET /a HTTP/1.1\r\n${HOST}\r\n`,
    `POST /b HTTP/1.1\r\n${HOST}content-length: 4\r\n\r\nbody`,
    `POST /c HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n`,
    `GET /wait HTTP/1.1\r\n${HOST}\r\n`,
  ].map((text) => new TextEncoder().encode(text));
  for (let i = 0; i < 2_000; i++) {
    const socket = new FakeSocket();
    const handler = new EchoHandler();
    const connection = new Http1Connection(socket, handler, LIMITS, new Outbox());
    for (let j = prng.int(6); j >= 0 && !socket.ended; j--) {
      const bytes = prng.pick(seeds).slice();
      for (let k = prng.int(3); k > 0; k--) bytes[prng.int(bytes.length)] = prng.next();
      const cut = prng.int(bytes.length);
      connection.receive(bytes.slice(0, cut));
      connection.receive(bytes.slice(cut));
      if (handler.waiting.length > 0 && prng.chance(0.5)) handler.answer();
    }
    while (handler.waiting.length > 0) handler.answer();
    const text = new TextDecoder().decode(socket.take());
    assert.match(text, /^(HTTP\/1\.1 \d{3} |$)/);
    connection.onClose();
  }
});

Deno.test(
  "Http1Connection gives up what takes too long, and drains",
  { permissions: "none" },
  () => {
    const begin = (...chunks: string[]) => {
      const socket = new FakeSocket();
      const handler = new EchoHandler();
      const connection = new Http1Connection(socket, handler, LIMITS, new Outbox());
      for (const chunk of chunks) connection.receive(new TextEncoder().encode(chunk));
      return { socket, handler, connection };
    };
    const [startMs, margin] = [performance.now(), 10_000];
    for (const part of ["GET / HT", `POST / HTTP/1.1\r\n${HOST}content-length: 9\r\n\r\nb`]) {
      const { socket, handler, connection } = begin(part);
      connection.tick(startMs + LIMITS.requestMs - margin);
      assert.equal(socket.ended, false);
      connection.tick(startMs + LIMITS.requestMs + margin);
      assert.deepEqual([socket.ended, handler.rejected], [true, 1]);
    }
    const idle = begin();
    idle.connection.tick(startMs + LIMITS.idleMs + margin);
    assert.deepEqual([idle.socket.ended, idle.handler.rejected], [true, 0]);
    const waiting = begin(`GET /wait HTTP/1.1\r\n${HOST}\r\n`);
    waiting.connection.tick(startMs + LIMITS.idleMs + margin);
    waiting.connection.drain();
    assert.equal(waiting.socket.ended, false);
    waiting.handler.answer();
    assert.match(new TextDecoder().decode(waiting.socket.take()), /connection: close/);
    assert.ok(waiting.socket.ended);
    const ahead = begin(`GET /wait HTTP/1.1\r\n${HOST}\r\n`, "x".repeat(70_000));
    assert.ok(ahead.socket.paused);
  },
);
