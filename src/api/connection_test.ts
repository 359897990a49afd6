import assert from "node:assert/strict";
import { RawClient } from "../../tests/raw_client.ts";
import { type ApiHandler, createApi } from "./app.ts";
import { PIECE_BYTES } from "./json_bodies.ts";
import { fakeDeps } from "./fakes.ts";
import { SECURITY_HEADERS } from "./headers.ts";
import { API_LIMITS, type ApiLimits, ApiServer } from "./server.ts";

const local = { permissions: { net: true } };
const programs = { permissions: { net: true, run: true, env: true, read: true } };
const GET = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HOST = "Host: localhost\r\n";
/** Longest wait for what must happen. */
const WAIT_MS_MAX = 20_000;
/** What one connection may hold: a piece that leaves, and what came in one read and waits. */
const HELD_BYTES_MAX = 3 * PIECE_BYTES;

async function start(
  handler: ApiHandler = createApi(fakeDeps().deps),
  over: Partial<ApiLimits> = {},
) {
  const limits = { ...API_LIMITS, ...over };
  const listen = [{ ip: new Uint8Array([127, 0, 0, 1]), port: 0 }];
  const server = new ApiServer({ listen, tls: null, hasToken: false, handler, limits });
  const [{ port }] = await server.start();
  return { server, port, [Symbol.asyncDispose]: () => server.stop(0) };
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + WAIT_MS_MAX;
  while (!condition()) {
    assert.ok(performance.now() < endsAtMs, `${what}: not in time`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Keeps what is logged on purpose out of the report; returns it. */
function quiet() {
  const lines: string[] = [];
  const write = Deno.stderr.writeSync;
  Deno.stderr.writeSync = (bytes) => {
    lines.push(new TextDecoder().decode(bytes));
    return bytes.length;
  };
  return { lines, [Symbol.dispose]: () => void (Deno.stderr.writeSync = write) };
}

async function healthOf(port: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/health`);
  await response.body?.cancel();
  return response.status;
}

Deno.test("a body that is too large is answered 413, however it comes", local, async (t) => {
  await using running = await start();
  const { port } = running;
  const head = `POST /api/v1/auth/login HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n`;
  const chunks = (size: number, many: number) =>
    `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`.repeat(many) + "0\r\n\r\n";
  const rows = [
    [
      "1,100 chunks in one send",
      `${head}Transfer-Encoding: chunked\r\n\r\n${chunks(1_000, 1_100)}`,
    ],
    ["two large chunks", `${head}Transfer-Encoding: chunked\r\n\r\n${chunks(600_000, 2)}`],
    ["by its length", `${head}Content-Length: 2000000\r\n\r\n${"x".repeat(2_000_000)}`],
  ];
  for (const [name, sent] of rows) {
    await t.step(name, async () => {
      using client = await RawClient.open(port);
      await client.write(sent);
      const { text } = await client.ended();
      assert.match(text, /^HTTP\/1\.1 413 [^]*connection: close[^]*larger than 1048576 bytes/);
      assert.equal(text.match(/^HTTP/gm)?.length, 1);
      assert.equal(await healthOf(port), 200);
    });
  }
  await t.step("many small chunks", async () => {
    using client = await RawClient.open(port);
    await client.write(`${head}Transfer-Encoding: chunked\r\n\r\n${chunks(1, 100_000)}`);
    assert.match((await client.ended()).text, /^HTTP\/1\.1 400 [^]*chunks are malformed/);
  });
});

const URLLIB = `
import sys, urllib.request, urllib.error
def body():
    for _ in range(3 * 1024): yield b"x" * 1024
data = b"x" * (3 << 20) if sys.argv[2] == "length" else body()
headers = {"Content-Type": "application/json"}
try:
    urllib.request.urlopen(urllib.request.Request(sys.argv[1], data, headers))
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
`;

/** The output of a client, or `null` where it is missing. */
async function output(command: string, ...args: string[]): Promise<string | null> {
  try {
    const { stdout, stderr } = await new Deno.Command(command, { args }).output();
    return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

Deno.test("clients that send first and read then see a 413", programs, async (t) => {
  await using running = await start();
  const url = `http://127.0.0.1:${running.port}/api/v1/rules`;
  for (const how of ["length", "chunks"]) {
    await t.step(`fetch, ${how}`, async () => {
      const bytes = new Uint8Array(3 * 1024 * 1024);
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: how === "length" ? bytes : new Blob([bytes]).stream(),
      });
      assert.equal(response.status, 413);
      assert.match(await response.text(), /larger than/);
    });
    await t.step(`urllib, ${how}`, async () => {
      const said = await output("python3", "-c", URLLIB, url, how);
      if (said === null) console.log("skipped: there is no python3");
      else assert.match(said, /^413 .*larger than/);
    });
    await t.step(`curl, ${how}`, async () => {
      const chunked = how === "chunks" ? ["-H", "transfer-encoding: chunked"] : [];
      const data = ["-H", "content-type: application/json", "--data-binary", "@/dev/stdin"];
      const line = `head -c 3000000 /dev/zero | curl -sS ${
        [...chunked, ...data]
          .map((part) => `'${part}'`).join(" ")
      } ${url}`;
      assert.match(await output("sh", "-c", line) ?? "", /larger than/);
    });
  }
  assert.equal(await healthOf(running.port), 200);
});

