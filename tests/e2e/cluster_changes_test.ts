// Goal: whichever member is asked, what the members share is one configuration, and what is a node's own
// stays there. Method: two members as processes, a leader and one that only follows; everything that can
// be changed is changed through the follower, and looked for at the leader.
import assert from "node:assert/strict";
import { otpCode } from "../../src/auth/mod.ts";
import { Qtype } from "../../src/dns/mod.ts";
import { ask } from "./clients.ts";
import { PERMISSIONS, until } from "./harness.ts";
import { Members } from "./members.ts";

const COLLECTIONS = ["lists", "rules", "records", "groups", "clients", "schedules"] as const;
const PASSWORD = "a long enough password";
const [LEADER, FOLLOWER] = ["a", "b"];

interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- answers of every shape
  readonly json: any;
  /** Of a sign-in. */
  readonly cookie: string;
}

/** Two nodes alone: the first votes and leads, the other one follows. */
class Pair implements AsyncDisposable {
  /** Of whoever is signed in. */
  cookie = "";

  private constructor(readonly members: Members) {}

  static async start(): Promise<Pair> {
    const members = await Members.make(LEADER, FOLLOWER);
    // Lists of a path lie on one of them only.
    await Deno.mkdir(`${members.directory(FOLLOWER)}/lists`, { recursive: true });
    await Deno.writeTextFile(`${members.directory(FOLLOWER)}/lists/own.txt`, "||listed.example^\n");
    await members.start(LEADER);
    await members.start(FOLLOWER);
    const pair = new Pair(members);
    await until("a leader and a learner", async () => {
      const { problems, members: all } = await members.report(FOLLOWER);
      return problems.length === 0 && all.map(({ membership }) => membership).join() ===
          "voter,learner";
    });
    return pair;
  }

