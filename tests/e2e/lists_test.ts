// Goal: lists hold from the first query on, whatever became of their servers or of the process before.
// Method: a list by path and one from an HTTP server on loopback, changed, broken and taken away.

import assert from "node:assert/strict";
import { type Message, Qtype, Rcode } from "../../src/dns/mod.ts";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { ask, askTcp, lookUp } from "./clients.ts";
import { address, FakeUpstream, type Seen } from "./fake_upstream.ts";
import { type ConfigText, hasProgram, PERMISSIONS, Service, until } from "./harness.ts";

const EDE_BLOCKED = 15;
const KILLS = 5;

const isBlocked = ({ answers, authorities }: Message) =>
  answers.some(({ data }) => data === "0.0.0.0" || data === "::") ||
  authorities.some(({ data }) => data.startsWith("svc.test"));

/** A list on an HTTP server, which can fail or go away. */
class ListServer {
  text = "";
  /** Texts of paths; every other path has `text`. */
  readonly texts = new Map<string, string>();
  status = 200;
  requests = 0;
  #server: Deno.HttpServer<Deno.NetAddr> | null = null;
  port = 0;

  start(): void {
    const onListen = () => {};
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: this.port, onListen }, (request) => {
      this.requests++;
      const text = this.texts.get(new URL(request.url).pathname) ?? this.text;
      const etag = `"${text.length}"`;
      if (this.status !== 200) return new Response("no", { status: this.status });
      if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304 });
      return new Response(text, { headers: { etag, "content-type": "text/plain" } });
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
  await t.step("a list that allows lets through what others block", async () => {
    const api = await Api.of(service);
    server.texts.set("/good.txt", "! what people need\n0.0.0.0 below.url.example\n");
    const spec = { name: "Good", url: `http://127.0.0.1:${server.port}/good.txt`, allows: true };
    const list = await api.create("lists", spec);
    const group = `groups/${DEFAULT_GROUP}`;
    const { spec: before } = await api.call("GET", group);
    await api.call("PUT", group, { ...before, lists: [...before.lists, { list }] });
    await until("the name is let through", async () => !await blocked("below.url.example"));
    assert(await blocked("other.url.example"));
    await api.call("PUT", `lists/${list}`, { ...spec, allows: false });
    await until("the name is blocked by both", () => blocked("below.url.example"));
    await api.call("PUT", group, before);
    await api.call("DELETE", `lists/${list}`);
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
    await until(
      "the new rules",
      async () => await blocked("later.example") && await blocked("more.example"),
    );
    assert(await blocked("url.example"));
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

/** The zone where it is between noon and one o'clock, at any time of any day. */
const noonZone = () => {
  const offset = 12 - new Date().getUTCHours();
  return `Etc/GMT${offset >= 0 ? "-" : "+"}${Math.abs(offset)}`;
};
const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

Deno.test("svc run blocks services by group and schedule, whatever lists and rules say", {
  permissions: PERMISSIONS,
  ignore: !hasProgram("dig"),
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using server = new ListServer();
  server.text = "||ads.example^\n||chat.example^$badfilter\n@@||chat.example^$important\n";
  server.texts.set(
    "/services.json",
    JSON.stringify({
      blocked_services: [
        { id: "chat", name: "Chat", rules: ["||chat.example", "/chat[0-9]/"], group: "messenger" },
        { id: "gone", name: "Gone", rules: ["||gone.example^$dnsrewrite=NXDOMAIN"] },
      ],
    }),
  );
  server.start();
  const url = `http://127.0.0.1:${server.port}`;
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      filter: {
        services: true,
        services_url: `${url}/services.json`,
        lists: [{ name: "Remote", url: `${url}/list.txt` }],
      },
    },
  });
  const api = await Api.of(service);
  const isChatBlocked = async () => {
    const told = await lookUp("dig", service.address, "+short www.chat.example A");
    return told.trim() === "0.0.0.0";
  };
  const { spec: group } = await api.call("GET", `groups/${DEFAULT_GROUP}`);
  const block = async (blocked_services: unknown[]) => {
    const put = await api.call("PUT", `groups/${DEFAULT_GROUP}`, { ...group, blocked_services });
    assert.equal(put.status, undefined, JSON.stringify(put));
  };

  await t.step("the catalogue is downloaded with the lists", async () => {
    await until("the services", async () => (await api.call("GET", "services")).items.length > 0);
    assert.deepEqual((await api.call("GET", "services")).items, [
      { id: "chat", name: "Chat", group: "messenger", rules: ["||chat.example"] },
    ]);
    await service.logged("services can be blocked", { services: 1, rules: 1 });
  });
  await t.step("a service is blocked while its group says so", async () => {
    assert(!await isChatBlocked());
    await block([{ service: "chat" }]);
    await until("the rules of services", isChatBlocked);
    await api.call("POST", "rules", { rule: "@@||chat.example^$important" });
    await api.call("POST", "rules", { rule: "||chat.example$badfilter" });
    assert(await isChatBlocked(), "no custom rule lifts it");
    await block([{ service: "unheard-of" }]);
    assert(!await isChatBlocked());
  });
  await t.step("and only while its schedule is active", async () => {
    const schedule = async (start: string, end: string) => {
      const windows = [{ days: DAYS, start, end }];
      const spec = { name: start, time_zone: noonZone(), windows };
      return (await api.call("POST", "schedules", spec)).id as string;
    };
    await block([{ service: "chat", schedule: await schedule("02:00", "03:00") }]);
    assert(!await isChatBlocked());
    await block([{ service: "chat", schedule: await schedule("10:00", "15:00") }]);
    assert(await isChatBlocked());
  });
  await t.step("pausing, and a group without filtering, let it through", async () => {
    await api.call("PUT", "pause", { seconds: 60 });
    assert(!await isChatBlocked());
    await api.call("DELETE", "pause");
    assert(await isChatBlocked());
    const put = { ...group, filtering: false, blocked_services: [{ service: "chat" }] };
    await api.call("PUT", `groups/${DEFAULT_GROUP}`, put);
    assert(!await isChatBlocked());
  });
  await t.step("a refresh without other rules compiles nothing", async () => {
    const since = new Date().toISOString();
    const { finished } = await api.call("POST", "lists/refresh");
    assert.equal(finished, true);
    // Lines of before may still be on their way; behind the end come none.
    await service.stop();
    const built = service.logs.filter(({ message }) => message === "filter built");
    assert(built.length > 0 && built.every(({ time }) => time < since), service.transcript());
  });
});

