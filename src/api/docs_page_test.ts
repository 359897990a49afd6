// Goal: the page shows every operation and sends what is filled in. Method: its own script runs over
// the real document and a page of plain objects.
import assert from "node:assert/strict";
import { DOCS_PAGE } from "./docs_page.ts";
import { ENDPOINTS, openApiDocument } from "./endpoints.ts";

const none = { permissions: "none" } as const;

/** An element, as far as the page's script knows one. */
class Element {
  textContent = "";
  value = "";
  children: (Element | string)[] = [];
  readonly listeners = new Map<string, (event: unknown) => unknown>();
  constructor(readonly tag: string) {}
  append(...children: (Element | string)[]) {
    this.children.push(...children);
  }
  replaceChildren(...children: (Element | string)[]) {
    this.children = children;
  }
  setAttribute() {}
  addEventListener(type: string, listener: (event: unknown) => unknown) {
    this.listeners.set(type, listener);
  }
  all(tag: string): Element[] {
    const inner = this.children.filter((child) => child instanceof Element);
    return [...(this.tag === tag ? [this] : []), ...inner.flatMap((child) => child.all(tag))];
  }
  get text(): string {
    const inner = this.children.map((child) => typeof child === "string" ? child : child.text);
    return this.textContent + inner.join("");
  }
  async submit(): Promise<void> {
    await this.listeners.get("submit")?.({ preventDefault: () => {} });
  }
}

/** Runs the page's script; `answer` stands for the API. */
async function load(answer: (path: string, init: RequestInit) => Response, token = "") {
  const main = new Element("main");
  const form = Object.assign(new Element("form"), { elements: { token: { value: token } } });
  const document = {
    createElement: (tag: string) => new Element(tag),
    querySelector: (tag: string) => tag === "main" ? main : form,
  };
  const script = /<script>([^]*)<\/script>/.exec(DOCS_PAGE)?.[1] ?? "";
  const fetch = (path: string, init: RequestInit) => Promise.resolve(answer(path, init));
  new Function("document", "fetch", script)(document, fetch);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve(); // The document is read.
  await new Promise((resolve) => setTimeout(resolve));
  return main;
}

Deno.test("the page shows every operation and schema", none, async () => {
  const main = await load(() => Response.json(openApiDocument()));
  const summaries = main.all("summary").map(({ text }) => text);
  assert.equal(summaries.length, ENDPOINTS.length);
  assert.ok(
    summaries.some((text) => text.startsWith("PUT /api/v1/settings Replace")),
    summaries[0],
  );
  const { schemas } = openApiDocument().components as { schemas: Record<string, unknown> };
  assert.deepEqual(main.all("h3").map(({ text }) => text), Object.keys(schemas));
});

Deno.test("the page says what to do without credentials", none, async () => {
  const main = await load(() => Response.json({}, { status: 401 }));
  assert.match(main.text, /sign in to svc, or give the token/);
});

Deno.test("the page sends what is filled in, with the token", none, async () => {
  const sent: (readonly [string, RequestInit])[] = [];
  const main = await load((path, init) => {
    if (path.endsWith("/openapi.json")) return Response.json(openApiDocument());
    sent.push([path, init]);
    return Response.json({ paused: true }, { status: 200 });
  }, "svc_token");
  const operation = (title: string) => {
    const found = main.all("details").find((one) => one.all("summary")[0].text.startsWith(title));
    return found?.all("form")[0] ?? assert.fail(title);
  };
  const pause = operation("PUT /api/v1/pause ");
  assert.deepEqual(JSON.parse(pause.all("textarea")[0].text), { seconds: 1 });
  pause.all("textarea")[0].value = '{"seconds":5}';
  await pause.submit();
  assert.match(pause.all("pre")[0].textContent, /^200 .*\n\{\n {2}"paused": true\n\}$/);
  const rule = operation("DELETE /api/v1/rules/{id} ");
  const [id, ifMatch] = rule.all("input");
  [id.value, ifMatch.value] = ["ru_1/../x", "3"];
  await rule.submit();
  const log = operation("GET /api/v1/querylog ");
  log.all("input")[0].value = "7";
  await log.submit();
  const token = { Authorization: "Bearer svc_token" };
  assert.deepEqual(sent, [
    ["/api/v1/pause", {
      method: "PUT",
      headers: { ...token, "Content-Type": "application/json" },
      body: '{"seconds":5}',
    }],
    ["/api/v1/rules/ru_1%2F..%2Fx", {
      method: "DELETE",
      headers: { ...token, "If-Match": "3" },
    }],
    ["/api/v1/querylog?limit=7", { method: "GET", headers: token }],
  ]);
});
