// Goal: a year by day, of all, of a client and of a group, through the API and as files that a
// spreadsheet may open, and through an upgrade. Method: a running service, dig, curl.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { PERMISSIONS, runProgram, Service, until } from "./harness.ts";

const YEAR = "stats?hours=8760&step=1d";

Deno.test("a year of statistics by day", { permissions: PERMISSIONS }, async (t) => {
  await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
  await using service = await Service.start({
    config: {
      upstream: [{ address: upstream.text }],
      filter: { rules: ["||ads.example^"] },
      querylog: { time_zone: "Pacific/Kiritimati" },
    },
  });
  const api = await Api.of(service);
  const kids = await api.create("groups", { name: "Kids" });
  const formula = '=HYPERLINK("http://evil.example")';
  await api.create("clients", { name: formula, addresses: ["127.0.0.8"], group: kids });
  const dig = async (from: string, name: string) => {
    const at = ["@127.0.0.1", "-b", from, "-p", `${service.address.port}`];
    await runProgram("dig", ...at, name, "+short");
  };
  const curl = async (path: string) => {
    const { stdout } = await runProgram("curl", "-sSi", `${api.base}/${path}`);
    const end = stdout.indexOf("\r\n\r\n");
    return { head: stdout.slice(0, end).toLowerCase(), body: stdout.slice(end + 4) };
  };
  const zone = new Intl.DateTimeFormat("sv", { timeZone: "Pacific/Kiritimati" });
  let before = "";
  const isToday = (date: string) => [before, zone.format(new Date())].includes(date);

  await t.step("by the calendar of the zone", async () => {
    before = zone.format(new Date());
    for (const from of ["127.0.0.1", "127.0.0.8", "127.0.0.8"]) await dig(from, "www.example");
    await dig("127.0.0.8", "ads.example");
    const { total, outcomes, series, previous, step } = await api.call("GET", YEAR);
    assert.deepEqual([total, outcomes.blocked, step, previous], [4, 1, "1d", null]);
    assert.equal(series.length, 365);
    const last = series.at(-1);
    assert.ok(isToday(last.date), last.date);
    assert.equal(new Date(last.time).toISOString().slice(11), "10:00:00.000Z");
  });

  await t.step("of a client and of a group", async () => {
    for (
      const who of ["client=127.0.0.8", `client=${encodeURIComponent(formula)}`, `group=${kids}`]
    ) {
      const { total, outcomes, top } = await api.call("GET", `${YEAR}&${who}`);
      assert.deepEqual([total, outcomes.blocked], [3, 1], who);
      assert.deepEqual(top.blocked, [{ name: "ads.example", count: 1 }]);
    }
    assert.equal((await api.call("GET", `${YEAR}&client=192.0.2.99`)).total, 0);
  });

  await t.step("too long for other steps", async () => {
    assert.equal((await api.call("GET", "stats?hours=8760")).status, 400);
    assert.equal((await api.call("GET", "stats?hours=8785&step=1d")).status, 400);
  });

  await t.step("as files", async () => {
    const file = YEAR.replace("stats?", "stats/export?");
    const series = await curl(file);
    assert.match(series.head, /content-type: text\/csv; charset=utf-8/);
    assert.match(series.head, /content-disposition: attachment; filename="statistics-series\.csv"/);
    const lines = series.body.trimEnd().split("\r\n");
    assert.match(lines[0], /^time,date,forwarded,recursed,cached,local,blocked,/);
    assert.equal(lines.length, 366);
    assert.ok(isToday(lines[365].split(",")[1]));
    const clients = await curl(`${file}&table=clients`);
    assert.match(clients.body, /^name,client,address,count\r\n"'=HYPERLINK\(""http:/);
    const json = await curl(`${file}&format=json`);
    assert.match(json.head, /filename="statistics\.json"/);
    assert.equal(JSON.parse(json.body).total, 4);
  });

  await t.step("through an upgrade", async () => {
    await service.upgrade();
    const next = await Api.of(service);
    await dig("127.0.0.8", "www.example");
    const total = async (of: string) => (await next.call("GET", `${YEAR}${of}`)).total;
    await until("the next log", async () => await total("") !== undefined); // It may yet be opened.
    assert.deepEqual([await total(`&group=${kids}`), await total("")], [4, 5]);
  });
});
