// Goal: no API, however it misbehaves, hangs a request, fills memory or is taken for what it is not.
import assert from "node:assert/strict";
import { messageOf } from "../errors.ts";
import { askJson } from "./ask_json.ts";
import { nodeHttpAsk } from "./node_http.ts";

const permissions = { net: ["127.0.0.1"] };
const LIMITS = {
  headTimeoutMs: 300,
  idleTimeoutMs: 300,
  totalTimeoutMs: 20_000,
  bytesMax: 64 * 1024,
};

type Handler = (request: Request) => Response | Promise<Response>;

async function outcome(handler: Handler, method: "GET" | "POST" | "DELETE" = "GET") {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handler);
  const hanging = new AbortController();
  try {
    const { status, json } = await askJson(
      nodeHttpAsk({ lookup: () => Promise.reject(new Error("looked up")) }),
      {
        method,
        url: new URL(`http://127.0.0.1:${server.addr.port}/api`),
        headers: { "x-sid": "1" },
        ...(method === "POST" && { body: { name: "ann" } }),
        limits: LIMITS,
        signal: hanging.signal,
      },
    );
    return `${status} ${JSON.stringify(json)}`;
  } catch (error) {
    return messageOf(error);
  } finally {
    await server.shutdown();
  }
}

const html = { "content-type": "text/html; charset=utf-8" };

Deno.test("askJson() answers with JSON, or says why not", { permissions }, async (t) => {
  const rows: readonly (readonly [string, Handler, string])[] = [
    ["an object", () => Response.json({ a: 1 }), '200 {"a":1}'],
    ["a refusal in JSON", () => Response.json({ e: 1 }, { status: 401 }), '401 {"e":1}'],
    ["a refusal as text", () => new Response("no", { status: 403 }), "403 undefined"],
    [
      "a refusal as a page",
      () => new Response("<p>", { status: 404, headers: html }),
      "404 undefined",
    ],
    ["nothing", () => new Response(null, { status: 204 }), "204 undefined"],
    [
      "a page",
      () => new Response("<p>", { headers: html }),
      "it answers 200 with an HTML page, not with JSON",
    ],
    [
      "an unnamed page",
      () => new Response("\n<!DOCTYPE html>"),
      "it answers 200 with an HTML page, not with JSON",
    ],
    ["no JSON", () => new Response("{"), "it answers 200 with what is no JSON"],
    ["too deep", () => new Response("[".repeat(60_000)), "it answers 200 with what is no JSON"],
    ["too large", () => new Response(" ".repeat(100_000)), "it is larger than 65536 bytes"],
    [
      "a redirect elsewhere",
      () => new Response(null, { status: 301, headers: { location: "https://x.example/a" } }),
      "it redirects to https://x.example, which is not followed: give that address",
    ],
    [
      "a redirect to another page",
      () => new Response(null, { status: 302, headers: { location: "/login" } }),
      "it redirects to /login, which is not followed",
    ],
    [
      "a redirect to nowhere",
      () => new Response(null, { status: 307 }),
      "it redirects, which is not followed",
    ],
  ];
  for (const [name, handler, want] of rows) {
    await t.step(name, async () => assert.equal(await outcome(handler), want));
  }
});

Deno.test("askJson() sends its headers and its body", { permissions }, async () => {
  const seen: unknown[] = [];
  const handler: Handler = async (request) => {
    const { method, headers } = request;
    seen.push([method, headers.get("x-sid"), headers.get("content-type"), await request.text()]);
    return Response.json({});
  };
  await outcome(handler, "POST");
  await outcome(handler, "DELETE");
  assert.deepEqual(seen, [
    ["POST", "1", "application/json", '{"name":"ann"}'],
    ["DELETE", "1", null, ""],
  ]);
});

Deno.test("askJson() waits for no head and no body without end", { permissions }, async () => {
  const late = Promise.withResolvers<Response>();
  const asked = outcome(() => late.promise);
  // The server answers only so that it can be closed.
  setTimeout(() => late.resolve(new Response("{}")), 1_000);
  assert.equal(await asked, "no answer in 0.3 s");
  const silent = new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode("[")) });
  assert.equal(await outcome(() => new Response(silent)), "no more data in 0.3 s");
});
