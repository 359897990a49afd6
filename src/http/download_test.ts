// Goal: no server, however it misbehaves, hangs a download, fills memory or gets its text taken for
// a list. Method: the real client against a real HTTPS server of this process, with short limits.
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { messageOf } from "../errors.ts";
import { download, type DownloadLimits, type Validators } from "./download.ts";
import { nodeHttpGet } from "./node_http.ts";
import type { Lookup } from "./ports.ts";

const LIST = "! title\n" + "||ads.example^\n".repeat(2000);
const LIMITS: DownloadLimits = {
  headTimeoutMs: 15_000,
  idleTimeoutMs: 15_000,
  totalTimeoutMs: 20_000,
  bytesMax: 1024 * 1024,
};
/** Text that packs far below and unpacks far above the bound. */
const BOMB = new Uint8Array(64 * 1024 * 1024).fill(0x0a);

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

interface Row {
  readonly name: string;
  readonly handler: Handler;
  /** `text` for the list, or what is in the message of the failure. */
  readonly want: string;
  readonly limits?: Partial<DownloadLimits>;
  readonly validators?: Validators;
}

/** Sends `text` again and again, past the response: as a part of the head, or as a body. */
const drip = ({ socket }: ServerResponse, text: string, everyMs: number) => {
  const timer = setInterval(() => socket?.write(text), everyMs);
  socket?.on("close", () => clearInterval(timer));
};

const packed = (encoding: string, body: Uint8Array): Handler => (response) => {
  response.writeHead(200, { "content-encoding": encoding });
  response.end(body);
};

