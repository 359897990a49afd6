/** Other products, served on loopback as they answer, or as nobody should. */
import { adguardAnswer, bodyOf, type FakeAnswer, FakePihole } from "../../src/migrate/fakes.ts";

type Handler = (request: Request) => Response | Promise<Response>;

/** A web interface. */
export class FakeSource {
  readonly url: string;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  /** Methods and paths that were asked for, in order. */
  readonly asked: string[] = [];

  constructor(handler: Handler) {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {}, onError: () => new Response() },
      (request) => {
        this.asked.push(`${request.method} ${new URL(request.url).pathname}`);
        return handler(request);
      },
    );
    this.url = `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

type Answering = Parameters<typeof answerTo>[1];

async function answerTo(
  request: Request,
  answer: (asked: Parameters<typeof adguardAnswer>[0]) => FakeAnswer,
): Promise<Response> {
  const text = await request.text();
  const answered = answer({
    method: request.method,
    path: new URL(request.url).pathname,
    headers: Object.fromEntries(request.headers),
    json: text === "" ? undefined : JSON.parse(text),
  });
  const { status, headers } = answered;
  const type = answered.text === undefined ? "application/json" : "text/plain";
  const body = status === 204 ? null : bodyOf(answered);
  return new Response(body, { status, headers: { "content-type": type, ...headers } });
}

export function serveAdguard(answer: Answering = (asked) => adguardAnswer(asked)): FakeSource {
  return new FakeSource((request) => answerTo(request, answer));
}

export function servePihole(hole = new FakePihole()): FakeSource {
  return new FakeSource((request) => answerTo(request, (asked) => hole.answer(asked)));
}

/** A body that comes piece by piece, for as long as somebody reads it. */
function endless(piece: string, everyMs: number): Response {
  const bytes = new TextEncoder().encode(piece);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (everyMs > 0) await new Promise<void>((resolve) => timer = setTimeout(resolve, everyMs));
      try {
        controller.enqueue(bytes);
      } catch {
        // Nobody reads it any more.
      }
    },
    cancel: () => clearTimeout(timer),
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

/** A body that ends before it is whole. */
function brokenOff(text: string): Response {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
    pull: (controller) => controller.error(new Error("gone")),
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

/** An AdGuard Home that spoils one path; what the migration says of it. */
export const SPOILED: readonly (readonly [
  name: string,
  path: string,
  spoil: () => Response,
  message: RegExp,
])[] = [
  [
    "a page for people",
    "/control/status",
    () =>
      new Response("<!doctype html><title>Sign in</title>", {
        headers: { "content-type": "text/html" },
      }),
    /control\/status: it answers 200 with an HTML page, not with JSON/,
  ],
  [
    "a redirect",
    "/control/status",
    () =>
      new Response(null, { status: 302, headers: { location: "https://192.0.2.1/login.html" } }),
    /control\/status: it redirects to https:\/\/192\.0\.2\.1, which is not followed: give that address/,
  ],
  [
    "no JSON",
    "/control/dns_info",
    () => new Response('{"upstream_dns": ['),
    /control\/dns_info: it answers 200 with what is no JSON/,
  ],
  [
    "JSON of another shape",
    "/control/clients",
    () => Response.json({ clients: [{ name: "x", ids: "192.0.2.1" }] }),
    /control\/clients: clients\[0\]\.ids: it is not an array/,
  ],
  [
    "too many clients",
    "/control/clients",
    () => Response.json({ clients: Array.from({ length: 5_001 }, () => ({ name: "x" })) }),
    /control\/clients: clients: it has more than 5000 entries/,
  ],
  [
    "nested without end",
    "/control/clients",
    () => new Response('{"clients":'.repeat(100_000)),
    /control\/clients: it answers 200 with what is no JSON/,
  ],
  [
    "a body without an end",
    "/control/filtering/status",
    () => endless(" ".repeat(65_536), 0),
    /control\/filtering\/status: it is larger than 8388608 bytes/,
  ],
  [
    "a body a letter at a time",
    "/control/filtering/status",
    () => endless(" ", 200),
    /control\/filtering\/status: too slow/,
  ],
  [
    "a body that breaks off",
    "/control/rewrite/list",
    () => brokenOff('[{"domain":"a.example",'),
    /control\/rewrite\/list: /,
  ],
  [
    "a failure late on",
    "/control/access/list",
    () => new Response("oops", { status: 500 }),
    /control\/access\/list: it answers 500/,
  ],
];

/** An AdGuard Home that answers one path otherwise. */
export function serveSpoiled(path: string, spoil: () => Response): FakeSource {
  return new FakeSource((request) =>
    new URL(request.url).pathname === path
      ? spoil()
      : answerTo(request, (asked) => adguardAnswer(asked))
  );
}
