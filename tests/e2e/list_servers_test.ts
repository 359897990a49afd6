// Goal: no list server, whatever it sends or withholds, takes good rules away, puts other lists off
// or goes unnoticed. Method: servers on loopback that answer each path as a test says, asked by a
// running service; what they saw of it is counted there.
import assert from "node:assert/strict";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { ask } from "./clients.ts";
import { FakeUpstream } from "./fake_upstream.ts";
import { PERMISSIONS, Service, until } from "./harness.ts";

const DOWNLOADS_MAX = 4;

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

const text = (body: string): Handler => (response) => void response.end(body);
/** Says that a text comes, sends its beginning, and nothing more. */
const hangs: Handler = (response) => {
  response.writeHead(200, { "content-length": 100_000 });
  response.write("||slow.example^\n");
};

/** A server with an answer for each path. */
class ListServer {
  readonly handlers = new Map<string, Handler>();
  readonly requests: string[] = [];
  /** Requests that are not answered in full. */
  open = 0;
  openMax = 0;
  readonly #server = http.createServer((request, response) => {
    const path = request.url ?? "";
    this.requests.push(path);
    this.openMax = Math.max(this.openMax, ++this.open);
    response.on("close", () => this.open--);
    (this.handlers.get(path) ?? text(`||${path.slice(1)}.example^\n`))(response, request);
  });

  static async start(): Promise<ListServer> {
    const server = new ListServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${path}`;
  }

  count(path: string): number {
    return this.requests.filter((asked) => asked === `/${path}`).length;
  }

  /** Closes every connection, whatever is under way on it. */
  endOpen(): void {
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.endOpen();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const isBlocked = async ({ address }: Service, name: string) =>
  (await ask(address, name, Qtype.A)).answers.some(({ data }) => data === "0.0.0.0");

interface Shown {
  readonly id: string;
  readonly spec: { readonly name: string };
  readonly status: {
    readonly state: string;
    readonly message: string | null;
    readonly rules: number;
    readonly unsupported: number;
    readonly downloading: { readonly bytes: number; readonly total_bytes: number | null } | null;
  };
}

async function listNamed(api: Api, name: string): Promise<Shown> {
  const { items } = await api.call("GET", "lists");
  const found = items.find((item: Shown) => item.spec.name === name);
  assert(found !== undefined, name);
  return found;
}

const NO_LISTS: readonly (readonly [name: string, body: string])[] = [
  ["an error in JSON", '{"message":"Not Found","status":"404"}\n'],
  ["an error as text", "404: Not Found"],
  ["a word", "error"],
  ["a page without a head", '<div class="portal">\nportal.example\n</div>\n'],
  ["prose with a name in it", "Welcome to the network.\nPlease sign in at\nportal.example\n"],
  ["nothing", ""],
  ["comments", "! Title: gone\n# nothing\n"],
  ["hosts of the host itself", "127.0.0.1 localhost\n::1 ip6-localhost\n"],
  ["forms that are not read", "example.org##.banner\n||ads.example^$third-party\n"],
];

Deno.test("svc run keeps a list's rules from a text without a rule", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using server = await ListServer.start();
  server.handlers.set("/list", text("||good.example^\n"));
  const directory = await Deno.makeTempDir({ prefix: "svc-e2e-lists-" });
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  await Deno.mkdir(`${directory}/lists`);
  const own = `${directory}/lists/own.txt`;
  await Deno.writeTextFile(own, "own.example\n");
  const config = {
    upstream: [{ address: upstream.text }],
    filter: {
      lists: [{ name: "List", url: server.url("list") }, { name: "Own", path: "lists/own.txt" }],
    },
  };
  {
    await using service = await Service.start({ directory, config });
    const api = await Api.of(service);
    await until("the first text", () => isBlocked(service, "good.example"));
    for (const [index, [name, body]] of NO_LISTS.entries()) {
      await t.step(name, async () => {
        server.handlers.set("/list", text(body));
        // What the user writes is no message of a server's: a name among words is a rule.
        await Deno.writeTextFile(own, /^(?:error$|Welcome)/.test(body) ? "" : body);
        const url = server.url(`first${index}`);
        server.handlers.set(`/first${index}`, text(body));
        const first = await api.call("POST", "lists", { name, url });
        assert.equal((await api.call("POST", "lists/refresh")).finished, true);
        for (const blocked of ["good.example", "own.example"]) {
          assert(await isBlocked(service, blocked), blocked);
        }
        const { status } = await listNamed(api, "List");
        assert.deepEqual([status.state, status.rules], ["failed", 1]);
        assert.match(status.message ?? "", /no rules in it|prose|HTML page/);
        assert.match(status.message ?? "", /stays in use$/);
        const made = (await api.call("GET", `lists/${first.id}`)).status;
        assert.deepEqual([made.state, made.rules], ["failed", 0], made.message);
        await api.call("DELETE", `lists/${first.id}`);
      });
    }
    const { status } = await listNamed(api, "Own");
    assert.match(status.message ?? "", /own\.txt: no rules in it.*stays in use$/);
    await service.stop();
  }
  await t.step("and so after a restart", async () => {
    await using service = await Service.start({ directory, config });
    for (const blocked of ["good.example", "own.example"]) {
      assert(await isBlocked(service, blocked), blocked);
    }
  });
});

Deno.test("svc run lets no slow list server hold up the others", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using server = await ListServer.start();
  for (const name of ["slow", "slow1", "slow2", "slow3", "slow4"]) {
    server.handlers.set(`/${name}`, hangs);
  }
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      filter: {
        lists: ["slow", "a", "b", "c", "d", "e"].map((name) => ({ name, url: server.url(name) })),
      },
    },
  });
  const api = await Api.of(service);
  await t.step("they are there while it hangs", async () => {
    await until("the last list", () => isBlocked(service, "e.example"));
    assert.equal(server.count("slow"), 1);
    const { status } = await listNamed(api, "slow");
    assert.equal(status.state, "pending");
    assert.deepEqual(
      { ...status.downloading, started_at: "" },
      { bytes: 16, total_bytes: 100_000, started_at: "" },
    );
  });
  await t.step("ten refreshes ask the slow server once more", async () => {
    const ids = new Map<string, string>();
    for (const { spec, id } of (await api.call("GET", "lists")).items) ids.set(spec.name, id);
    const quick = ["a", "b", "c", "d", "e"];
    const sent = Array.from({ length: 10 }, () => api.call("POST", "lists/refresh"));
    await until("the refreshes", async () => {
      const { items } = await api.call("GET", "audit?limit=100");
      return items.filter(({ action }: { action: string }) => action === "refresh").length === 10;
    });
    await until("the others", () => quick.every((name) => server.count(name) >= 2));
    const released = new Promise<void>((resolve) => {
      server.handlers.set("/slow", (response) => {
        response.end("||slow.example^\n");
        resolve();
      });
    });
    // Its first download ends at last, badly; the ten asked for one more.
    server.endOpen();
    await released;
    const answers = await Promise.all(sent);
    for (const { finished, started, loading } of answers) {
      assert.equal(finished, true);
      assert.equal(started.length + loading.length, 6);
      assert(loading.includes(ids.get("slow")));
    }
    const started = new Set(answers.flatMap((answer) => answer.started));
    assert.deepEqual([...started].toSorted(), quick.map((name) => ids.get(name)).toSorted());
    assert.equal(server.count("slow"), 2);
    assert(await isBlocked(service, "slow.example"));
  });
  await t.step("four are downloaded at once, and a deleted one ends at once", async () => {
    const made: string[] = [];
    for (const name of ["slow1", "slow2", "slow3", "slow4", "f"]) {
      made.push((await api.call("POST", "lists", { name, url: server.url(name) })).id);
    }
    await until("four downloads", () => server.open === DOWNLOADS_MAX);
    assert.equal(server.count("f"), 0);
    await api.call("DELETE", `lists/${made[0]}`);
    await until("the next in turn", async () => (await listNamed(api, "f")).status.rules === 1);
    const { spec } = await api.call("GET", `lists/${made[1]}`);
    await api.call("PUT", `lists/${made[1]}`, { ...spec, enabled: false });
    await until("the end of one that is turned off", () => server.open === 2);
    await api.call("PUT", `lists/${made[2]}`, { name: "moved", url: server.url("moved") });
    await until("another place", async () => (await listNamed(api, "moved")).status.rules === 1);
    assert.equal(server.open, 1);
    await api.call("DELETE", `lists/${made[3]}`);
    await until("the end of all", () => server.open === 0);
    for (const name of ["slow1", "slow2", "slow3", "slow4"]) assert.equal(server.count(name), 1);
    assert(server.openMax <= DOWNLOADS_MAX, `${server.openMax} at once`);
    assert.deepEqual((await api.call("GET", "status")).problems, []);
  });
  await t.step("a stop ends what is under way", async () => {
    await api.call("POST", "lists", { name: "last", url: server.url("slow1") });
    await until("the download", () => server.open === 1);
    assert.equal((await service.stop()).code, 0);
    await until("its end", () => server.open === 0);
    service.assertCalm();
  });
});

Deno.test("svc run says at once that a list was never loaded, and tries again within seconds", {
  permissions: PERMISSIONS,
}, async () => {
  await using upstream = await FakeUpstream.start();
  await using server = await ListServer.start();
  let healthy = false;
  server.handlers.set("/late", (response) => {
    if (healthy) response.end("||late.example^\n");
    else response.writeHead(503).end();
  });
  const filter = { lists: [{ name: "Late", url: server.url("late") }] };
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }], filter },
  });
  const api = await Api.of(service);
  const health = async () => (await api.call("GET", "health")).status;
  await until("the failure", async () => (await listNamed(api, "Late")).status.state === "failed");
  const { problems } = await api.call("GET", "status");
  assert.match(problems.join("\n"), /Late: nothing of it is filtered yet: .* answered 503/);
  assert.match(problems.join("\n"), /filter: no group has a rule/);
  assert.equal(await health(), "degraded");
  healthy = true;
  await until("the next try", () => isBlocked(service, "late.example"));
  assert.deepEqual((await api.call("GET", "status")).problems, []);
  assert.equal(await health(), "ok");
});