const ROWS: readonly Row[] = [
  { name: "a list", handler: (r) => r.end(LIST), want: "text" },
  { name: "gzip", handler: packed("gzip", gzipSync(LIST)), want: "text" },
  { name: "x-gzip", handler: packed("x-gzip", gzipSync(LIST)), want: "text" },
  { name: "deflate", handler: packed("deflate", deflateSync(LIST)), want: "text" },
  { name: "deflate, no header", handler: packed("deflate", deflateRawSync(LIST)), want: "text" },
  { name: "br", handler: packed("BR", brotliCompressSync(LIST)), want: "text" },
  {
    name: "an unknown encoding",
    handler: packed("zstd", gzipSync(LIST)),
    want: '"zstd" is unknown',
  },
  { name: "two encodings", handler: packed("gzip, br", gzipSync(LIST)), want: "is unknown" },
  {
    name: "gzip, cut off",
    handler: packed("gzip", gzipSync(LIST).subarray(0, 40)),
    want: "end of",
  },
  {
    name: "no gzip at all",
    handler: packed("gzip", gzipSync(LIST).subarray(9)),
    want: "incorrect",
  },
  {
    name: "a gzip bomb",
    handler: packed("gzip", gzipSync(BOMB)),
    want: "larger than 1048576 bytes",
  },
  { name: "a br bomb", handler: packed("br", brotliCompressSync(BOMB)), want: "larger than" },
  {
    name: "no answer",
    handler: () => undefined,
    limits: { headTimeoutMs: 300 },
    want: "no answer in 0.3 s",
  },
  {
    name: "a slow head",
    handler: (r) => {
      r.socket?.write("HTTP/1.1 200 OK\r\n");
      drip(r, "x-filler: x\r\n", 50);
    },
    limits: { headTimeoutMs: 300 },
    want: "no answer in 0.3 s",
  },
  {
    name: "an endless head",
    handler: (r) => {
      r.socket?.write("HTTP/1.1 200 OK\r\n");
      drip(r, `x-filler: ${"x".repeat(8000)}\r\n`, 5);
    },
    want: "verflow",
  },
  {
    name: "a body that stops",
    handler: (r) => r.writeHead(200).write(LIST),
    limits: { idleTimeoutMs: 300 },
    want: "no more data in 0.3 s",
  },
  {
    name: "a body that never ends, slowly",
    handler: (r) => {
      r.socket?.write("HTTP/1.1 200 OK\r\n\r\n");
      drip(r, "||ads.example^\n", 20);
    },
    limits: { totalTimeoutMs: 600 },
    want: "not done in 0.6 s",
  },
  {
    name: "a body that keeps coming, a byte at a time",
    handler: (r) => {
      r.socket?.write("HTTP/1.1 200 OK\r\n\r\n");
      drip(r, "|", 20);
    },
    limits: { pace: { bytesMin: 10_000, timeMs: 300 } },
    want: "too slow: ",
  },
  {
    name: "a body in gzip, a byte at a time",
    handler: (r) => {
      r.socket?.write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
      let at = 0;
      const bytes = gzipSync(LIST);
      const timer = setInterval(() => r.socket?.write(bytes.subarray(at, ++at)), 20);
      r.socket?.on("close", () => clearInterval(timer));
    },
    limits: { pace: { bytesMin: 10_000, timeMs: 300 } },
    want: "too slow: ",
  },
  {
    name: "a list that is slow, but not too slow",
    handler: (r) => {
      r.writeHead(200, { "content-length": LIST.length });
      const half = LIST.length >> 1;
      r.write(LIST.slice(0, half));
      setTimeout(() => r.end(LIST.slice(half)), 1_200);
    },
    limits: { pace: { bytesMin: LIST.length >> 1, timeMs: 1_000 } },
    want: "text",
  },
  {
    name: "a body longer than its length",
    handler: (r) =>
      r.socket?.end(`HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n||ads.example^\n${LIST}`),
    want: "another text of 15 characters",
  },
  {
    name: "a body that never ends, fast",
    handler: (r) => {
      r.socket?.write("HTTP/1.1 200 OK\r\n\r\n");
      drip(r, LIST.repeat(10), 1);
    },
    want: "larger than",
  },
  {
    name: "a length over the bound",
    handler: (r) => r.writeHead(200, { "content-length": "1048577" }).write("x"),
    want: "larger than",
  },
  {
    name: "a body shorter than its length",
    handler: (r) => {
      r.writeHead(200, { "content-length": "1000" }).write("||ads.example^\n");
      setTimeout(() => r.socket?.end(), 20);
    },
    want: "aborted",
  },
  {
    name: "a reset in the middle",
    handler: (r) => {
      r.writeHead(200).write(LIST);
      setTimeout(() => r.socket?.destroy(), 20);
    },
    want: "aborted",
  },
  {
    name: "a page",
    handler: (r) => r.writeHead(200, { "content-type": "text/html" }).end("<p>"),
    want: "HTML page",
  },
  { name: "404", handler: (r) => r.writeHead(404).end(LIST), want: "the server answered 404" },
  { name: "500", handler: (r) => r.writeHead(500).end(), want: "the server answered 500" },
  { name: "304 unasked", handler: (r) => r.writeHead(304).end(), want: "the server answered 304" },
  {
    name: "304",
    handler: (r, q) => r.writeHead(q.headers["if-none-match"] === '"1"' ? 304 : 500).end(),
    validators: { etag: '"1"' },
    want: "not_modified",
  },
  {
    name: "a redirect loop",
    handler: (r) => r.writeHead(302, { location: "/" }).end("moved"),
    want: "more than 5 redirects",
  },
  {
    name: "five redirects",
    handler: (r, q) => {
      const count = Number(q.url?.slice(1));
      if (count === 5) r.end(LIST);
      else r.writeHead(308, { location: `/${count + 1}` }).end();
    },
    want: "text",
  },
  {
    name: "a redirect to http",
    handler: (r) => r.writeHead(302, { location: "http://lists.example/" }).end(),
    want: "a redirect to lists.example is refused",
  },
  {
    name: "something else than HTTP",
    handler: (r) => r.socket?.end("SSH-2.0-x\r\n\r\n"),
    want: "arse",
  },
];

