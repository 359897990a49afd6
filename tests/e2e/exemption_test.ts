// Goal: who is exempt from log or statistics is answered and filtered like others, and leaves no trace
// in what is exempt. Method: the API of a running service, dig as several clients, its files read as
// bytes, and its metrics.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { PERMISSIONS, runProgram, Service, until } from "./harness.ts";

const SEEN = "127.0.0.1";
/** In a group without either, without either itself, without log, without statistics. */
const [GROUPED, NEITHER, UNLOGGED, UNCOUNTED] = [
  "127.0.0.7",
  "127.0.0.8",
  "127.0.0.9",
  "127.0.0.10",
];

Deno.test(
  "clients and groups exempt from log or statistics",
  { permissions: PERMISSIONS },
  async (t) => {
    await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
    await using service = await Service.start({
      config: { upstream: [{ address: upstream.text }], filter: { rules: ["||ads.example^"] } },
    });
    const api = await Api.of(service);
    const group = await api.create("groups", { name: "Quiet", querylog: false, statistics: false });
    await api.create("clients", { name: "Grouped", addresses: [GROUPED], group });
    const changing = await api.create("clients", {
      name: "Neither",
      addresses: [NEITHER],
      querylog: false,
      statistics: false,
    });
    await api.create("clients", { name: "Unlogged", addresses: [UNLOGGED], querylog: false });
    await api.create("clients", { name: "Uncounted", addresses: [UNCOUNTED], statistics: false });
    const dig = async (from: string, name: string) => {
      const at = ["@127.0.0.1", "-b", from, "-p", `${service.address.port}`];
      const { stdout } = await runProgram("dig", ...at, name, "+short");
      return stdout.trim();
    };
    const log = async (query = "") => {
      const { entries } = await api.call("GET", `querylog?limit=100${query}`);
      return (entries as { name: string; client: string }[]).map((one) =>
        `${one.client} ${one.name}`
      );
    };
    /** Metrics count what was asked by dig alone: nothing else asks. */
    const counted = async () => {
      const lines = (await api.metrics()).matchAll(
        /^svc_queries_total\{.*protocol="udp"\} (\d+)$/gm,
      );
      return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
    };

    await t.step("they are answered and filtered, and metrics count them", async () => {
      const before = await counted();
      for (const [i, from] of [SEEN, GROUPED, NEITHER, UNLOGGED, UNCOUNTED].entries()) {
        assert.equal(await dig(from, `name${i}.example`), "192.0.2.7");
        assert.equal(await dig(from, "ads.example"), "0.0.0.0");
      }
      await until("the metrics", async () => await counted() === before + 10);
    });

    await t.step("the log has those that are not exempt from it", async () => {
      assert.deepEqual((await log()).toSorted(), [
        `${SEEN} ads.example`,
        `${SEEN} name0.example`,
        `${UNCOUNTED} ads.example`,
        `${UNCOUNTED} name4.example`,
      ]);
      const { items } = await api.call("GET", "clients/seen");
      const seen = (items as { address: string }[]).map((one) => one.address);
      assert.deepEqual(seen.toSorted(), [SEEN, UNCOUNTED]);
    });

    await t.step("statistics have those that are not exempt from them", async () => {
      const { total, top } = await api.call("GET", "stats?hours=2");
      assert.equal(total, 4);
      const names = (rows: { name: string }[]) => rows.map(({ name }) => name).toSorted();
      assert.deepEqual(names(top.names), ["ads.example", "name0.example", "name3.example"]);
      assert.deepEqual(names(top.clients), [SEEN, "Unlogged"]);
      assert.deepEqual(names(top.blocked_clients), [SEEN, "Unlogged"]);
      for (const query of ["step=10m", "step=1m", `client=${SEEN}`, `client=${UNCOUNTED}`]) {
        const counted = await api.call("GET", `stats?hours=2&${query}`);
        const want = { [`client=${SEEN}`]: 2, [`client=${UNCOUNTED}`]: 0 };
        assert.equal(counted.total, want[query] ?? 4, query);
      }
    });

    await t.step("an explanation says so", async () => {
      const told = async (client: string) => {
        const answer = await api.call("GET", `explain?name=ads.example&client=${client}`);
        return [answer.outcome, answer.querylog, answer.statistics];
      };
      assert.deepEqual(await told(SEEN), ["blocked", true, true]);
      assert.deepEqual(await told(GROUPED), ["blocked", false, false]);
      assert.deepEqual(await told(NEITHER), ["blocked", false, false]);
      assert.deepEqual(await told(UNLOGGED), ["blocked", false, true]);
      assert.deepEqual(await told(UNCOUNTED), ["blocked", true, false]);
    });

    await t.step("an exemption holds, and ends, at once", async () => {
      const { spec } = await api.call("GET", `clients/${changing}`);
      await api.call("PUT", `clients/${changing}`, { ...spec, querylog: true });
      await dig(NEITHER, "logged.example");
      assert.deepEqual(await log(`&client=${NEITHER}`), [`${NEITHER} logged.example`]);
      await api.call("PUT", `clients/${changing}`, { ...spec, querylog: false });
      await dig(NEITHER, "again.example");
      assert.deepEqual(await log(`&client=${NEITHER}`), [`${NEITHER} logged.example`]);
    });

    await t.step("a leak test is answered by who asked, exempt or not", async () => {
      const { id, names } = await api.call("POST", "leak-tests");
      await dig(GROUPED, names[0]);
      await until("the lookup", async () => {
        const { lookups } = await api.call("GET", `leak-tests/${id}`);
        return lookups[0]?.address === GROUPED;
      });
    });

    await t.step("what is no boolean is refused", async () => {
      const spec = { name: "X", addresses: ["127.0.0.99"], querylog: "no", statistics: 0 };
      const { status, error } = await api.call("POST", "clients", spec);
      assert.equal(status, 422);
      const paths = (error.details as { path: string }[]).map(({ path }) => path);
      assert.deepEqual(paths, ["querylog", "statistics"]);
    });

    await t.step("nothing of them is on disk, but names of those who are counted", async () => {
      await service.stop();
      const directory = `${service.directory}/store/querylog`;
      const bytes: string[] = [];
      for await (const { name, isFile } of Deno.readDir(directory)) {
        if (!isFile) continue;
        bytes.push(new TextDecoder("latin1").decode(await Deno.readFile(`${directory}/${name}`)));
      }
      const text = bytes.join("");
      for (const name of ["name0.example", "name3.example", "name4.example"]) {
        assert.ok(text.includes(name), name);
      }
      for (const name of ["name1.example", "name2.example", "again.example", GROUPED]) {
        assert.ok(!text.includes(name), name);
      }
    });
  },
);
