// Goal: the specification's "Filtering" 9 to 18 and "Client identification" 1 and 2, as far as they are
// about groups, hold for whoever asks. Method: one running service, clients on addresses of loopback,
// groups, schedules and records over the API, an upstream that answers from a table.

import assert from "node:assert/strict";
import { DEFAULT_GROUP } from "../e2e/api.ts";
import { byRule, EMPTY, FilterBench, NULL_A, PLAIN, schedules } from "../e2e/filter_bench.ts";
import { PERMISSIONS, svcCommand, toml, until } from "../e2e/harness.ts";
import type { Zone } from "../e2e/zone.ts";

const OPTIONS = { permissions: PERMISSIONS } as const;
/** Clients: one that nobody knows, one of a filtered group, one of a group without filtering. */
const [UNKNOWN, KID, FREE] = ["127.0.0.1", "127.0.3.2", "127.0.3.3"];
const ZONE: Zone = {
  "target.example A": ["A 192.0.2.50"],
  "uncloak.example A": ["CNAME x.ads.example", "x.ads.example A 192.0.2.1"],
};
const CATALOGUE = {
  blocked_services: [
    {
      id: "chat",
      name: "Chat",
      rules: ["||chat.example^", "|chat-cdn.example^"],
      group: "messenger",
    },
    { id: "video", name: "Video", rules: ["||v*.video.example^", "||video.example^"], group: "tv" },
    {
      id: "unread",
      name: "Unread",
      rules: [
        "||a*.unread.example^",
        "||unread.example^$dnstype=A",
        "||u.example^$dnsrewrite=NXDOMAIN",
      ],
    },
  ],
  groups: [{ id: "messenger" }, { id: "tv" }],
};