Deno.test("svc run renews lists over the API and shows the directory", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using upstream = await FakeUpstream.start();
  await using server = new ListServer();
  const { directory, config } = await prepare(server, upstream);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => Deno.remove(directory, { recursive: true }));
  const url = `http://127.0.0.1:${server.port}`;
  const downloadUrl = "https://lists.example/a.txt";
  server.texts.set(
    "/filters.json",
    JSON.stringify({ filters: [{ filterId: 7, name: "Seven", downloadUrl }] }),
  );
  const filter = { ...config.filter, directory: true, directory_url: `${url}/filters.json` };
  await using service = await Service.start({ directory, config: { ...config, filter } });
  const api = await Api.of(service);
  const listNamed = async (name: string) =>
    (await api.call("GET", "lists")).items.find((item: { spec: { name: string } }) =>
      item.spec.name === name
    );

  await t.step("POST lists/refresh", async () => {
    await until("the first text", async () => (await listNamed("Remote")).status.rules === 1);
    server.text = "||url.example^\n||newer.example^\n||no.example^$third-party\n";
    const { finished, items } = await api.call("POST", "lists/refresh");
    assert.equal(finished, true);
    const { status } = items.find((item: { spec: { name: string } }) =>
      item.spec.name === "Remote"
    );
    assert.deepEqual([status.state, status.message, status.rules, status.unsupported], [
      "ok",
      null,
      2,
      1,
    ]);
    assert(isBlocked(await ask(service.address, "newer.example", Qtype.A)));
  });
  await t.step("a list made over the API is fetched at once and joins no group", async () => {
    server.texts.set("/late.txt", "||late.example^\n");
    await api.call("POST", "lists", { name: "Late", url: `${url}/late.txt` });
    await until("its rules", async () => (await listNamed("Late")).status.rules === 1);
    assert(!isBlocked(await ask(service.address, "late.example", Qtype.A)));
  });
  await t.step("a list that can't be fetched says why", async () => {
    server.texts.set("/page", "<!doctype html><title>no list</title>");
    await api.call("POST", "lists", { name: "Page", url: `${url}/page` });
    await until("its failure", async () => (await listNamed("Page")).status.state === "failed");
    assert.match((await listNamed("Page")).status.message, /HTML page, not a list/);
  });
  await t.step("the directory is fetched on demand and kept", async () => {
    const { items, fetched_at } = await api.call("GET", "lists/directory");
    assert.deepEqual(items, [
      { id: "7", name: "Seven", description: "", url: downloadUrl, homepage: null, tags: [] },
    ]);
    server.texts.delete("/filters.json");
    const again = await api.call("GET", "lists/directory");
    assert.deepEqual([again.items, again.fetched_at], [items, fetched_at]);
    assert.deepEqual((await api.call("GET", "lists/directory/7")).urls, [downloadUrl]);
    assert.equal((await api.call("GET", "lists/directory/8")).status, 404);
  });
  assert.equal((await service.stop()).code, 0);
});

