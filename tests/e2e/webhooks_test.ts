// Goal: what happens is told to receivers elsewhere, signed so that openssl agrees, once, and nowhere
// that it must not go. Method: the running service, receivers of the test's own, dig and curl; and two
// members of a cluster, one of which is killed. The steps wait side by side.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { address, answer, FakeUpstream } from "./fake_upstream.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  sideBySide,
  until,
} from "./harness.ts";
import { Members } from "./members.ts";

/** Where receivers are; nothing else of this machine is let through. */
const RECEIVERS = "127.0.0.2";
/** Longest wait for an event: what flickers, and who has just come, is not told at once. */
const EVENT_MS_MAX = 90_000;
const ALL = [
  ...["client_seen", "problem_began", "problem_ended", "list_failed", "sign_in_locked"],
  ...["member_lost", "member_back"],
];

interface Received {
  readonly headers: Headers;
  readonly text: string;
  // deno-lint-ignore no-explicit-any -- events of every kind
  readonly json: any;
}

/** Takes what is sent to it, as the test says. */
class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** The status of its answers; `null`: it gives none. */
  status: number | null = 200;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #never = Promise.withResolvers<Response>();

  constructor(hostname = RECEIVERS) {
    this.#server = Deno.serve({ hostname, port: 0, onListen: () => {} }, async (request) => {
      const text = await request.text();
      this.received.push({ headers: request.headers, text, json: JSON.parse(text) });
      if (this.status === null) return await this.#never.promise;
      const location = `http://127.0.0.1:${this.port}/elsewhere`;
      return new Response("secret of the receiver", { status: this.status, headers: { location } });
    });
  }

  get port(): number {
    return this.#server.addr.port;
  }

  get url(): string {
    const { hostname, port } = this.#server.addr;
    return `http://${hostname}:${port}/hook/SECRET-path`;
  }

  /** The first event of a kind that fits. */
  async event(kind: string, fits: (data: Received["json"]) => boolean = () => true) {
    const found = () => this.received.find(({ json }) => json.event === kind && fits(json.data));
    await until(`the event ${kind}`, () => found() !== undefined, EVENT_MS_MAX);
    return found()!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#never.resolve(new Response());
    await this.#server.shutdown();
  }
}

/** Adds a webhook; its ID and key. */
async function add(
  api: Api,
  name: string,
  url: string,
  events: readonly string[],
): Promise<{ id: string; key: string }> {
  const made = await api.call("POST", "webhooks", { name, url, events });
  assert.equal(typeof made.key, "string", JSON.stringify(made));
  return made;
}

async function isSignedBy(key: string, { headers, text }: Received): Promise<boolean> {
  const [, seconds, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers.get("svc-signature")!)!;
  await using own = await OwnDirectory.make();
  const path = `${own.path}/signed`;
  await Deno.writeTextFile(path, `${seconds}.${text}`);
  const { stdout } = await runProgram("openssl", "dgst", "-sha256", "-hmac", key, path);
  return stdout.trim().endsWith(mac);
}

/** A member that is killed is told by the leader. */
async function tellsOfMembers(): Promise<void> {
  await using receiver = new Receiver();
  await using members = await Members.make("a", "b");
  const webhooks = { networks: [RECEIVERS] };
  for (const name of ["a", "b"]) {
    await members.start(name, { config: { ...members.config(name), webhooks } });
  }
  await until("a member that learns", async () => {
    const { members: all } = await members.report("b");
    return all.some(({ membership }) => membership === "learner");
  });
  const { id } = await add(members.api("b"), "all", receiver.url, ALL);
  // Each sends what is its own, with its name.
  for (const name of ["a", "b"]) {
    await until(`the webhook at ${name}`, async () => {
      const { state } = await members.api(name).call("POST", `webhooks/${id}/test`);
      return state === "delivered";
    });
    await receiver.event("test");
    assert.ok(receiver.received.some(({ json }) => json.node === name), name);
  }
  await members.kill("b");
  const { json } = await receiver.event("member_lost");
  assert.deepEqual([json.node, json.data], ["a", { member: "b" }]);
}

