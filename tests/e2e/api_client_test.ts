// Goal: a tool that knows the OpenAPI document and nothing else can do everything. Method: a client is
// generated from the document that the running service serves; it calls every operation, and every
// answer is held against the document's schema.

import assert from "node:assert/strict";
import Ajv2020 from "ajv/dist/2020.js";
import { Service } from "./harness.ts";

type Json = Record<string, unknown>;

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: Json;
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Json>> }>
  >;
}

interface Called {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- answers of every shape
  readonly body: any;
  readonly etag: string | null;
}

type Call = (parameters?: Readonly<Record<string, string>>, body?: unknown) => Promise<Called>;

/** A client with a function for each operation of an OpenAPI document. */
class GeneratedClient {
  readonly operations: Readonly<Record<string, Call>>;
  /** Operations that were called. */
  readonly called = new Set<string>();
  cookie: string | null = null;
  readonly #base: string;
  readonly #ajv = new Ajv2020.default({ strict: false, validateFormats: false });

  constructor(base: string, document: Json) {
    this.#base = base;
    this.#ajv.addSchema(document, "document");
    const calls: Record<string, Call> = {};
    const paths = document.paths as Record<string, Record<string, Operation>>;
    for (const [path, methods] of Object.entries(paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const pointer = [path, method].map((part) => part.replaceAll("/", "~1")).join("/");
        calls[operation.operationId] = (parameters, body) =>
          this.#call(method, path, `document#/paths/${pointer}`, operation, parameters ?? {}, body);
      }
    }
    this.operations = calls;
  }

  async #call(
    method: string,
    path: string,
    pointer: string,
    operation: Operation,
    parameters: Readonly<Record<string, string>>,
    body: unknown,
  ): Promise<Called> {
    this.called.add(operation.operationId);
    const url = new URL(this.#base + path);
    const headers = new Headers();
    for (const { name, in: place } of operation.parameters ?? []) {
      const value = parameters[name];
      if (value === undefined) continue;
      if (place === "path") url.pathname = url.pathname.replace(`%7B${name}%7D`, value);
      else if (place === "query") url.searchParams.set(name, value);
      else headers.set(name, value);
    }
    if (this.cookie !== null) headers.set("cookie", this.cookie);
    if (body !== undefined) headers.set("content-type", "application/json");
    const response = await fetch(url, {
      method: method.toUpperCase(),
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const cookie = response.headers.get("set-cookie");
    if (cookie !== null) this.cookie = cookie.split(";", 1)[0];
    const type = response.headers.get("content-type") ?? "";
    // A stream of events has no end: that it begins is what there is to see.
    const isEndless = type.startsWith("text/event-stream");
    if (isEndless) await response.body?.cancel();
    const text = isEndless ? "" : await response.text();
    const known = operation.responses[response.status];
    assert.ok(known !== undefined, `${operation.operationId}: ${response.status} ${text}`);
    const isJson = type.startsWith("application/json");
    const answer = isJson ? JSON.parse(text) : text;
    if (isJson && known.content !== undefined) {
      const place = `${pointer}/responses/${response.status}/content/application~1json/schema`;
      const isValid = this.#ajv.validate({
        $ref: place.replaceAll("{", "%7B").replaceAll("}", "%7D"),
      }, answer);
      assert.ok(isValid, `${operation.operationId}: ${this.#ajv.errorsText()}: ${text}`);
    }
    return { status: response.status, body: answer, etag: response.headers.get("etag") };
  }
}

const SPECS: readonly [thing: string, spec: Json, changed: Json][] = [
  ["Schedule", {
    name: "nights",
    time_zone: "Europe/Berlin",
    windows: [{ days: ["mon", "sun"], start: "22:00", end: "06:00" }],
  }, { name: "evenings" }],
  ["List", { name: "local", path: "none.txt" }, { comment: "not there yet" }],
  ["Rule", { rule: "||client.example^" }, { enabled: false }],
  ["Record", { name: "nas.home.arpa", type: "A", value: "192.168.1.5" }, { ttl: 60 }],
  ["Group", { name: "guests" }, { filtering: false }],
  ["Client", { name: "phone", addresses: ["192.0.2.7"] }, { ids: ["phone"] }],
];