Deno.test("what comes behind a refused body is read over for a while alone", local, async () => {
  await using running = await start(undefined, { lingerMs: 300 });
  using client = await RawClient.open(running.port);
  await client.write(
    `POST /api/v1/rules HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
      "Content-Length: 99999999999\r\n\r\n",
  );
  const piece = new Uint8Array(1_024);
  await assert.rejects(async () => {
    for (;;) {
      await client.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });
  await until("the end of it", () => running.server.connections === 0);
});

Deno.test("requests of one connection are handled one after the other", local, async () => {
  const many = 2_000;
  let [busy, busiest, handled] = [0, 0, 0];
  await using running = await start(async (request) => {
    busiest = Math.max(busiest, ++busy);
    await new Promise((resolve) => setImmediate(resolve));
    busy--;
    handled++;
    return new Response(`${new URL(request.url).pathname}\n`);
  });
  using client = await RawClient.open(running.port);
  const writing = client.write(
    Array.from({ length: many }, (_, i) => `GET /${i} HTTP/1.1\r\n${HOST}\r\n`).join("") +
      `GET /last HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`,
  );
  const { text } = await client.ended();
  await writing;
  const bodies = Array.from(text.matchAll(/\r\n\r\n\/(\w+)\n/g), ([, name]) => name);
  assert.deepEqual(bodies, [...Array.from({ length: many }, (_, i) => String(i)), "last"]);
  assert.deepEqual([busiest, handled], [1, many + 1]);
});

Deno.test("a reader that reads nothing holds one piece, and not for long", local, async (t) => {
  const large = new Uint8Array(32 * 1024 * 1024);
  const streamed = () => {
    let left = 512;
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        controller.enqueue(large.subarray(0, PIECE_BYTES));
        if (--left === 0) controller.close();
      },
    }, { highWaterMark: 0 });
  };
  const rows: readonly (readonly [string, HeadersInit])[] = [
    ["of a known length", { "content-length": String(large.length) }],
    ["in chunks", { "transfer-encoding": "chunked" }],
  ];
  for (const [name, headers] of rows) {
    await t.step(name, async () => {
      let handled = 0;
      await using running = await start(() => {
        handled++;
        return Promise.resolve(new Response(streamed(), { headers }));
      }, { unreadMs: 1_000, headMs: 1_000 });
      const { server, port } = running;
      const clients = await Promise.all(Array.from({ length: 32 }, () => RawClient.open(port)));
      try {
        let heldBytes = 0;
        for (const client of clients) await client.write(GET.repeat(200));
        await until("a first answer to each", () => handled >= clients.length);
        await until("the end of all of them", () => {
          heldBytes = Math.max(heldBytes, server.bufferedBytes);
          return server.connections === 0;
        });
        assert.equal(handled, clients.length, "the second request of none is handled");
        assert.ok(heldBytes < clients.length * HELD_BYTES_MAX, `${heldBytes} bytes were held`);
      } finally {
        for (const client of clients) client[Symbol.dispose]();
      }
    });
  }
});

Deno.test("a handler that fails is answered 500, and the connection goes on", local, async (t) => {
  const failures: readonly (readonly [string, () => Promise<Response>])[] = [
    ["by an error", () => Promise.reject(new Error("the secret of the house"))],
    ["by something else", () => Promise.reject("the secret of the house")],
    ["at once", () => {
      throw new TypeError("the secret of the house");
    }],
  ];
  for (const [name, fail] of failures) {
    await t.step(name, async () => {
      using _ = quiet();
      let isFirst = true;
      await using running = await start(() => {
        if (!isFirst) return Promise.resolve(new Response("well"));
        isFirst = false;
        return fail();
      });
      using client = await RawClient.open(running.port);
      await client.write(GET + GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
      const { text } = await client.ended();
      assert.match(text, /^HTTP\/1\.1 500 [^]*"internal"[^]*HTTP\/1\.1 200 [^]*well$/);
      assert.ok(!text.includes("secret"));
      assert.ok(text.includes(SECURITY_HEADERS["content-security-policy"]));
    });
  }
});

Deno.test("an answer that fails in its middle breaks the connection off", local, async () => {
  using _ = quiet();
  let isFirst = true;
  await using running = await start(() => {
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        if (!isFirst) throw new Error("the disk is gone");
        isFirst = false;
        controller.enqueue(new TextEncoder().encode("half"));
      },
    }, { highWaterMark: 0 });
    return Promise.resolve(new Response(body, { headers: { "content-length": "8" } }));
  });
  using client = await RawClient.open(running.port);
  await client.write(GET + GET);
  assert.match((await client.ended()).text, /^HTTP\/1\.1 200 [^]*\r\n\r\nhalf$/);
  await until("the end of it", () => running.server.connections === 0);
});

Deno.test("a client that leaves ends nothing but its own request", local, async (t) => {
  const rows = [
    ["in a head", "GET / HTTP/1.1\r\nHo"],
    [
      "in a body",
      `POST /api/v1/rules HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
      "Content-Length: 9\r\n\r\n{",
    ],
    [
      "in a chunk",
      `POST /api/v1/rules HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
      "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
    ["while it is answered", GET],
    ["while a stream is sent", `GET /api/v1/querylog/stream HTTP/1.1\r\n${HOST}\r\n`],
  ];
  for (const [name, sent] of rows) {
    await t.step(name, async () => {
      const api = createApi(fakeDeps().deps);
      const gone = Promise.withResolvers<void>();
      const entered = Promise.withResolvers<void>();
      await using running = await start(async (request, address) => {
        entered.resolve();
        if (name === "while it is answered") await gone.promise;
        return await api(request, address);
      });
      const client = await RawClient.open(running.port);
      await client.write(sent);
      if (name !== "in a head") await entered.promise;
      client[Symbol.dispose]();
      gone.resolve();
      await until("the end of it", () => running.server.connections === 0);
      assert.equal(await healthOf(running.port), 200);
    });
  }
});

Deno.test("a client that closes its side is answered before the end", local, async () => {
  await using running = await start();
  using client = await RawClient.open(running.port);
  await client.write(GET + GET);
  await client.closeWrite();
  assert.equal((await client.ended()).text.match(/HTTP\/1\.1 200 /g)?.length, 2);
});

Deno.test("a body that nobody reads does not become the next request", local, async (t) => {
  await using running = await start();
  const post = `POST /nothing HTTP/1.1\r\n${HOST}Content-Length: ${GET.length}\r\n\r\n`;
  const rows: readonly (readonly [string, string, RegExp])[] = [
    ["that is here", post + GET + GET, /^HTTP\/1\.1 404 [^]*HTTP\/1\.1 200 /],
    ["that is not", post, /^HTTP\/1\.1 404 [^]*connection: close/],
    [
      "of a GET",
      `GET /api/v1/health HTTP/1.1\r\n${HOST}Content-Length: ${GET.length}\r\n\r\n${GET}${GET}`,
      /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 200 /,
    ],
  ];
  for (const [name, sent, want] of rows) {
    await t.step(name, async () => {
      using client = await RawClient.open(running.port);
      await client.write(sent);
      await client.closeWrite();
      const { text } = await client.ended();
      assert.match(text, want);
      assert.ok((text.match(/^HTTP/gm) ?? []).length <= 2, text);
    });
  }
});

Deno.test(
  "Expect: 100-continue is answered when a body is wanted, and only then",
  local,
  async () => {
    await using running = await start();
    const post = (path: string, type: string) =>
      `POST ${path} HTTP/1.1\r\n${HOST}${type}Expect: 100-continue\r\nContent-Length: 21\r\n\r\n`;
    using wanted = await RawClient.open(running.port);
    await wanted.write(post("/api/v1/rules", "Content-Type: application/json\r\n"));
    assert.equal(await wanted.read(), "HTTP/1.1 100 Continue\r\n\r\n");
    await wanted.write('{"rule":"||a.test^" }');
    assert.match(await wanted.read(), /^HTTP\/1\.1 201 /);
    using unwanted = await RawClient.open(running.port);
    await unwanted.write(post("/api/v1/rules", ""));
    assert.match((await unwanted.ended()).text, /^HTTP\/1\.1 415 [^]*connection: close/);
  },
);

Deno.test("a target may be a whole URL, whose host comes before Host", local, async (t) => {
  await using running = await start();
  const far = "Host: far.example\r\n";
  const long = "a".repeat(13_000);
  const rows: readonly (readonly [target: string, host: string, status: number])[] = [
    ["http://localhost/api/v1/health", HOST, 200],
    ["HTTP://LocalHost:8053/api/v1/health?", HOST, 200],
    ["http://[::1]:8053/api/v1/status", HOST, 200],
    ["https://127.0.0.1/api/v1/status", HOST, 200], // A proxy may speak TLS for it.
    // RFC 9112 §3.2.2: Host says nothing beside it, neither for nor against a client.
    ["http://localhost/api/v1/status", far, 200],
    ["http://far.example/api/v1/status", HOST, 403],
    ["http://localhost", HOST, 404],
    ["http://localhost?a=b", HOST, 404],
    ["http://localhost/nothing", HOST, 404],
    ["http:///api/v1/health", HOST, 400],
    ["http://:80/api/v1/health", HOST, 400],
    ["http://local host/", HOST, 400],
    ["http://localhost:x/api/v1/health", HOST, 400],
    ["http://localhost:65536/api/v1/health", HOST, 400],
    ["http://[::1/api/v1/health", HOST, 400],
    ["http://[::g]/api/v1/health", HOST, 400],
    ["http://localhost#/api/v1/health", HOST, 400],
    ["http://localhost\\@far.example/api/v1/health", HOST, 400],
    ["http://a:b@localhost/api/v1/health", HOST, 400],
    ["http://@localhost/api/v1/health", HOST, 400],
    ["ftp://localhost/api/v1/health", HOST, 400],
    ["://localhost/api/v1/health", HOST, 400],
    ["http:/api/v1/health", HOST, 400],
    ["localhost/api/v1/health", HOST, 400],
    [`http://localhost/${long}`, HOST, 414],
    [`http://${long}/api/v1/health`, HOST, 414],
    ["http://localhost/api/v1/health", "", 400],
  ];
  for (const [target, host, status] of rows) {
    await t.step(`${target.slice(0, 60)} ${host}`, async () => {
      using client = await RawClient.open(running.port);
      await client.write(`GET ${target} HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
      assert.match((await client.ended()).text, new RegExp(`^HTTP/1\\.1 ${status} `));
    });
  }
});

Deno.test("HEAD has the head of GET, and HTTP/1.0 what it can read", local, async () => {
  await using running = await start();
  using head = await RawClient.open(running.port);
  await head.write(`HEAD /api/v1/rules HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
  assert.match((await head.ended()).text, /^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
  using old = await RawClient.open(running.port);
  await old.write(`GET /api/v1/querylog/export HTTP/1.0\r\n${HOST}\r\n`);
  const { text } = await old.ended();
  assert.match(text, /^HTTP\/1\.1 200 [^]*\r\n\r\ntime,client,/);
  assert.ok(!/transfer-encoding/i.test(text) && !/keep-alive/i.test(text), text);
});
