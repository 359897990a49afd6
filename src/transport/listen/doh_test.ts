import assert from "node:assert/strict";
import { encodeBase64url } from "../../bytes/mod.ts";
import { encodeQuery } from "../../dns/mod.ts";
import { answerQuery, type DohHandler, DohServer, freshness, refuseQuery } from "./doh.ts";
import { type HttpRequest, MediaType, Method, type ResponseHead } from "./http.ts";

const none = { permissions: "none" } as const;
const QUERY = encodeQuery("www.example", 1, { id: 0 });
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A request that notes how it was answered. */
class FakeRequest implements HttpRequest {
  readonly from = { client: "192.0.2.1", serverName: null, overLimit: () => {} };
  readonly target: Uint8Array;
  readonly targetStart = 3;
  readonly targetEnd: number;
  answers: string[] = [];

  constructor(
    readonly method: Method,
    target: string,
    readonly mediaType: MediaType = MediaType.None,
  ) {
    this.target = encoder.encode(`###${target}###`);
    this.targetEnd = this.target.length - 3;
  }

  respond(head: ResponseHead, maxAge: number, bytes: Uint8Array, offset: number, length: number) {
    const fields = decoder.decode(head.http1);
    const allow = /allow: (.*)\r\n/.exec(fields);
    const type = /content-type: ([^;\r]*)/.exec(fields)![1];
    const body = bytes.slice(offset, offset + length);
    const shown = type.startsWith("text/") ? "text" : `${body.length} bytes`;
    this.answers.push(
      `${head.status} ${type} ${shown}${maxAge < 0 ? "" : ` for ${maxAge}`}${
        allow === null ? "" : ` allow ${allow[1]}`
      }`,
    );
  }
}

/** Answers with the query itself; what is shorter than a header is refused. */
class FakeHandler implements DohHandler {
  readonly clientIds: (string | null)[] = [];
  rejected = 0;
  oblivious: DohHandler["oblivious"] = null;

  onQuery(
    request: HttpRequest,
    message: Uint8Array,
    start: number,
    end: number,
    clientId: Uint8Array | null,
  ): void {
    this.clientIds.push(clientId === null ? null : decoder.decode(clientId));
    if (end - start < 12) refuseQuery(request);
    else answerQuery(request, message, start, end - start);
  }

  onRejected(): void {
    this.rejected++;
  }
}

const DNS = encodeBase64url(QUERY);
const OK = "200 application/dns-message 29 bytes for 0";
const { Get, Head, Post, Other } = Method;

/** Method, target, what comes of it, and the client ID. */
const CASES: readonly (readonly [Method, string, string, (string | null)?])[] = [
  [Get, `/dns-query?dns=${DNS}`, OK, null],
  [Head, `/dns-query?dns=${DNS}`, OK, null],
  [Get, `/dns-query?ct=application/dns-message&dns=${DNS}&random_padding=x`, OK, null],
  [Get, `/dns-query/tv?dns=${DNS}`, OK, "tv"],
  [Get, `/dns-query/My-Phone-2?dns=${DNS}`, OK, "my-phone-2"],
  [Get, `/dns-query/${"a".repeat(63)}?dns=${DNS}`, OK, "a".repeat(63)],
  [Post, "/dns-query", OK, null],
  [Post, "/dns-query/tv", OK, "tv"],
  [Get, "/dns-query?dns=AAAA", "400 text/plain text", null],
  [Get, "/dns-query", "400 text/plain text"],
  [Get, "/dns-query?", "400 text/plain text"],
  [Get, "/dns-query?dns=", "400 text/plain text"],
  [Get, "/dns-query?xdns=AAAA", "400 text/plain text"],
  [Get, `/dns-query?dns=${DNS}=`, "400 text/plain text"],
  [Get, `/dns-query?dns=${DNS}%3D`, "400 text/plain text"],
  [Get, "/dns-query?dns=A", "400 text/plain text"],
  [Get, "/dns-query?dns=AA/A", "400 text/plain text"],
  [Post, `/dns-query/${"a".repeat(64)}`, "400 text/plain text"],
  [Post, "/dns-query/", "400 text/plain text"],
  [Post, "/dns-query/a_b", "400 text/plain text"],
  [Post, "/dns-query/a%20b", "400 text/plain text"],
  [Post, "/dns-query/a/b", "404 text/plain text"],
  [Post, "/dns-queryx", "404 text/plain text"],
  [Post, "/dns-quer", "404 text/plain text"],
  [Get, "/", "404 text/plain text"],
  [Get, "*", "404 text/plain text"],
  [Get, "/DNS-QUERY", "404 text/plain text"],
  [Get, "/.well-known/odohconfigs", "404 text/plain text"],
  [Other, "/dns-query", "405 text/plain text allow GET, HEAD, POST"],
];

