// Goal: what the dashboard stands on works on a running service: rules that end, pauses, drafts, events,
// pages, counts by client, addresses seen, profiles, roles and sessions. Method: one service between
// dig, curl and an upstream; names, rules and users are the test's.
import assert from "node:assert/strict";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { lookUp } from "./clients.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { hasProgram, PERMISSIONS, runProgram, Service, until } from "./harness.ts";

const HAS_PROGRAMS = hasProgram("dig") && hasProgram("curl");
const PASSWORD = "correct horse battery";

/** Reads server-sent events of `curl` until one holds the text. */
async function eventsWith(
  text: string,
  url: string,
  work: () => Promise<unknown>,
): Promise<string> {
  const curl = new Deno.Command("curl", { args: ["-sN", url], stdout: "piped" }).spawn();
  const reader = curl.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  let hasBegun = false;
  try {
    while (!seen.includes(text)) {
      const { done, value } = await reader.read();
      assert.ok(!done, `the stream ended: ${seen}`);
      seen += value;
      if (!hasBegun) await work();
      hasBegun = true;
    }
  } finally {
    curl.kill();
    await reader.cancel();
    await curl.status;
  }
  return seen;
}

Deno.test({
  name: "the dashboard has what it needs of a running service",
  permissions: PERMISSIONS,
  ignore: !HAS_PROGRAMS,
  fn: async (t) => {
    await using upstream = new AsyncDisposableStack();
    const fake = upstream.adopt(await FakeUpstream.start(address), (one) => one.close());
    await using service = await Service.start({
      config: { upstream: [{ address: fake.text }] },
    });
    const api = await Api.of(service);
    const client = await api.create("clients", { name: "here", addresses: ["127.0.0.1"] });
    const isBlocked = async (name: string) =>
      /\b0\.0\.0\.0\b/.test(await lookUp("dig", service.address, `${name} A`));

    await t.step("a rule for one client ends at its time", async () => {
      const expires_at = new Date(Date.now() + 2_000).toISOString();
      const rule = { rule: "||ends.example^", clients: [client], expires_at };
      await api.create("rules", rule);
      assert.equal(await isBlocked("ends.example"), true);
      await until("it has ended", async () => !(await isBlocked("ends.example")));
      assert.ok(Date.now() >= Date.parse(expires_at), "not before");
      const gone = await api.call("DELETE", `clients/${client}`);
      // While the rule is there, whether in force or not, the client is in use.
      assert.match(String(gone?.error?.message ?? "used by no rule"), /is used by|used by no rule/);
    });
    await t.step("a pause of a group ends at its time", async () => {
      await api.create("rules", { rule: "||ads.example^" });
      assert.equal(await isBlocked("ads.example"), true);
      const { spec } = await api.call("GET", `groups/${DEFAULT_GROUP}`);
      const paused_until = new Date(Date.now() + 2_000).toISOString();
      await api.call("PUT", `groups/${DEFAULT_GROUP}`, { ...spec, paused_until });
      assert.equal(await isBlocked("ads.example"), false);
      await until("it is over", () => isBlocked("ads.example"));
    });
    await t.step("a draft says what would be", async () => {
      const question = { name: "ads.example", group: DEFAULT_GROUP };
      const allow = { ...question, draft: ["@@||ads.example^$important"] };
      assert.equal((await api.call("POST", "explain", question)).outcome, "blocked");
      assert.equal((await api.call("POST", "explain", allow)).outcome, "forwarded");
      const bad = await api.call("POST", "explain", { ...question, draft: ["||a", "||^"] });
      assert.deepEqual([bad.status, bad.error.details[0].path], [422, "draft[1].rule"]);
      assert.equal(await isBlocked("ads.example"), true);
    });
    await t.step("events tell of a change and of the status", async () => {
      const seen = await eventsWith("event: change", `${api.base}/events`, async () => {
        await api.create("rules", { rule: "||told.example^" });
      });
      assert.match(seen, /^event: status\ndata: \{"version":/);
      assert.match(seen, /data: \{"type":"rule","id":"ru_[0-9a-f]{16}","revision":1\}/);
    });
    await t.step("hostile names come whole, by the page, compressed", async () => {
      const names = ["<script>alert(1)</script>", "'; DROP TABLE clients; --", "a\u0301 ½ {{x}}"];
      for (const [i, name] of names.entries()) {
        await api.create("clients", { name, addresses: [`192.0.2.${i + 1}`] });
      }
      for (const name of names) {
        const found = await api.call("GET", `clients?q=${encodeURIComponent(name)}`);
        assert.deepEqual(found.items.map((one: { spec: { name: string } }) => one.spec.name), [
          name,
        ]);
      }
      const page = await api.call("GET", "clients?limit=2");
      const rest = await api.call("GET", `clients?limit=9&next=${page.next}`);
      assert.deepEqual([page.items.length, rest.items.length, rest.next], [2, 2, null]);
      const { stdout } = await runProgram(
        "curl",
        "-sS",
        "-i",
        "--compressed",
        `${api.base}/openapi.json`,
      );
      assert.match(stdout, /^content-encoding: gzip\r$/im);
      assert.match(stdout, /"openapi":"3\.1\.0"/);
    });
    await t.step("what was asked is counted by client, step and name", async () => {
      const stats = await api.call("GET", `stats?hours=1&step=1m&client=${client}`);
      assert.equal(stats.series.length, 60);
      assert.ok(stats.total > 0 && stats.latency.p50_ms !== null);
      const all = await api.call("GET", "stats?hours=1");
      assert.deepEqual(
        [all.top.clients[0].client, all.top.clients[0].address, all.top.lists[0].name],
        [client, "127.0.0.1", "rules"],
      );
      assert.equal(all.upstreams[0].address, fake.text);
      const { names } = await api.call("GET", "querylog?distinct=name&outcome=blocked,forwarded");
      assert.ok(
        names.some((one: { name: string; count: number }) =>
          one.name === "ads.example" && one.count > 2
        ),
      );
      const { entries: [entry] } = await api.call("GET", "querylog?limit=1&list=rules&type=a");
      assert.equal(entry.outcome, "blocked");
      const { items } = await api.call("GET", "clients/seen?known=true");
      assert.deepEqual([items[0].address, items[0].client], ["127.0.0.1", client]);
      assert.deepEqual((await api.call("GET", "clients/seen?known=false")).items, []);
      const series = await api.call("GET", `clients/series?clients=${client},cl_gone`);
      assert.deepEqual(series.items.map((one: { client: string }) => one.client), [client]);
      assert.deepEqual([series.active.length, series.items[0].queries.length], [24, 24]);
      assert.ok(series.active.at(-1) + series.active.at(-2) >= 1); // An hour may have gone by.
      const sum = (counts: number[]) => counts.reduce((all, count) => all + count, 0);
      assert.equal(sum(series.items[0].queries), items[0].queries);
      const many = Array.from({ length: 101 }, (_, i) => `cl_${i}`).join(",");
      assert.equal((await api.call("GET", `clients/series?clients=${many}`)).status, 400);
      assert.equal((await api.call("GET", "clients/series?hours=25")).status, 400);
      assert.equal((await api.call("GET", "stats?hours=25&step=1m")).status, 400);
    });
    await t.step("a stream goes on behind an entry", async () => {
      const { entries } = await api.call("GET", "querylog?limit=3");
      const url = `${api.base}/querylog/stream`;
      const args = ["-sN", "-H", `Last-Event-ID: ${entries[2].id}`, "--max-time", "2", url];
      const { stdout } = await new Deno.Command("curl", { args }).output();
      const ids = [...new TextDecoder().decode(stdout).matchAll(/^id: (.*)$/gm)].map(([, id]) =>
        id
      );
      assert.deepEqual(ids, [entries[1].id, entries[0].id]);
    });
    await t.step("nobody is signed in, and a phone has nothing to connect to", async () => {
      assert.deepEqual(await api.call("GET", "auth/state"), { setup: true, token: false });
      assert.equal((await api.call("POST", "profiles", { client_id: "tv" })).status, 409);
      assert.equal((await fetch(`${api.base}/profiles/nonsense`)).status, 404);
      const { encrypted, addresses, problem_items } = await api.call("GET", "status");
      assert.deepEqual([encrypted, problem_items], [null, []]);
      assert.ok(
        addresses.every((one: { address: string }) => /^(127\.|\[::1\])/.test(one.address)),
      );
    });
    await t.step("a viewer reads, and ends their own sessions", async () => {
      for (const [name, role] of [["ann", "admin"], ["bob", "viewer"]] as const) {
        const made = await fetch(`${api.base}/users`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            // The first user is made by nobody.
            ...(role === "viewer" && { cookie: await signIn(api, "ann") }),
          },
          body: JSON.stringify({ name, role, password: PASSWORD }),
        });
        assert.equal(made.status, 201, await made.text());
      }
      const [first, second] = [await signIn(api, "bob"), await signIn(api, "bob")];
      const status = async (line: string, body?: unknown) => {
        const [method, path] = line.split(" ");
        const json = { "content-type": "application/json" };
        const response = await fetch(`${api.base}/${path}`, {
          method,
          headers: { cookie: first, ...(body !== undefined && json) },
          body: body === undefined ? null : JSON.stringify(body),
        });
        await response.body?.cancel();
        return response.status;
      };
      assert.equal(await status("POST explain", { name: "ads.example" }), 200);
      assert.equal(await status("GET events"), 200);
      assert.equal(await status("GET clients/seen"), 200);
      assert.equal(await status("POST lists/preset", { preset: "balanced" }), 403);
      assert.equal(await status("POST profiles", {}), 403);
      const read = await fetch(`${api.base}/auth/sessions`, { headers: { cookie: first } });
      const text = await read.text();
      const { items } = JSON.parse(text);
      assert.deepEqual(items.map((one: { current: boolean }) => one.current), [true, false]);
      for (const cookie of [first, second]) assert.ok(!text.includes(cookie.split("=")[1]));
      assert.equal(await status(`DELETE auth/sessions/${items[1].id}`), 204);
      const me = await fetch(`${api.base}/auth/me`, { headers: { cookie: second } });
      assert.equal(me.status, 401);
      await me.body?.cancel();
      assert.equal(await status("DELETE auth/sessions"), 204);
      assert.equal(await status("GET auth/me"), 200);
    });
  },
});

async function signIn(api: Api, name: string): Promise<string> {
  const response = await fetch(`${api.base}/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, password: PASSWORD }),
  });
  assert.equal(response.status, 200, await response.text());
  return response.headers.get("set-cookie")!.split(";")[0];
}