Deno.test("a client generated from the document drives every endpoint", async () => {
  await using service = await Service.start({});
  const { listen } = await service.logged("serving the API");
  const [address] = listen as string[];
  const base = `http://${address}`;
  const document = await (await fetch(`${base}/api/v1/openapi.json`)).json();
  const client = new GeneratedClient(base, document);
  const { operations: api } = client;
  const ok = async (name: string, ...call: Parameters<Call>): Promise<Called> => {
    const answer = await api[name](...call);
    assert.ok(answer.status < 300, `${name}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  };

  for (const [thing, spec, changed] of SPECS) {
    const { body: made, etag } = await ok(`create${thing}`, {}, spec);
    const id = made.id as string;
    assert.equal(etag, (await ok(`get${thing}`, { id })).etag);
    assert.ok((await ok(`list${thing}s`)).body.items.some((item: Json) => item.id === id));
    const whole = { ...made.spec, ...changed };
    const put = await ok(`replace${thing}`, { id, "If-Match": etag! }, whole);
    assert.equal(put.body.revision, made.revision + 1);
    assert.equal((await api[`replace${thing}`]({ id, "If-Match": etag! }, whole)).status, 412);
    await ok(`delete${thing}`, { id, "If-Match": put.etag! });
    assert.equal((await api[`get${thing}`]({ id })).status, 404);
  }
  const { body: batch } = await ok("changeRules", {}, { add: [{ rule: "||batch.example^" }] });
  await ok("changeRules", {}, { remove: [batch.added[0].id] });
  const settings = await ok("getSettings");
  await ok("replaceSettings", { "If-Match": settings.etag! }, { ...settings.body, block_ttl: 30 });
  const { body: backup } = await ok("getBackup");
  const { body: restored } = await ok("restoreBackup", { dry_run: "true" }, backup);
  assert.deepEqual([restored.done, restored.items], [false, []]);
  for (
    const name of [
      "getHealth",
      "getStatus",
      "getMetrics",
      "listRecommendedLists",
      "getRecommendedSizes",
      "listServices",
      "searchQuerylog",
      "exportQuerylog",
      "watchQuerylog",
      "watchEvents",
      "getStatistics",
      "exportStatistics",
      "listAudit",
      "listClientsSeen",
      "listClientSeries",
      "getAuthState",
      "listLeakTests",
      "getCluster",
      "getDocument",
      "refreshLists",
      "flushCache",
      "checkUpdate",
      "resumeFiltering",
    ]
  ) await ok(name);
  // The configuration of the tests turns it off.
  assert.equal((await api.listDirectory()).status, 404);
  assert.equal((await api.getDirectoryList({ id: "1" })).status, 404);
  await ok("pauseFiltering", {}, { seconds: 1 });
  await ok("explainName", { name: "www.example", type: "AAAA", client: "192.0.2.7" });
  await ok("explainDraft", {}, { name: "www.example", draft: ["||www.example^"], without: [] });
  // It listens for nobody's encrypted queries, and made no profile.
  assert.equal((await api.createProfile({}, { client_id: "phone", protocol: "doh" })).status, 409);
  assert.equal((await api.getProfile({ id: "0".repeat(32) })).status, 404);
  const { body: group } = await ok("createGroup", {}, { name: "preset" });
  await ok("changeListsByPreset", {}, { preset: "balanced", groups: [group.id] });
  // Nobody listens at that port.
  const source = { product: "adguard", url: "http://127.0.0.1:1" };
  assert.equal((await api.migrateConfiguration({ dry_run: "true" }, source)).status, 503);
  const { body: test } = await ok("startLeakTest");
  await ok("getLeakTest", { id: test.id });
  assert.equal((await api.promoteNode({}, {})).status, 409);
  assert.equal((await api.demoteNode({}, { force: false })).status, 409);
  assert.equal((await api.removeMember({ node: "other" })).status, 404);

  const password = "correct horse battery";
  const { body: ann } = await ok("createUser", {}, { name: "ann", role: "admin", password });
  assert.equal((await api.getStatus()).status, 401, "a user exists: everybody signs in");
  await ok("signIn", {}, { name: "ann", password });
  await ok("getMe");
  const { body: sessions } = await ok("listSessions");
  assert.equal(sessions.items.length, 1);
  await ok("deleteOtherSessions");
  assert.equal((await api.deleteSession({ id: "0".repeat(16) })).status, 404);
  await ok("listUsers");
  const known = await ok("getUser", { id: ann.id });
  await ok("replaceUser", { id: ann.id, "If-Match": known.etag! }, { name: "ann", role: "admin" });
  const { body: bob } = await ok("createUser", {}, { name: "bob", role: "viewer", password });
  const { body: link } = await ok("resetUser", { id: bob.id });
  await ok("redeemReset", {}, { token: link.token, password: `${password}!` });
  await ok("disableUserOtp", { id: bob.id });
  await ok("deleteUser", { id: bob.id });
  const { body: token } = await ok("createToken", {}, { name: "phone", role: "viewer" });
  await ok("listTokens");
  await ok("getToken", { id: token.id });
  await ok("replaceToken", { id: token.id }, { name: "tablet", role: "viewer" });
  await ok("deleteToken", { id: token.id });
  const webhook = { name: "home", url: "http://127.0.0.1:1/", events: ["list_failed"] };
  const { body: { id } } = await ok("createWebhook", {}, webhook);
  await ok("listWebhooks");
  await ok("getWebhook", { id });
  await ok("replaceWebhook", { id }, { ...webhook, enabled: false });
  await ok("checkWebhook", { id });
  await ok("listWebhookDeliveries", { id });
  await ok("deleteWebhook", { id });
  await ok("beginOtp", {}, { password });
  assert.equal((await api.confirmOtp({}, { code: "000000" })).status, 401);
  await ok("removeOtp", {}, { password, code: "000000" }); // It was never confirmed.
  await ok("signIn", {}, { name: "ann", password }); // A changed factor ends sessions.
  const recovery = { name: "ann", password, recovery_code: "aaaaa-aaaaa-aaaaa" };
  assert.equal((await api.signInByRecoveryCode({}, recovery)).status, 401);
  await ok("changePassword", {}, { current: password, password: `${password}?` });
  await ok("signIn", {}, { name: "ann", password: `${password}?` });
  await ok("signOut");

  const missing = Object.keys(api).filter((name) => !client.called.has(name));
  assert.deepEqual(missing, []);
});