Deno.test("DohServer finds out what is asked", none, async (t) => {
  for (const [method, target, want, clientId] of CASES) {
    await t.step(`${["other", "GET", "HEAD", "POST"][method]} ${target}`, () => {
      const handler = new FakeHandler();
      const request = new FakeRequest(method, target, MediaType.Dns);
      new DohServer(handler).onRequest(request, QUERY, 0, QUERY.length);
      assert.deepEqual(request.answers, [want]);
      assert.deepEqual(handler.clientIds, clientId === undefined ? [] : [clientId]);
      assert.equal(handler.rejected, clientId === undefined ? 1 : 0);
    });
  }
});

Deno.test("DohServer wants the content type of DNS messages", none, () => {
  for (const mediaType of [MediaType.None, MediaType.Other, MediaType.Oblivious]) {
    const request = new FakeRequest(Method.Post, "/dns-query", mediaType);
    new DohServer(new FakeHandler()).onRequest(request, QUERY, 0, QUERY.length);
    assert.deepEqual(request.answers, ["415 text/plain text"]);
  }
});

Deno.test("DohServer hands oblivious messages on where there is a target", none, () => {
  const handler = new FakeHandler();
  const seen: number[] = [];
  handler.oblivious = {
    configs: Uint8Array.of(1, 2, 3),
    onMessage: (_request, _message, start, end) => void seen.push(start, end),
  };
  const server = new DohServer(handler);
  const ask = (method: Method, target: string) => {
    const request = new FakeRequest(method, target, MediaType.Oblivious);
    server.onRequest(request, QUERY, 2, 9);
    return request.answers;
  };
  assert.deepEqual(ask(Method.Post, "/dns-query"), []);
  assert.deepEqual(seen, [2, 9]);
  const configs = "/.well-known/odohconfigs";
  assert.deepEqual(ask(Method.Get, configs), ["200 application/octet-stream 3 bytes for 3600"]);
  assert.deepEqual(ask(Method.Post, configs), ["405 text/plain text allow GET, HEAD"]);
  assert.deepEqual(ask(Method.Get, configs + "x"), ["404 text/plain text"]);
});

/** A response with the TTLs of its answer, and TTL and MINIMUM of an SOA behind it. */
function response(ttls: readonly number[], soa?: readonly [number, number]): Uint8Array {
  const u32 = (n: number) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
  const bytes = [...QUERY];
  bytes[7] = ttls.length;
  bytes[9] = soa === undefined ? 0 : 1;
  for (const ttl of ttls) bytes.push(0xc0, 12, 0, 1, 0, 1, ...u32(ttl), 0, 4, 192, 0, 2, 1);
  if (soa !== undefined) {
    bytes.push(
      0xc0,
      12,
      0,
      6,
      0,
      1,
      ...u32(soa[0]),
      0,
      22,
      0,
      0,
      ...Array(16).fill(0),
      ...u32(soa[1]),
    );
  }
  return Uint8Array.from(bytes);
}

Deno.test("freshness() is the smallest TTL, or what the SOA says", none, () => {
  const cases = [
    [response([300, 60, 3_600]), 60],
    [response([0]), 0],
    [response([0xffffffff]), 0],
    [response([]), 0],
    [response([], [900, 300]), 300],
    [response([], [200, 300]), 200],
    [response([100], [200, 300]), 100],
  ] as const;
  for (const [bytes, want] of cases) {
    assert.equal(freshness(bytes, 0, bytes.length), want);
    // Somewhere in a larger buffer.
    const around = Uint8Array.of(9, 9, 9, ...bytes, 9);
    assert.equal(freshness(around, 3, 3 + bytes.length), want);
    // Cut anywhere it says nothing, or what it still knows; never anything else.
    for (let end = 0; end < bytes.length; end++) assert.equal(freshness(bytes, 0, end), 0);
  }
});