Deno.test("svc run begins a new node with the Balanced preset and waits for none of it", {
  permissions: PERMISSIONS,
}, async () => {
  // Answers every address with one of this machine on which nothing serves lists.
  await using upstream = await FakeUpstream.start();
  const config = {
    upstream: [{ address: upstream.text }],
    filter: { default_lists: true, rules: ["||custom.example^"] },
  };
  await using service = await Service.start({ config });
  assert(isBlocked(await ask(service.address, "custom.example", Qtype.A)));
  const api = await Api.of(service);
  const { items, presets } = await api.call("GET", "lists/recommended");
  assert.equal(items.length, 36);
  assert.deepEqual(presets[0].name, "Balanced");
  const balanced = items.filter((item: { presets: string[] }) => item.presets.includes("balanced"));
  const lists = (await api.call("GET", "lists")).items;
  // deno-lint-ignore no-explicit-any -- as the API answers
  const urls = (all: any[]) => all.map((item) => item.spec?.url ?? item.url);
  assert.deepEqual(urls(lists), urls(balanced));
  const { spec: group } = await api.call("GET", `groups/${DEFAULT_GROUP}`);
  assert.deepEqual(
    group.lists.map(({ list }: { list: string }) => list),
    lists.map(({ id }: { id: string }) => id),
  );
  assert.equal((await api.call("GET", "lists/directory")).status, 404);
  await until("a word about each list", async () => {
    const { problems } = await api.call("GET", "status");
    return problems.filter((text: string) => /nothing of it is filtered yet/.test(text)).length ===
      lists.length;
  });
  assert.equal((await api.call("GET", "health")).status, "degraded");
});

Deno.test("svc run asks its upstreams for list servers, past its own filter", {
  permissions: PERMISSIONS,
}, async () => {
  const asked = new Set<string>();
  await using upstream = await FakeUpstream.start((query: Seen) => {
    asked.add(query.name.toLowerCase());
    return address(query, "127.0.0.1");
  });
  const config = {
    upstream: [{ address: upstream.text }],
    // Nothing serves https there, which comes after the look-up.
    filter: {
      rules: ["||example^"],
      lists: [{ name: "Far", url: "https://lists.example:9/list.txt" }],
    },
  };
  await using service = await Service.start({ config });
  assert(isBlocked(await ask(service.address, "lists.example", Qtype.A)));
  const { problem } = await service.logged("list failed", { name: "Far" });
  assert.doesNotMatch(problem as string, /no address/);
  assert(asked.has("lists.example") || asked.has("lists.example."), [...asked].join());
});
