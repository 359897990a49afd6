import assert from "node:assert/strict";
import { type ErrorCode, SvcError } from "../errors.ts";
import { ApiClient, type ClientOptions } from "./api_client.ts";

const local = { permissions: { net: ["127.0.0.1"] } };

/** A server that answers as it is told, and keeps what it was asked. */
class Server implements AsyncDisposable {
  readonly asked: string[] = [];
  answer: (request: Request) => Response | Promise<Response> = () => Response.json({});
  readonly #server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const said = [
        headers.get("authorization"),
        headers.get("content-type"),
        await request.text(),
      ];
      this.asked.push([method, pathname + search, ...said].join(" | "));
      return await this.answer(request);
    },
  );

  get base(): URL {
    return new URL(`http://127.0.0.1:${this.#server.addr.port}`);
  }

  client(options: Partial<ClientOptions> = {}): ApiClient {
    return new ApiClient({ base: this.base, token: null, ...options });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Asserts that a call fails so; the service's address stands before the message. */
async function refused(call: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(call, (error) => {
    assert(error instanceof SvcError);
    assert.equal(error.code, code);
    assert.match(error.message, /^http:\/\/127\.0\.0\.1:\d+: /);
    assert.match(error.message, message);
    return true;
  });
}

Deno.test("ApiClient.call() sends what it is given, and nothing else", local, async () => {
  await using server = new Server();
  server.answer = () => Response.json({ status: "ok" });
  assert.deepEqual(await server.client().call("GET health"), { status: "ok" });
  const query = { name: "a b&c.example", type: undefined, client: "192.0.2.7" };
  await server.client({ token: "svc_t" }).call("GET explain", { query });
  await server.client({ token: "svc_t" }).call("POST update/check", { body: { a: "é" } });
  assert.deepEqual(server.asked, [
    "GET | /api/v1/health |  |  | ",
    "GET | /api/v1/explain?name=a+b%26c.example&client=192.0.2.7 | Bearer svc_t |  | ",
    'POST | /api/v1/update/check | Bearer svc_t | application/json | {"a":"é"}',
  ]);
});

Deno.test("ApiClient.call() fails with the API's code and message", local, async (t) => {
  await using server = new Server();
  const told = (code: unknown, message: unknown) => () =>
    Response.json({ error: { code, message } }, { status: 409 });
  const rows: readonly (readonly [string, Server["answer"], ErrorCode, RegExp])[] = [
    ["its code", told("conflict", "users: taken"), "conflict", /: users: taken$/],
    ["a code to come", told("teapot", "it is short"), "bad_request", /: it is short$/],
    ["no message", told("conflict", 7), "unavailable", /it answers 409, and is no svc$/],
    ["no JSON", () => new Response("hello"), "unavailable", /it answers 200, and is no svc$/],
    ["null", () => new Response("null"), "unavailable", /it answers 200, and is no svc$/],
    ["a number", () => new Response("7"), "unavailable", /it answers 200, and is no svc$/],
    ["nothing", () => new Response(null, { status: 502 }), "unavailable", /it answers 502/],
    ["half of it", () => new Response('{"status":'), "unavailable", /it answers 200/],
  ];
  for (const [name, answer, code, message] of rows) {
    await t.step(name, async () => {
      server.answer = answer;
      await refused(server.client().call("GET health"), code, message);
    });
  }
});

Deno.test("ApiClient.clock is the service's, as answers and streams tell it", local, async () => {
  await using server = new Server();
  const dayMs = 86_400_000;
  const date = () => new Date(Date.now() + dayMs).toUTCString();
  const aheadMs = ({ clock }: ApiClient) => clock.nowMs - Date.now();
  server.answer = () => Response.json({}, { headers: { date: date() } });
  const [asking, watching] = [server.client(), server.client()];
  assert.equal(aheadMs(asking), 0);
  await asking.call("GET health");
  const { signal } = new AbortController();
  await watching.watch("events", { signal, onOpen: () => {}, onEvent: () => {} });
  // To the second that a date tells, and however long the answer took.
  for (const client of [asking, watching]) assert.ok(Math.abs(aheadMs(client) - dayMs) < 60_000);
});

Deno.test("ApiClient.call() gives its token to no other place", local, async () => {
  await using server = new Server();
  await using other = new Server();
  server.answer = () => Response.redirect(other.base, 302);
  await refused(server.client({ token: "svc_t" }).call("GET health"), "unavailable", /no answer/);
  assert.deepEqual(other.asked, []);
});

Deno.test("ApiClient.call() ends what never ends", local, async (t) => {
  await using server = new Server();
  await t.step("an answer without a head", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    server.answer = () => promise;
    await refused(server.client({ timeoutMs: 50 }).call("GET health"), "unavailable", /no answer/);
    resolve(Response.json({}));
  });
  await t.step("a body without an end, slowly", async () => {
    server.answer = () => new Response(new ReadableStream());
    await refused(server.client({ timeoutMs: 50 }).call("GET health"), "unavailable", /no answer/);
  });
  await t.step("a body without an end, fast", async () => {
    const chunk = new Uint8Array(1_024).fill(0x20);
    const body = () => new ReadableStream({ pull: (controller) => controller.enqueue(chunk) });
    server.answer = () => new Response(body());
    const call = server.client({ bytesMax: 100_000 }).call("GET health");
    await refused(call, "unavailable", /its answer is longer than 100000 bytes$/);
  });
  await t.step("nobody there", async () => {
    const gone = new URL("http://127.0.0.1:1");
    await refused(server.client({ base: gone }).call("GET health"), "unavailable", /no answer/);
  });
});

