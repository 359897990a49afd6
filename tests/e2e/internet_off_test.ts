// Goal: who is blocked has no Internet, at once, and gets it back at once; local names go on. Method: the
// API of a running service, dig as two clients, and what explanation and query log say.
import assert from "node:assert/strict";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { PERMISSIONS, runProgram, Service, until } from "./harness.ts";

const ALL_WEEK = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

Deno.test("a group or a client without Internet", { permissions: PERMISSIONS }, async (t) => {
  await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }] },
  });
  const api = await Api.of(service);
  const kids = await api.create("groups", { name: "Kids" });
  const tv = await api.create("clients", { name: "TV", addresses: ["127.0.0.8"], group: kids });
  await api.create("records", { name: "nas.example", type: "A", value: "192.0.2.3" });
  const always = await api.create("schedules", {
    name: "Always",
    time_zone: "Europe/Berlin",
    windows: [{ days: ALL_WEEK, start: "00:00", end: "24:00" }],
  });
  const dig = async (from: string, name = "www.example", ...more: string[]) => {
    const at = ["@127.0.0.1", "-b", from, "-p", `${service.address.port}`];
    const { stdout } = await runProgram("dig", ...at, name, ...more);
    return stdout.trim();
  };
  const short = async (from: string, name = "www.example") => await dig(from, name, "+short");
  const change = async (path: string, fields: Readonly<Record<string, unknown>>) => {
    const { spec } = await api.call("GET", path);
    const { status, error } = await api.call("PUT", path, { ...spec, ...fields });
    assert.equal(status, undefined, JSON.stringify(error));
  };
  const both = async () => [await short("127.0.0.8"), await short("127.0.0.1")];

  await t.step("a group, and nobody else", async () => {
    assert.deepEqual(await both(), ["192.0.2.7", "192.0.2.7"]);
    await change(`groups/${kids}`, { blocked: true });
    assert.deepEqual(await both(), ["0.0.0.0", "192.0.2.7"]);
    assert.match(await dig("127.0.0.8"), /EDE: 15 \(Blocked\): \(the Internet is off/);
    assert.equal(await short("127.0.0.8", "nas.example"), "192.0.2.3");
    assert.equal(await short("127.0.0.8", "health.svc.test"), "127.0.0.1");
  });

  await t.step("whatever is paused or off", async () => {
    await api.call("PUT", "pause", { seconds: 60 });
    assert.deepEqual(await both(), ["0.0.0.0", "192.0.2.7"]);
    await api.call("DELETE", "pause");
    await api.set({ protection: false, block_response: "nxdomain" });
    assert.match(await dig("127.0.0.8"), /status: NXDOMAIN/);
    await api.set({ protection: true, block_response: "null_ip" });
  });

  await t.step("explanation and log say so", async () => {
    const { outcome, rule, list } = await api.call(
      "GET",
      "explain?name=www.example&client=127.0.0.8",
    );
    assert.deepEqual([outcome, rule, list], ["blocked", "the Internet is off", "off"]);
    await until("the log", async () => {
      const { entries } = await api.call("GET", "querylog?outcome=blocked&limit=1");
      return entries[0]?.list === "off" && entries[0].rule === "the Internet is off" &&
        entries[0].client_name === "TV";
    });
  });

  await t.step("until a pause is over", async () => {
    const blocked_paused_until = new Date(Date.now() + 3_000).toISOString();
    await change(`groups/${kids}`, { blocked_paused_until });
    await until("its end", async () => await short("127.0.0.8") === "0.0.0.0");
    assert.ok(Date.now() >= Date.parse(blocked_paused_until), "not before it");
    await change(`groups/${kids}`, { blocked: false, blocked_paused_until: null });
    assert.deepEqual(await both(), ["192.0.2.7", "192.0.2.7"]);
  });

  await t.step("one client, by a schedule that stays as long as it is used", async () => {
    await change(`clients/${tv}`, { blocked: true, blocked_schedule: always });
    assert.deepEqual(await both(), ["0.0.0.0", "192.0.2.7"]);
    const { status, error } = await api.call("DELETE", `schedules/${always}`);
    assert.equal(status, 409);
    assert.match(error.message, new RegExp(`is used by ${tv} \\(TV\\)`));
    const windows = [{
      days: [ALL_WEEK[(new Date().getUTCDay() + 2) % 7]],
      start: "11:00",
      end: "11:01",
    }];
    await change(`schedules/${always}`, { windows });
    assert.deepEqual(await both(), ["192.0.2.7", "192.0.2.7"]);
    await change(`clients/${tv}`, { blocked: false });
  });

  await t.step("those not known, by the default group", async () => {
    await change(`groups/${DEFAULT_GROUP}`, { blocked: true });
    assert.deepEqual(await both(), ["192.0.2.7", "0.0.0.0"]);
  });

  await t.step("no schedule that is not there", async () => {
    const spec = { name: "X", blocked: true, blocked_schedule: "sc_0000000000000001" };
    const { status, error } = await api.call("POST", "groups", spec);
    assert.equal(status, 409);
    assert.match(error.message, /blocked_schedule: no schedule has the ID sc_0000000000000001/);
  });
});