/** A certificate for `lists.example` and 127.0.0.1, or `null` where `openssl` is missing. */
async function makeCertificate(): Promise<{ key: string; cert: string } | null> {
  const directory = await Deno.makeTempDir();
  try {
    const [key, cert] = [`${directory}/key.pem`, `${directory}/cert.pem`];
    const names = "subjectAltName=DNS:lists.example,IP:127.0.0.1";
    const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
      .concat(["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=test", "-addext", names]
        .concat(["-addext", "basicConstraints=critical,CA:FALSE"]));
    const made = await new Deno.Command("openssl", { args, stderr: "piped" }).output();
    assert.ok(made.success, new TextDecoder().decode(made.stderr));
    return { key: await Deno.readTextFile(key), cert: await Deno.readTextFile(cert) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const certificate = await makeCertificate();
if (certificate === null) console.warn("skipped: the tests over HTTPS need the command openssl");
const ignore = certificate === null;
const permissions = { net: true } as const;

/** Serves `handler` over HTTPS on a free port while `use` runs. */
async function serve(handler: Handler, use: (port: number) => Promise<void>): Promise<void> {
  const options = certificate ?? {};
  const server = https.createServer(options, (request, response) => handler(response, request));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const here: Lookup = () => Promise.resolve(["127.0.0.1"]);

/** What a download came to, in a word: `text` for the whole list. */
async function outcome(
  url: string,
  { limits = {}, validators = {}, lookup = here, trusted = true, addressTimeoutMs = 20_000 }: {
    limits?: Partial<DownloadLimits>;
    validators?: Validators;
    lookup?: Lookup;
    trusted?: boolean;
    addressTimeoutMs?: number;
  } = {},
): Promise<string> {
  const ca = trusted && certificate !== null ? { caPem: certificate.cert } : {};
  const get = nodeHttpGet({ lookup, addressTimeoutMs, ...ca });
  const pieces: Uint8Array[] = [];
  try {
    const downloaded = await download(get, {
      url: new URL(url),
      validators,
      signal: new AbortController().signal,
      limits: { ...LIMITS, ...limits },
      onChunk: (chunk) => {
        pieces.push(chunk.slice());
        return Promise.resolve();
      },
    });
    if (downloaded.kind !== "text") return downloaded.kind;
    const text = await new Blob(pieces as BlobPart[]).text();
    return text === LIST ? "text" : `another text of ${text.length} characters`;
  } catch (error) {
    return messageOf(error);
  }
}

Deno.test("download() gets a list or says why not", { ignore, permissions }, async (t) => {
  for (const { name, handler, want, limits = {}, validators = {} } of ROWS) {
    await t.step(name, () =>
      serve(handler, async (port) => {
        const got = await outcome(`https://lists.example:${port}/0`, { limits, validators });
        if (want === "text" || want === "not_modified") assert.equal(got, want);
        else assert.ok(got.includes(want) && got !== "text", got);
      }));
  }
});

Deno.test("download() is the same twice, and another after a change", {
  ignore,
  permissions,
}, async () => {
  let text = LIST;
  const handler: Handler = (response, request) => {
    const etag = `"${text.length}"`;
    if (request.headers["if-none-match"] === etag) response.writeHead(304).end();
    else response.writeHead(200, { etag }).end(text);
  };
  await serve(handler, async (port) => {
    const url = `https://lists.example:${port}/`;
    const validators = { etag: `"${LIST.length}"` };
    assert.equal(await outcome(url), "text");
    assert.equal(await outcome(url, { validators }), "not_modified");
    text = "||new.example^\n";
    assert.equal(await outcome(url, { validators }), "another text of 15 characters");
  });
});

Deno.test("nodeHttpGet() checks the certificate against the URL", {
  ignore,
  permissions,
}, async () => {
  await serve((response) => response.end(LIST), async (port) => {
    assert.equal(await outcome(`https://lists.example:${port}/`), "text");
    assert.equal(await outcome(`https://127.0.0.1:${port}/`), "text");
    assert.match(
      await outcome(`https://other.example:${port}/`),
      /not valid for name "other\.example"/,
    );
    assert.match(
      await outcome(`https://lists.example:${port}/`, { trusted: false }),
      /certificate/,
    );
  });
});

Deno.test("nodeHttpGet() asks the given lookup and tries each address", {
  ignore,
  permissions,
}, async () => {
  const asked: string[] = [];
  const answering = (addresses: string[]): Lookup => (name) => {
    asked.push(name);
    return Promise.resolve(addresses);
  };
  await serve((response) => response.end(LIST), async (port) => {
    const url = `https://lists.example:${port}/`;
    // Nothing listens on the first two.
    const lookup = answering(["127.0.0.2", "127.0.0.3", "127.0.0.1"]);
    assert.equal(await outcome(url, { lookup }), "text");
    assert.match(await outcome(url, { lookup: answering([]) }), /the host has no address/);
    assert.deepEqual(asked, ["lists.example", "lists.example"]);
    assert.equal(await outcome(`https://127.0.0.1:${port}/`, { lookup: answering([]) }), "text");
    assert.equal(asked.length, 2, "an address is not looked up");
    const failing: Lookup = () => Promise.reject(new Error("SERVFAIL"));
    assert.equal(await outcome(url, { lookup: failing }), "SERVFAIL");
    const hanging: Lookup = () => Promise.withResolvers<never>().promise;
    const limits = { headTimeoutMs: 300 };
    assert.equal(await outcome(url, { lookup: hanging, limits }), "no answer in 0.3 s");
  });
});

Deno.test("nodeHttpGet() speaks http on loopback", { permissions }, async () => {
  const server = http.createServer((_, response) => void response.end(LIST));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const never: Lookup = () => Promise.reject(new Error("localhost was looked up"));
    for (const host of ["127.0.0.1", "localhost"]) {
      assert.equal(await outcome(`http://${host}:${port}/`, { lookup: never }), "text");
    }
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