  async send(
    name: string,
    line: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const [method, path] = line.split(" ");
    const response = await fetch(`${this.members.api(name).base}/${path}`, {
      method,
      headers: { "content-type": "application/json", cookie: this.cookie, ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
    return { status: response.status, json: text === "" ? null : JSON.parse(text), cookie };
  }

  /** What must be answered with 2xx. */
  // deno-lint-ignore no-explicit-any -- answers of every shape
  async done(name: string, line: string, body?: unknown): Promise<any> {
    const { status, json } = await this.send(name, line, body);
    assert.ok(status >= 200 && status < 300, `${name}: ${line}: ${status} ${JSON.stringify(json)}`);
    return json;
  }

  /** All that is shared, as a member shows it; the state of a list is the member's own. */
  async shown(name: string): Promise<string> {
    const paths = [...COLLECTIONS, "settings", "users"];
    const all = await Promise.all(paths.map((path) => this.done(name, `GET ${path}`)));
    return JSON.stringify(all, (key, value) => key === "status" ? undefined : value);
  }

  /** Until the leader shows what the follower does. */
  async same(): Promise<void> {
    const want = await this.shown(FOLLOWER);
    await until("the leader to show the same", async () => await this.shown(LEADER) === want);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.members[Symbol.asyncDispose]();
  }
}

/** Creates one of each through the follower; their IDs. */
async function createAll(pair: Pair): Promise<Readonly<Record<string, string>>> {
  const make = async (collection: string, spec: unknown) =>
    (await pair.done(FOLLOWER, `POST ${collection}`, spec)).id as string;
  const lists = await make("lists", { name: "own", path: "own.txt" });
  const schedule = { days: ["sat", "sun"], start: "20:00", end: "22:00" };
  const schedules = await make("schedules", {
    name: "evenings",
    time_zone: "Europe/Berlin",
    windows: [schedule],
  });
  const groups = await make("groups", { name: "kids", lists: [{ list: lists }] });
  const clients = await make("clients", { name: "tv", addresses: ["192.0.2.7"], group: groups });
  const rules = await make("rules", { rule: "||ruled.example^", groups: [groups] });
  const record = { name: "nas.example", type: "A", value: "192.0.2.5" };
  const records = await make("records", record);
  return { lists, schedules, groups, clients, rules, records };
}

Deno.test("members share one configuration, whichever of them is asked", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using pair = await Pair.start();
  let made: Readonly<Record<string, string>> = {};

  await t.step("lists, rules, records, groups, clients and schedules are the same", async () => {
    made = await createAll(pair);
    await pair.same();
    const { answers } = await ask(pair.members.service(FOLLOWER).address, "nas.example", Qtype.A);
    assert.equal(answers.length, 1, "a change is in the answering member's DNS");
  });

  await t.step("settings are the same", async () => {
    const settings = await pair.done(FOLLOWER, "GET settings");
    await pair.done(FOLLOWER, "PUT settings", { ...settings, block_ttl: 77 });
    await pair.same();
    assert.equal((await pair.done(LEADER, "GET settings")).block_ttl, 77);
  });

  await t.step("If-Match means the same on every member", async () => {
    const path = `records/${made.records}`;
    const { revision, spec } = await pair.done(LEADER, `GET ${path}`);
    for (const name of [FOLLOWER, LEADER]) {
      const change = { ...spec, comment: name };
      const stale = await pair.send(name, `PUT ${path}`, change, { "if-match": `${revision - 1}` });
      assert.deepEqual([stale.status, stale.json.error.code], [412, "revision_mismatch"], name);
    }
    const match = { "if-match": `${revision}` };
    assert.equal((await pair.send(FOLLOWER, `PUT ${path}`, spec, match)).status, 200);
    assert.equal((await pair.send(FOLLOWER, `PUT ${path}`, spec, match)).status, 412);
    assert.equal((await pair.send(LEADER, `PUT ${path}`, spec, match)).status, 412);
  });

  await t.step("a refusal is the leader's, on the newest state", async () => {
    for (const name of [LEADER, FOLLOWER]) {
      const used = await pair.send(name, `DELETE groups/${made.groups}`);
      assert.deepEqual([used.status, used.json.error.code], [409, "conflict"], name);
      const none = await pair.send(name, "DELETE rules/ru_00000000000000ff");
      assert.deepEqual([none.status, none.json.error.code], [404, "not_found"], name);
    }
  });

  await t.step("a list by path is each node's own to have", async () => {
    const stateOn = async (name: string) =>
      (await pair.done(name, `GET lists/${made.lists}`)).status.state;
    await until("the list where its file is", async () => await stateOn(FOLLOWER) === "ok");
    await until("the list where it is not", async () => await stateOn(LEADER) === "skipped");
  });

  await t.step("a pause, a refresh and a leak test are the node's that was asked", async () => {
    await actsAlone(pair, LEADER);
  });

  await t.step("query log and statistics are the node's own", async () => {
    await ask(pair.members.service(FOLLOWER).address, "health.svc.test", Qtype.A);
    await ask(pair.members.service(FOLLOWER).address, "ruled.example", Qtype.A);
    await ask(pair.members.service(FOLLOWER).address, "nas.example", Qtype.A);
    const logged = async (name: string) =>
      (await pair.done(name, "GET querylog?name=ruled.example")).entries.length;
    await until("the query in the log", async () => await logged(FOLLOWER) > 0);
    assert.equal(await logged(LEADER), 0);
    const { nodes, unreachable } = await pair.done(LEADER, "GET stats?hours=1");
    assert.deepEqual([nodes, unreachable], [[LEADER], []]);
  });

  await t.step("audit entries name the caller and the member that was asked, on both", async () => {
    const entries = async (name: string) => {
      const { items } = await pair.done(name, "GET audit?type=record&limit=10");
      // deno-lint-ignore no-explicit-any -- an answer of the API
      return items.map(({ at, actor, action, node, after }: any) => ({
        ...{ at, kind: actor.kind, address: actor.address, action, node },
        revision: after?.revision,
      }));
    };
    const want = await entries(FOLLOWER);
    assert.ok(want.length >= 2);
    for (const { kind, address, node } of want) {
      assert.deepEqual([kind, address, node], ["unauthenticated", "127.0.0.1", FOLLOWER]);
    }
    await until(
      "the same entries on the leader",
      async () => JSON.stringify(await entries(LEADER)) === JSON.stringify(want),
    );
  });

  await t.step("everything that is made is deleted through the follower", async () => {
    for (const collection of ["rules", "clients", "groups", "lists", "schedules", "records"]) {
      await pair.done(FOLLOWER, `DELETE ${collection}/${made[collection]}`);
    }
    await pair.same();
  });

  await t.step("users, their passwords and second factors are the same", async () => {
    await signsInEverywhere(pair);
  });

  await t.step("a token lets in at every member, until it is revoked at one", async () => {
    const { id, token } = await pair.done(FOLLOWER, "POST tokens", { name: "car", role: "viewer" });
    const meAt = async (name: string) =>
      await pair.send(name, "GET auth/me", undefined, {
        cookie: "",
        authorization: `Bearer ${token}`,
      });
    await until("the token at the leader", async () => (await meAt(LEADER)).status === 200);
    assert.equal((await meAt(FOLLOWER)).json.name, "car");
    await pair.done(FOLLOWER, `DELETE tokens/${id}`);
    assert.equal((await meAt(FOLLOWER)).status, 401);
    await until("no token at the leader", async () => (await meAt(LEADER)).status === 401);
  });

  await t.step("without a leader all but changes works", async () => {
    await pair.members.kill(LEADER);
    await until("the leader to be missed", async () => {
      return (await pair.done(FOLLOWER, "GET cluster")).leader === null;
    });
    const { status, json } = await pair.send(FOLLOWER, "POST rules", { rule: "||x.example^" });
    assert.deepEqual([status, json.error.code], [503, "unavailable"]);
    assert.match(json.error.message, /no leader can be reached: a can't be reached/);
    await actsAlone(pair, null);
    const { nodes, unreachable } = await pair.done(FOLLOWER, "GET stats?hours=1&scope=cluster");
    assert.deepEqual([nodes, unreachable], [[FOLLOWER], [LEADER]]);
    const answer = await ask(pair.members.service(FOLLOWER).address, "health.svc.test", Qtype.A);
    assert.equal(answer.answers.length, 1);
    const signedIn = await pair.send(FOLLOWER, "POST auth/login", {
      name: "bob",
      password: PASSWORD,
    });
    assert.equal(signedIn.status, 200, "a session is the node's own");
  });
});

/** What the follower does by itself, and `other` does not follow. */
async function actsAlone(pair: Pair, other: string | null): Promise<void> {
  await pair.done(FOLLOWER, "PUT pause", { seconds: 600 });
  const pausedOn = async (name: string) => (await pair.done(name, "GET status")).paused_until;
  assert.notEqual(await pausedOn(FOLLOWER), null);
  if (other !== null) assert.equal(await pausedOn(other), null);
  await pair.done(FOLLOWER, "DELETE pause");
  await pair.done(FOLLOWER, "POST lists/refresh");
  const { id } = await pair.done(FOLLOWER, "POST leak-tests");
  await pair.done(FOLLOWER, `GET leak-tests/${id}`);
  if (other !== null) assert.equal((await pair.send(other, `GET leak-tests/${id}`)).status, 404);
}

/** Users made and changed through the follower can do at the leader what they should, and no more. */
async function signsInEverywhere(pair: Pair): Promise<void> {
  const user = { role: "admin", password: PASSWORD };
  await pair.done(FOLLOWER, "POST users", { ...user, name: "ann" });
  const signIn = async (node: string, name: string, more: object = {}, way = "login") =>
    await pair.send(node, `POST auth/${way}`, { name, password: PASSWORD, ...more });
  pair.cookie = (await signIn(FOLLOWER, "ann")).cookie;
  const { id } = await pair.done(FOLLOWER, "POST users", { ...user, name: "bob" });
  const { secret } = await pair.done(FOLLOWER, "POST auth/otp", { password: PASSWORD });
  const { recovery_codes: codes } = await pair.done(FOLLOWER, "POST auth/otp/confirm", {
    code: otpCode(secret, Date.now()),
  });
  await until("the leader to ask for the second factor", async () => {
    const { status, json } = await signIn(LEADER, "ann");
    return status === 401 && json.error.code === "otp_required";
  });
  const code = { recovery_code: codes[0] };
  const recovered = await signIn(FOLLOWER, "ann", code, "recovery");
  assert.equal(recovered.status, 200);
  pair.cookie = recovered.cookie;
  const again = await signIn(LEADER, "ann", code, "recovery");
  assert.equal(again.status, 401, "a code is good once, on whichever member");

  const { token } = await pair.done(FOLLOWER, `POST users/${id}/reset`);
  const password = "one that was forgotten";
  await pair.done(FOLLOWER, "POST auth/reset", { token, password });
  assert.equal((await pair.send(LEADER, "POST auth/reset", { token, password })).status, 401);
  const bob = await signIn(FOLLOWER, "bob", { password });
  const admin = pair.cookie;
  pair.cookie = bob.cookie;
  await pair.done(FOLLOWER, "PUT auth/password", { current: password, password: PASSWORD });
  await until("bob's own password on the leader", async () => {
    return (await signIn(LEADER, "bob")).status === 200;
  });
  pair.cookie = admin;
  // Sessions are the node's own: the leader is asked as somebody who signed in there.
  const shown = await signIn(LEADER, "bob");
  const users = await pair.send(LEADER, "GET users", undefined, { cookie: shown.cookie });
  assert.deepEqual(users.json, await pair.done(FOLLOWER, "GET users"));
}
