/**
 * Where a request ends, both servers of HTTP/1.1 say alike: what another server might read otherwise
 * is refused (RFC 9112 §2.2, §5, §6, §7.1, §11.2).
 */
import assert from "node:assert/strict";
import { type AddressInfo, createServer } from "node:net";
import { ApiServer } from "../../src/api/mod.ts";
import { Flow } from "../../src/transport/listen/flow.ts";
import { HttpsServer } from "../../src/transport/listen/https.ts";
import { ResponseHead } from "../../src/transport/listen/http.ts";
import { RawClient } from "../raw_client.ts";

const permissions = { permissions: { net: ["127.0.0.1"] } };
const HOST = "Host: localhost\r\n";
const LENGTH = "Content-Length: 2\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const get = (fields: string, lines = "GET / HTTP/1.1\r\n") => lines + fields;
const post = (fields: string, body: string) => `POST / HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;

/** What is sent, and the status of the answer; behind 400, 413, 431 and 501 the connection ends. */
const ROWS: readonly (readonly [string, string, number])[] = [
  ["a plain request", get(`${HOST}\r\n`), 200],
  ["empty lines before it", get(`${HOST}\r\n`, "\r\n\r\nGET / HTTP/1.1\r\n"), 200],
  ["three of them", get(`${HOST}\r\n`, "\r\n\r\n\r\nGET / HTTP/1.1\r\n"), 400],
  ["a bare LF before it", get(`${HOST}\r\n`, "\nGET / HTTP/1.1\r\n"), 400],
  ["bare LF everywhere", "GET / HTTP/1.1\nHost: localhost\n\n", 400],
  ["a bare LF behind the request line", get(`${HOST}\r\n`, "GET / HTTP/1.1\n"), 400],
  ["a bare LF behind a field", get(`${HOST}A: b\nC: d\r\n\r\n`), 400],
  ["a bare LF at the end of the head", get(`${HOST}\n`), 400],
  ["a bare CR in a field", get(`${HOST}A: b\rC\r\n\r\n`), 400],
  ["a bare CR behind a field", get(`${HOST}A: b\r\r\n\r\n`), 400],
  ["NUL in a field", get(`${HOST}A: b\0\r\n\r\n`), 400],
  ["DEL in a field", get(`${HOST}A: b\x7f\r\n\r\n`), 400],
  ["a folded field", get(`${HOST}A: b\r\n c\r\n\r\n`), 400],
  ["a field folded at once", get(` ${HOST}\r\n`), 400],
  ["white space before the colon", get(`${HOST}A : b\r\n\r\n`), 400],
  ["no colon", get(`${HOST}A\r\n\r\n`), 400],
  ["no name", get(`${HOST}: b\r\n\r\n`), 400],
  ["no host", get("\r\n"), 400],
  ["two hosts", get(`${HOST}${HOST}\r\n`), 400],
  ["129 fields", get(`${HOST}${"A: b\r\n".repeat(128)}\r\n`), 431],
  ["a head that is too long", get(`${HOST}A: ${"b".repeat(20_000)}\r\n\r\n`), 431],
  ["a target that is too long", `GET /${"a".repeat(13_000)} HTTP/1.1\r\n${HOST}\r\n`, 414],
  ["another version", `GET / HTTP/2.0\r\n${HOST}\r\n`, 505],
  ["a preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
  ["two spaces", `GET  / HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["a tab for a space", `GET\t/ HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["a length", post(LENGTH, "ab"), 200],
  ["the same length twice", post(LENGTH + LENGTH, "ab"), 200],
  ["two lengths", post(`${LENGTH}Content-Length: 3\r\n`, "ab"), 400],
  ["a list of lengths", post("Content-Length: 2, 2\r\n", "ab"), 400],
  ["a length with a sign", post("Content-Length: +2\r\n", "ab"), 400],
  ["a negative length", post("Content-Length: -2\r\n", "ab"), 400],
  ["a length in hexadecimal", post("Content-Length: 0x2\r\n", "ab"), 400],
  ["an empty length", post("Content-Length:\r\n", "ab"), 400],
  ["a length that overflows", post("Content-Length: 18446744073709551618\r\n", "ab"), 400],
  ["a length with chunks", post(LENGTH + CHUNKED, "2\r\nab\r\n0\r\n\r\n"), 400],
  ["chunks with a length", post(CHUNKED + LENGTH, "2\r\nab\r\n0\r\n\r\n"), 400],
  ["chunks twice", post(CHUNKED + CHUNKED, "2\r\nab\r\n0\r\n\r\n"), 400],
  ["another coding", post("Transfer-Encoding: gzip\r\n", "ab"), 501],
  ["another coding before it", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501],
  [
    "chunks in HTTP/1.0",
    `POST / HTTP/1.0\r\n${HOST}${CHUNKED}\r\n2\r\nab\r\n0\r\n\r\n`,
    400,
  ],
  ["chunks", post(CHUNKED, "1\r\na\r\n1\r\nb\r\n0\r\n\r\n"), 200],
  ["a size with zeros", post(CHUNKED, "0002\r\nab\r\n0\r\n\r\n"), 200],
  ["an extension", post(CHUNKED, '2;a="b"\r\nab\r\n0\r\n\r\n'), 200],
  ["white space behind the size", post(CHUNKED, "2 ;a\r\nab\r\n0\r\n\r\n"), 200],
  ["a trailer", post(CHUNKED, "2\r\nab\r\n0\r\nA: b\r\n\r\n"), 200],
  ["a bare LF behind the size", post(CHUNKED, "2\nab\r\n0\r\n\r\n"), 400],
  ["a bare LF behind an extension", post(CHUNKED, "2;a=b\nab\r\n0\r\n\r\n"), 400],
  ["a bare CR in an extension", post(CHUNKED, "2;a\rb\r\nab\r\n0\r\n\r\n"), 400],
  ["a bare LF behind the data", post(CHUNKED, "2\r\nab\n0\r\n\r\n"), 400],
  ["a bare LF behind the last size", post(CHUNKED, "2\r\nab\r\n0\n\r\n"), 400],
  ["a bare LF behind a trailer", post(CHUNKED, "2\r\nab\r\n0\r\nA: b\n\r\n"), 400],
  ["a bare LF at the end", post(CHUNKED, "2\r\nab\r\n0\r\n\n"), 400],
  ["a folded trailer", post(CHUNKED, "2\r\nab\r\n0\r\nA: b\r\n c\r\n\r\n"), 400],
  ["a trailer that is none", post(CHUNKED, "2\r\nab\r\n0\r\nGET / HTTP/1.1\r\n\r\n"), 400],
  ["junk in a size", post(CHUNKED, "2x\r\nab\r\n0\r\n\r\n"), 400],
  ["junk before a size", post(CHUNKED, " 2\r\nab\r\n0\r\n\r\n"), 400],
  ["junk behind the white space", post(CHUNKED, "2 3\r\nab\r\n0\r\n\r\n"), 400],
  ["a size with a sign", post(CHUNKED, "+2\r\nab\r\n0\r\n\r\n"), 400],
  ["a negative size", post(CHUNKED, "-2\r\nab\r\n0\r\n\r\n"), 400],
  ["a size with a prefix", post(CHUNKED, "0x2\r\nab\r\n0\r\n\r\n"), 400],
  ["no size", post(CHUNKED, "\r\nab\r\n0\r\n\r\n"), 400],
  ["a size that overflows", post(CHUNKED, "10000000000000002\r\nab\r\n0\r\n\r\n"), 400],
  ["a size that is too large", post(CHUNKED, "ffffffff\r\nab\r\n0\r\n\r\n"), 413],
  ["more data than the size", post(CHUNKED, "2\r\nabc\r\n0\r\n\r\n"), 400],
];

interface Served extends AsyncDisposable {
  readonly port: number;
}

/** The API's server, before a handler that reads every body and answers 200. */
async function apiServer(): Promise<Served> {
  const server = new ApiServer({
    listen: [{ ip: new Uint8Array([127, 0, 0, 1]), port: 0 }],
    tls: null,
    hasToken: false,
    handler: async (request) => {
      try {
        await request.text();
        return new Response("ok\n");
      } catch (error) {
        return new Response(null, { status: (error as { status?: number }).status ?? 500 });
      }
    },
  });
  const [{ port }] = await server.start();
  return { port, [Symbol.asyncDispose]: () => server.stop(0) };
}

/** That of DNS over HTTPS, in clear text, before a handler that answers 200. */
async function dohServer(): Promise<Served> {
  const ok = new ResponseHead(200, {});
  const limits = { requestsMax: 8, idleMs: 60_000, requestMs: 60_000, unreadBytesMax: 1_000_000 };
  const https = new HttpsServer({
    onRequest: (request) => request.respond(ok, -1, new Uint8Array(0), 0, 0),
    onRejected: () => {},
  }, limits);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const sender = { address: "127.0.0.1", network: "127.0.0.1", touch: () => {} };
    https.take({ socket, flow: new Flow(socket), sender, serverName: null, protocol: null });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    await https.close();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { port, [Symbol.asyncDispose]: close };
}

for (const [name, start] of [["the API", apiServer], ["DNS over HTTPS", dohServer]] as const) {
  Deno.test(
    `${name} agrees with every other server where a request ends`,
    permissions,
    async (t) => {
      await using server = await start();
      for (const [row, sent, want] of ROWS) {
        await t.step(row, async () => {
          using client = await RawClient.open(server.port);
          // What follows must never be taken for a request where the one before it was refused.
          await client.write(`${sent}GET /next HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
          const { text } = await client.ended();
          const statuses = Array.from(text.matchAll(/^HTTP\/1\.1 (\d+) /gm), ([, s]) => Number(s));
          assert.deepEqual(statuses, want === 200 ? [200, 200] : [want]);
        });
      }
    },
  );
}

for (const [name, start] of [["the API", apiServer], ["DNS over HTTPS", dohServer]] as const) {
  Deno.test(`${name} ends a connection of empty lines alone`, permissions, async () => {
    await using server = await start();
    using client = await RawClient.open(server.port);
    await client.write("\r\n".repeat(100_000)).catch(() => {}); // It may be closed before the end.
    assert.match((await client.ended()).text, /^HTTP\/1\.1 400 /);
  });
}