Deno.test({
  name: "webhooks tell of what happens, signed, and go nowhere that they must not",
  ignore: !hasProgram("openssl") || !hasProgram("dig"),
  permissions: PERMISSIONS,
  fn: async (t) => {
    await using receiver = new Receiver();
    await using slow = new Receiver();
    await using forbidden = new Receiver("127.0.0.1");
    slow.status = null;
    await using upstream = await FakeUpstream.start((query) =>
      query.type === 1 ? address(query, "127.0.0.1") : answer(query)
    );
    await using own = await OwnDirectory.make();
    await using service = await Service.start({
      directory: own.path,
      config: {
        upstream: [{ address: upstream.text }],
        webhooks: { networks: [RECEIVERS] },
        // What it takes out of answers is to be refused without it as well.
        security: { rebinding_protection: false },
      },
    });
    const api = await Api.of(service);
    const hang = await add(api, "hang", slow.url, ALL);
    const home = await add(api, "home", receiver.url, ALL);
    const test = async (id: string) => await api.call("POST", `webhooks/${id}/test`);

    await t.step("the test button sends one event, and says what came of it", async () => {
      const told = await test(home.id);
      assert.deepEqual([told.event, told.state, told.status], ["test", "delivered", 200]);
      const sent = await receiver.event("test");
      assert.ok(await isSignedBy(home.key, sent), "openssl agrees");
      assert.ok(!await isSignedBy(hang.key, sent));
      assert.equal(sent.headers.get("svc-delivery"), sent.json.id);
      assert.doesNotMatch(JSON.stringify(told), /receiver|SECRET/);
      const audit = JSON.stringify(await api.call("GET", "audit?type=webhook"));
      assert.match(audit, /"action":"test"/);
      for (const secret of [home.key, hang.key, "SECRET-path"]) assert.ok(!audit.includes(secret));
      assert.ok(!JSON.stringify(await api.call("GET", "webhooks")).includes(home.key));
    });

    await t.step("it goes to no address that is not let through, and follows nobody", async () => {
      const { port } = forbidden;
      const places = [
        `http://127.0.0.1:${port}/`,
        `http://localhost:${port}/`,
        `http://2130706433:${port}/`,
        `http://[::ffff:127.0.0.1]:${port}/`,
        `http://rebound.example:${port}/`,
        "http://169.254.169.254/latest/meta-data/",
      ];
      for (const [i, url] of places.entries()) {
        const { id } = await add(api, `place ${i}`, url, ["list_failed"]);
        const { state, status, error } = await test(id);
        assert.deepEqual([state, status], ["failed", null], url);
        assert.match(error, /webhooks\.networks does not let it through$/, url);
      }
      receiver.status = 302;
      const { state, error } = await test(home.id);
      assert.deepEqual([state, error], ["failed", "it redirects, which is not followed"]);
      receiver.status = 200;
      assert.equal(forbidden.received.length, 0);
      const own = { name: "hook.home.arpa", type: "A", value: RECEIVERS };
      await api.create("records", own);
      const { id } = await add(
        api,
        "own",
        `http://hook.home.arpa:${receiver.port}/`,
        ["list_failed"],
      );
      assert.equal((await test(id)).state, "delivered", "records of one's own are known");
      await api.call("DELETE", `webhooks/${id}`);
      const bad = { name: "x", url: "ftp://x.example/", events: ["list_failed"] };
      assert.equal((await api.call("POST", "webhooks", bad)).status, 422);
    });

    await sideBySide(t, [
      ["a member of a cluster that is lost is told by the leader", tellsOfMembers],
      ["a list that can't be had is told, and its end, past a receiver that hangs", async () => {
        const list = await api.create("lists", { name: "Gone", path: "gone.txt" });
        const { json } = await receiver.event("list_failed", (data) => data.list === list);
        assert.match(json.data.message, /Gone/);
        await receiver.event("problem_began", ({ resource }) => resource === list);
        await api.call("DELETE", `lists/${list}`);
        await receiver.event("problem_ended", ({ resource }) => resource === list);
        const { items } = await api.call("GET", `webhooks/${hang.id}/deliveries`);
        assert.ok(items.some(({ state }: { state: string }) => state === "waiting"));
      }],
      ["a client that nobody knows is told once", async () => {
        const at = ["@127.0.0.1", "-p", `${service.address.port}`];
        await api.create("clients", { name: "known", addresses: ["127.0.0.8"] });
        for (const from of ["127.0.0.8", "127.0.0.9", "127.0.0.9"]) {
          await until(`a query from ${from}`, async () => {
            await runProgram("dig", "-b", from, ...at, "nas.example", "+tries=1");
            const { items } = await api.call("GET", "clients/seen");
            return items.some(({ address }: { address: string }) => address === from);
          });
        }
        await receiver.event("client_seen", (data) => data.address === "127.0.0.9");
        const seen = receiver.received.filter(({ json }) => json.event === "client_seen")
          .map(({ json }) => json.data.address);
        assert.ok(!seen.includes("127.0.0.8"), "one that is known");
        assert.equal(seen.filter((one) => one === "127.0.0.9").length, 1);
      }],
    ]);

    await t.step("a locked sign-in is told, and what was typed is not", async () => {
      const user = { name: "ann", role: "admin", password: "a long enough password" };
      await api.create("users", user);
      for (let i = 0; i < 5; i++) {
        await api.call("POST", "auth/login", { name: "Tr0ub4dor", password: "wrong" });
      }
      const { json, text } = await receiver.event("sign_in_locked");
      assert.deepEqual([json.data.address, json.data.user], ["127.0.0.1", null]);
      assert.doesNotMatch(text, /Tr0ub4dor/i);
    });

    await t.step(
      "what waits is dropped at the end, which the log says, and no secret",
      async () => {
        assert.equal((await service.stop()).code, 0);
        const { events } = await service.logged("webhooks that waited are dropped");
        assert.ok(Number(events) > 0);
        const transcript = service.transcript();
        for (const secret of [home.key, hang.key, "SECRET-path", "Tr0ub4dor"]) {
          assert.ok(!transcript.includes(secret), secret);
        }
      },
    );
    service.assertCalm();
  },
});