/** Directory of a service with a list for all, one for kids and a catalogue of services. */
async function prepare(stack: AsyncDisposableStack): Promise<string> {
  const directory = await Deno.makeTempDir({ prefix: "svc-conformance-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  await Deno.mkdir(`${directory}/lists`);
  const write = (path: string, text: string) => Deno.writeTextFile(`${directory}/${path}`, text);
  await write("lists/all.txt", "||ads.example^\n@@||chat.example^$important\n");
  await write("lists/kids.txt", "||adult.example^\n");
  await write("lists/late.txt", "||late.example^\n");
  await write("services.json", JSON.stringify(CATALOGUE));
  return directory;
}

Deno.test("Filtering, 9 to 18: groups, services, safe search and records", OPTIONS, async (t) => {
  await using stack = new AsyncDisposableStack();
  const directory = await prepare(stack);
  await using bench = await FilterBench.start({
    directory,
    zone: ZONE,
    config: {
      filter: {
        lists: [{ name: "All", path: "lists/all.txt" }, { name: "Kids", path: "lists/kids.txt" }],
        rules: ["||custom.example^"],
        services: true,
        services_file: "services.json",
      },
    },
  });
  const { api } = bench;
  const step = (name: string, fn: () => Promise<void>) => t.step(name, fn);
  const blocked = (rule: string, list?: string) => `${NULL_A}; ${byRule(rule, list)}`;
  const [all, kids] = [await bench.list("All"), await bench.list("Kids")];
  const spec = schedules();
  const active = await api.create("schedules", spec.active);
  const idle = await api.create("schedules", spec.idle);
  const kidsGroup = await api.create("groups", { name: "kids", lists: [{ list: kids }] });
  const freeGroup = await api.create("groups", { name: "free", filtering: false });
  await api.create("clients", { name: "kid", addresses: [KID], group: kidsGroup });
  await api.create("clients", { name: "free", addresses: [FREE], group: freeGroup });

  await step(
    "9. unknown clients belong to the default group: every list, and the rules",
    async () => {
      const { spec } = await api.call("GET", `groups/${DEFAULT_GROUP}`);
      assert.deepEqual(spec.lists, [{ list: all }, { list: kids }]);
      assert.match(all, /^li_cfg_[0-9a-f]+$/);
      await bench.check([
        ["www.ads.example", blocked("||ads.example^", "All"), UNKNOWN],
        ["adult.example", blocked("||adult.example^", "Kids"), UNKNOWN],
        ["custom.example", blocked("||custom.example^"), UNKNOWN],
      ]);
    },
  );
  await step("9. it can be edited, not deleted", async () => {
    await bench.change({ lists: [{ list: all }], name: "everybody" });
    await bench.check([["adult.example", PLAIN], [
      "ads.example",
      blocked("||ads.example^", "All"),
    ]]);
    const { status, error } = await api.call("DELETE", `groups/${DEFAULT_GROUP}`);
    assert.deepEqual([status, error.code], [409, "conflict"]);
    await bench.change({ lists: [{ list: all }, { list: kids }] });
  });
  await step("10. lists created later join no group by themselves", async () => {
    const late = await api.create("lists", { name: "Late", path: "late.txt" });
    await until(
      "its rules",
      async () => (await api.call("GET", `lists/${late}`)).status.rules === 1,
    );
    await bench.check([["late.example", PLAIN, UNKNOWN], ["late.example", PLAIN, KID]]);
    await bench.change({ lists: [{ list: kids }, { list: late }] }, kidsGroup);
    await bench.check([
      ["late.example", blocked("||late.example^", "Late"), KID],
      ["late.example", PLAIN, UNKNOWN],
    ]);
    assert.equal((await api.call("DELETE", `lists/${late}`)).status, 409, "a group refers to it");
  });
  await step("11. custom rules apply to every group whose filtering is on", async () => {
    await bench.check([
      ["custom.example", blocked("||custom.example^"), KID],
      ["custom.example", PLAIN, FREE],
      ["ads.example", PLAIN, KID],
    ]);
  });
  await step(
    "12. filtering: false has no lists, rules, safe search or blocked services",
    async () => {
      const everything = {
        lists: [{ list: all }, { list: kids }],
        safe_search: true,
        blocked_services: [{ service: "chat" }],
      };
      await bench.change({ ...everything }, freeGroup);
      const names = ["ads.example", "adult.example", "chat.example", "www.bing.com", "yandex.ru"];
      await bench.check(names.map((name) => [name, PLAIN, FREE]));
      await bench.check([["uncloak.example", "NOERROR; CNAME x.ads.example; A 192.0.2.1", FREE]]);
    },
  );
  await step("13. a list or a service applies while its schedule is active", async () => {
    const at = (schedule: string) =>
      bench.change({
        lists: [{ list: kids, schedule }],
        blocked_services: [{ service: "chat", schedule }],
      }, kidsGroup);
    await at(idle);
    await bench.check([["adult.example", PLAIN, KID], ["chat.example", PLAIN, KID]]);
    await at(active);
    await bench.check([
      ["adult.example", blocked("||adult.example^", "Kids"), KID],
      ["chat.example", blocked("||chat.example^", "Chat"), KID],
      ["chat.example", PLAIN, UNKNOWN],
    ]);
    assert.equal((await api.call("DELETE", `schedules/${active}`)).status, 409);
    // The time of its windows is a change like any other.
    const { spec: before } = await api.call("GET", `schedules/${active}`);
    const { windows } = spec.idle;
    await api.call("PUT", `schedules/${active}`, { ...before, windows });
    await bench.check([["adult.example", PLAIN, KID]]);
    await api.call("PUT", `schedules/${active}`, before);
  });
  await step("14. a blocked service is blocked whatever lists and rules say", async () => {
    await bench.change(
      { lists: [{ list: all }], blocked_services: [{ service: "chat" }] },
      kidsGroup,
    );
    await bench.rules("@@||chat.example^$important", "||chat.example^$badfilter");
    const chat = blocked("||chat.example^", "Chat");
    await bench.check([
      ["chat.example", chat, KID],
      ["a.chat.example", chat, KID],
      ["chat-cdn.example", blocked("|chat-cdn.example^", "Chat"), KID],
      ["a.chat-cdn.example", PLAIN, KID],
    ]);
    const told = await api.call("GET", `explain?name=chat.example&client=${KID}`);
    assert.deepEqual([told.outcome, told.list], ["blocked", "service:chat"]);
  });
  await step("14. pausing, protection off and filtering: false let it through", async () => {
    const passes = () => bench.check([["chat.example", PLAIN, KID]]);
    await api.call("PUT", "pause", { seconds: 60 });
    await passes();
    await api.call("DELETE", "pause");
    await api.set({ protection: false });
    await passes();
    await api.set({ protection: true });
    await bench.change({ filtering: false }, kidsGroup);
    await passes();
    await bench.change({ filtering: true }, kidsGroup);
    await bench.check([["chat.example", blocked("||chat.example^", "Chat"), KID]]);
  });
  await step("14. an ID that the catalogue lacks blocks nothing", async () => {
    await bench.change({ blocked_services: [{ service: "unheard-of" }] }, kidsGroup);
    await bench.check([["chat.example", PLAIN, KID]]);
  });
  await step("15. rules that can't be read are left out, and services without any", async () => {
    const { items } = await api.call("GET", "services");
    assert.deepEqual(
      items.map(({ id, rules }: { id: string; rules: string[] }) => [id, rules]),
      [["chat", ["||chat.example^", "|chat-cdn.example^"]], ["video", ["||video.example^"]]],
    );
  });
  await step(
    "16. safe search leads six engines to their safe hosts, one to an address",
    async () => {
      await bench.change({ safe_search: true, blocked_services: [] }, kidsGroup);
      await bench.rules();
      const engines = [
        ["www.google.com", "forcesafesearch.google.com"],
        ["www.youtube.com", "restrict.youtube.com"],
        ["www.bing.com", "strict.bing.com"],
        ["duckduckgo.com", "safe.duckduckgo.com"],
        ["www.ecosia.org", "strict-safe-search.ecosia.org"],
        ["pixabay.com", "safesearch.pixabay.com"],
      ] as const;
      for (const [host, safe] of engines) {
        await bench.check([
          [host, `NOERROR; CNAME ${safe}; A 198.51.100.1`, KID],
          [host, PLAIN, UNKNOWN],
        ]);
        const told = await api.call("GET", `explain?name=${host}&client=${KID}`);
        assert.equal(told.outcome, "safe_search", host);
      }
      await bench.check([
        ["yandex.ru", "NOERROR; A 213.180.193.56", KID],
        ["yandex.ru AAAA", EMPTY, KID],
        ["yandex.ru", PLAIN, UNKNOWN],
      ]);
    },
  );
  await step("18. local records answer every client before the filter", async () => {
    await bench.rules("||home.example^", "||wild.example^$dnsrewrite=192.0.2.99");
    const record = (name: string, type: string, value: string) =>
      api.create("records", { name, type, value });
    await record("nas.home.example", "A", "192.0.2.40");
    await record("nas.home.example", "AAAA", "2001:db8::40");
    await record("*.wild.example", "A", "192.0.2.41");
    await record("alias.home.example", "CNAME", "target.example");
    await record("own.home.example", "CNAME", "nas.home.example");
    await bench.change({ safe_search: true }, kidsGroup);
    for (const client of [UNKNOWN, KID, FREE]) {
      await bench.check([
        ["nas.home.example A", "NOERROR; A 192.0.2.40", client],
        ["nas.home.example AAAA", "NOERROR; AAAA 2001:db8::40", client],
        ["a.b.wild.example", "NOERROR; A 192.0.2.41", client],
        ["alias.home.example", "NOERROR; CNAME target.example; A 192.0.2.50", client],
        ["own.home.example", "NOERROR; CNAME nas.home.example; A 192.0.2.40", client],
      ]);
    }
    await bench.check([
      ["other.home.example", blocked("||home.example^"), KID],
      ["other.home.example", PLAIN, FREE],
      ["wild.example", "NOERROR; A 192.0.2.99", KID],
    ]);
  });
  bench.service.assertCalm();
});

Deno.test("Client identification, 1 and 2: the group of a client", OPTIONS, async (t) => {
  await using bench = await FilterBench.start({
    config: { filter: { rules: ["||ads.example^"] } },
  });
  const { api } = bench;
  const group = (filtering: boolean) => api.create("groups", { name: `${filtering}`, filtering });
  const [free, filtered] = [await group(false), await group(true)];
  const client = (addresses: string[], group: string) =>
    api.create("clients", { name: addresses.join(), addresses, group });
  const blocked = `${NULL_A}; ${byRule("||ads.example^")}`;
  await client(["127.0.0.0/16"], free);
  await client(["127.0.4.0/24"], filtered);
  const exact = await client(["127.0.4.7"], free);

  await t.step("2. the longest of the networks that contain the address wins", () =>
    bench.check([
      ["ads.example", PLAIN, "127.0.0.1"],
      ["ads.example", blocked, "127.0.4.1"],
      ["ads.example", PLAIN, "127.0.4.7"],
    ]));
  await t.step(
    "2. unknown clients are in the default group",
    () => bench.check([["ads.example", blocked, "127.1.0.1"]]),
  );
  await t.step("2. a client that is gone or moved belongs elsewhere at once", async () => {
    await api.call("DELETE", `clients/${exact}`);
    await bench.check([["ads.example", blocked, "127.0.4.7"]]);
    await bench.change({ filtering: false }, filtered);
    await bench.check([["ads.example", PLAIN, "127.0.4.7"]]);
  });
  await t.step("a group that clients belong to is not deleted", async () => {
    assert.equal((await api.call("DELETE", `groups/${free}`)).status, 409);
  });
  bench.service.assertCalm();
});

Deno.test("Decisions, 6: the order in which a query is decided", OPTIONS, async (t) => {
  await using stack = new AsyncDisposableStack();
  const directory = await prepare(stack);
  await using bench = await FilterBench.start({
    directory,
    zone: ZONE,
    config: {
      filter: {
        lists: [{ name: "All", path: "lists/all.txt" }],
        services: true,
        services_file: "services.json",
      },
    },
  });
  const { api } = bench;
  const order = ["www.bing.com", "chat.example"];
  await bench.change({ safe_search: true, blocked_services: [{ service: "chat" }] });
  const safe = "NOERROR; CNAME strict.bing.com; A 198.51.100.1";
  // From the last to the first: what comes before it takes over each time.
  await t.step("8. cache and upstream", () => bench.check([["any.example", PLAIN]]));
  await t.step("7. safe search, which an exception does not lift", async () => {
    await bench.check([["www.bing.com", safe]]);
    await bench.rules("@@||www.bing.com^");
    await bench.check([["www.bing.com", safe]]);
  });
  await t.step("6. rules of lists and custom rules by rank, services before them", async () => {
    await bench.rules("||www.bing.com^", "@@||chat.example^$important");
    await bench.check([
      ["www.bing.com", `${NULL_A}; ${byRule("||www.bing.com^")}`],
      ["chat.example", `${NULL_A}; ${byRule("||chat.example^", "Chat")}`],
    ]);
    await bench.rules("||www.bing.com^", "@@||www.bing.com^");
    await bench.check([["www.bing.com", safe]]);
  });
  await t.step("5. $dnsrewrite", async () => {
    await bench.rules(...order.map((name, i) => `||${name}^$dnsrewrite=192.0.2.${i + 1}`));
    await bench.check(order.map((name, i) => [name, `NOERROR; A 192.0.2.${i + 1}`]));
  });
  await t.step("4. not filtered", async () => {
    await api.set({ protection: false });
    await bench.check(order.map((name) => [name, PLAIN]));
  });
  const records: string[] = [];
  await t.step("3. local records, filtered or not", async () => {
    for (const name of order) {
      records.push(await api.create("records", { name, type: "A", value: "192.0.2.30" }));
    }
    await bench.check(order.map((name) => [name, "NOERROR; A 192.0.2.30"]));
    await api.set({ protection: true });
    await bench.check(order.map((name) => [name, "NOERROR; A 192.0.2.30"]));
  });
  await t.step("2. the service's own names", async () => {
    await bench.rules("||svc.test^", "||health.svc.test^$dnsrewrite=192.0.2.9");
    await bench.check([["health.svc.test", "NOERROR; A 127.0.0.1"]]);
    assert.match(await bench.ask("other.svc.test"), /^NXDOMAIN; SOA \d+$/);
  });
  await t.step("1. access control", async () => {
    await api.set({ access: { allowed: ["192.0.2.0/24"], disallowed: [] } });
    // Loopback passes always.
    await bench.check([["health.svc.test", "NOERROR; A 127.0.0.1"]]);
  });
  bench.service.assertCalm();
});

Deno.test("Filtering, 1, 9, 15 and 17: what the configuration says", OPTIONS, async (t) => {
  await using stack = new AsyncDisposableStack();
  const directory = await prepare(stack);
  await Deno.writeTextFile(`${directory}/elsewhere.txt`, "||else.example^\n");
  await Deno.symlink(`${directory}/elsewhere.txt`, `${directory}/lists/link.txt`);
  const config = {
    filter: {
      lists: [
        { name: "Elsewhere", path: "elsewhere.txt" },
        { name: "Link", path: "lists/link.txt" },
        { name: "Missing", path: "lists/missing.txt" },
        { name: "All", path: "lists/all.txt" },
      ],
      services: false,
      services_file: "services.json",
      directory: false,
    },
  };
  await using bench = await FilterBench.start({ directory, config });
  await t.step("1. a list elsewhere is skipped with a status and a log message", async () => {
    const { items } = await bench.api.call("GET", "lists");
    // deno-lint-ignore no-explicit-any -- as the API answers
    const states = items.map(({ spec, status }: any) => [spec.name, status.state]);
    assert.deepEqual(states, [
      ["Elsewhere", "skipped"],
      ["Link", "skipped"],
      ["Missing", "failed"],
      ["All", "ok"],
    ]);
    for (const name of ["Elsewhere", "Link"]) {
      // deno-lint-ignore no-explicit-any -- as the API answers
      const { status } = items.find((item: any) => item.spec.name === name);
      assert.match(status.message, /local_lists_dir/);
      assert(bench.service.logs.some((line) => JSON.stringify(line).includes(name)), name);
    }
    await bench.check([
      ["else.example", PLAIN],
      ["ads.example", `${NULL_A}; ${byRule("||ads.example^", "All")}`],
    ]);
  });
  await t.step("1. svc check-config fails on it", async () => {
    await Deno.writeTextFile(`${directory}/check.toml`, toml({ filter: config.filter }));
    const [command, ...args] = svcCommand(["check-config", "--config", `${directory}/check.toml`]);
    const { code, stdout, stderr } = await new Deno.Command(command, { args }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    assert.equal(code, 2, text);
    assert.match(text, /filter\.lists\[0\]\.path: .*local_lists_dir/);
    assert.match(text, /filter\.lists\[1\]\.path: /);
  });
  await t.step("15. services = false turns blocked services off", async () => {
    await bench.change({ blocked_services: [{ service: "chat" }] });
    await bench.check([["chat-cdn.example", PLAIN]]);
    assert.deepEqual((await bench.api.call("GET", "services")).items, []);
  });
  await t.step("17. directory = false turns the directory off", async () => {
    assert.equal((await bench.api.call("GET", "lists/directory")).status, 404);
  });
  await t.step("9. default_lists = false starts without the preset", async () => {
    assert.equal((await bench.api.call("GET", "lists")).items.length, config.filter.lists.length);
  });
});
