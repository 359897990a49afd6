// Goal: lists hold from the first query on, whatever became of their servers or of the process before.
// Method: a list by path and one from an HTTP server on loopback, changed, broken and taken away.

import assert from "node:assert/strict";
import { type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask, askTcp } from "./clients.ts";
import { FakeUpstream } from "./fake_upstream.ts";
import { type ConfigText, PERMISSIONS, Service, until } from "./harness.ts";

const EDE_BLOCKED = 15;
const KILLS = 5;

const isBlocked = ({ answers, authorities }: Message) =>
  answers.some(({ data }) => data === "0.0.0.0" || data === "::") ||
  authorities.some(({ data }) => data.startsWith("svc.test"));

/** A list on an HTTP server, which can fail or go away. */
class ListServer {
  text = "";
  status = 200;
  requests = 0;
  #server: Deno.HttpServer<Deno.NetAddr> | null = null;
  port = 0;

  start(): void {
    const onListen = () => {};
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: this.port, onListen }, (request) => {
      this.requests++;
      const etag = `"${this.text.length}"`;
      if (this.status !== 200) return new Response("no", { status: this.status });
      if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304 });
      return new Response(this.text, { headers: { etag, "content-type": "text/plain" } });
    });
    this.port = this.#server.addr.port;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    await server?.shutdown();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** A directory with the lists of these tests, and a configuration that names them. */
async function prepare(
  server: ListServer,
  upstream: FakeUpstream,
): Promise<{ directory: string; config: ConfigText; path: string }> {
  const directory = await Deno.makeTempDir({ prefix: "svc-e2e-lists-" });
  await Deno.mkdir(`${directory}/lists`);
  const path = `${directory}/lists/local.txt`;
  await Deno.writeTextFile(path, "0.0.0.0 path.example\n");
  server.text = "||url.example^\n";
  server.start();
  const config = {
    upstream: [{ address: upstream.text }],
    filter: {
      lists: [
        { name: "Local", path: "lists/local.txt" },
        { name: "Remote", url: `http://127.0.0.1:${server.port}/list.txt` },
      ],
      rules: ["||custom.example^", "@@||allowed.custom.example^"],
    },
  };
  return { directory, config, path };
}

Deno.test("svc run blocks by lists from paths and URLs, and reloads them on SIGHUP", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using server = new ListServer();
  const { directory, config, path } = await prepare(server, upstream);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  await using service = await Service.start({ directory, config });
  const at = service.address;
  const blocked = async (name: string) => isBlocked(await ask(at, name, Qtype.A));
  const edes = async (name: string) => {
    const { opt } = await ask(at, name, Qtype.A, { edns: {} });
    return opt?.errors.map(({ code, text }) => `${code} ${text}`);
  };

  await t.step("from the first query, by path and by rule", async () => {
    assert(await blocked("path.example"));
    assert(!await blocked("below.path.example"), "a hosts line covers its name alone");
    assert(await blocked("below.custom.example"));
    assert(!await blocked("allowed.custom.example"));
    assert(!await blocked("www.example"));
  });
  await t.step("once the URL is fetched", async () => {
    await until("the list of the URL", () => blocked("below.url.example"));
    assert.deepEqual(await edes("below.url.example"), [
      `${EDE_BLOCKED} ||url.example^ (Remote)`,
    ]);
    assert.deepEqual(await edes("path.example"), [`${EDE_BLOCKED} 0.0.0.0 path.example (Local)`]);
    assert.deepEqual(await edes("below.custom.example"), [
      `${EDE_BLOCKED} ||custom.example^ (custom rules)`,
    ]);
    assert.equal((await ask(at, "path.example", Qtype.A)).opt, null, "no EDNS for who sent none");
  });
  await t.step("negative answers carry an SOA", async () => {
    for (const exchange of [ask, askTcp]) {
      const { rcode, answers, authorities } = await exchange(at, "path.example", Qtype.TXT);
      assert.deepEqual([rcode, answers.length, authorities.length], [Rcode.NoError, 0, 1]);
      const [{ type, ttl, data }] = authorities;
      assert.deepEqual([type, ttl, data.split(" ").at(-1)], [Qtype.SOA, 10, "10"]);
    }
  });
  await t.step("SIGHUP", async () => {
    // An answer that is in the cache by now is blocked all the same.
    assert(!await blocked("later.example"));
    await Deno.writeTextFile(path, "0.0.0.0 later.example\n");
    server.text = "||url.example^\n||more.example^\n";
    service.kill("SIGHUP");
    await until("the new rules", () => blocked("later.example"));
    assert(await blocked("more.example") && await blocked("url.example"));
    assert(!await blocked("path.example"), "a rule that is gone holds no more");
  });
  await t.step("a server that fails takes no rule away", async () => {
    const { requests } = server;
    server.status = 500;
    service.kill("SIGHUP");
    await until("the failed request", () => server.requests > requests);
    await service.logged("list failed", { name: "Remote" });
    assert(await blocked("url.example") && await blocked("later.example"));
  });
  assert.equal((await service.stop()).code, 0);
  assert.equal(service.rest.join("\n"), "");
});

Deno.test("svc run loses no list to kill -9", { permissions: PERMISSIONS }, async () => {
  await using upstream = await FakeUpstream.start();
  await using server = new ListServer();
  const { directory, config } = await prepare(server, upstream);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  const blocked = async ({ address }: Service, name: string) =>
    isBlocked(await ask(address, name, Qtype.A));
  {
    await using service = await Service.start({ directory, config });
    await until("the list of the URL", () => blocked(service, "url.example"));
    service.kill("SIGKILL");
    await service.ended;
  }
  // Its server is gone: what is on disk is all there is.
  await server.stop();
  for (let i = 0; i < KILLS; i++) {
    await using service = await Service.start({ directory, config });
    for (const name of ["url.example", "path.example", "custom.example"]) {
      assert(await blocked(service, name), `${name} in the first queries of start ${i + 2}`);
    }
    // In the middle of whatever a reload does.
    service.kill("SIGHUP");
    await service.logged("reloading the lists");
    service.kill("SIGKILL");
    await service.ended;
  }
  server.start();
  server.text = "||url.example^\n||newest.example^\n";
  await using service = await Service.start({ directory, config });
  assert(await blocked(service, "url.example"));
  service.kill("SIGHUP");
  await until("the newest rules", () => blocked(service, "newest.example"));
  assert.equal((await service.stop()).code, 0);
});