Deno.test("ApiClient.call() names a resource and its revision", local, async () => {
  await using server = new Server();
  const heads: (string | null)[] = [];
  server.answer = ({ method, headers }) => {
    heads.push(headers.get("if-match"));
    return method === "DELETE" ? new Response(null, { status: 204 }) : Response.json({});
  };
  await server.client().call("PUT lists/{id}", { id: "li/1?", ifMatch: 7, body: {} });
  assert.equal(await server.client().call("DELETE rules/{id}", { id: "ru_1" }), null);
  assert.deepEqual(server.asked, [
    "PUT | /api/v1/lists/li%2F1%3F |  | application/json | {}",
    "DELETE | /api/v1/rules/ru_1 |  |  | ",
  ]);
  assert.deepEqual(heads, ['"7"', null]);
});

/** Watches what a server sends, until the stream ends; what came. */
async function watched(server: Server, signal = new AbortController().signal): Promise<string[]> {
  const came: string[] = [];
  await server.client({ token: "svc_t" }).watch("querylog/stream", {
    query: { client: "tv" },
    lastEventId: "a1",
    signal,
    onOpen: () => void came.push("open"),
    onEvent: ({ event, data, id }) => void came.push(`${event} ${id} ${data}`),
  });
  return came;
}

Deno.test("ApiClient.watch() hands events on, however they are cut", local, async (t) => {
  await using server = new Server();
  const text = ':\n\nid: a2\ndata: {"é":1}\n\nevent: skipped\ndata: 7\n\ndata: half';
  const bytes = new TextEncoder().encode(text);
  await t.step("byte by byte", async () => {
    server.answer = () => {
      const chunks = Array.from(bytes, (byte) => Uint8Array.of(byte));
      return new Response(ReadableStream.from(chunks));
    };
    assert.deepEqual(await watched(server), ["open", 'message a2 {"é":1}', "skipped null 7"]);
    assert.match(server.asked[0], /^GET \| \/api\/v1\/querylog\/stream\?client=tv \| Bearer svc_t/);
  });
  await t.step("no event without an end", async () => {
    const chunk = new Uint8Array(65_536).fill(0x61);
    const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(chunk);
    server.answer = () => new Response(new ReadableStream({ pull }));
    await refused(watched(server), "unavailable", /an event is longer than/);
  });
  await t.step("refused", async () => {
    const error = { code: "unavailable", message: "events: 16 read already" };
    server.answer = () => Response.json({ error }, { status: 503 });
    await refused(watched(server), "unavailable", /: events: 16 read already$/);
  });
  await t.step("told to stop", async () => {
    const aborter = new AbortController();
    server.answer = () => {
      aborter.abort();
      return new Response(new ReadableStream());
    };
    assert.deepEqual(await watched(server, aborter.signal), []);
  });
});
