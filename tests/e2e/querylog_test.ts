// Goal: each query is in the log with every field, is found by each filter, counted, exported and told
// live, and none is lost uncounted. Method: the running service between dig, dnsperf, curl and an
// upstream that does as the test says.

import assert from "node:assert/strict";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { Api, DEFAULT_GROUP } from "./api.ts";
import { dnsperf, lookUp, UdpClient } from "./clients.ts";
import { address, answer, FakeUpstream, type Seen } from "./fake_upstream.ts";
import {
  type ConfigText,
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  type ServiceOptions,
  until,
} from "./harness.ts";

const permissions = PERMISSIONS;
const HAS_DIG = hasProgram("dig");
const SERVICES = {
  blocked_services: [{ id: "chat", name: "Chat", rules: ["||chat.example^"], group: "social" }],
  groups: [],
};

/** An upstream whose names say what it does. */
function script(query: Seen) {
  const name = query.name.toLowerCase();
  if (name === "broken.example") return answer(query, { rcode: Rcode.ServFail });
  if (name === "nothing.example") return answer(query, { rcode: Rcode.NXDomain });
  return query.type === Qtype.A || query.type === Qtype.AAAA ? address(query) : answer(query);
}

/** A service, its upstream and its API. */
class Logged {
  private constructor(
    readonly service: Service,
    readonly upstream: FakeUpstream,
    readonly api: Api,
  ) {}

  static async start(config: ConfigText = {}, options: ServiceOptions = {}): Promise<Logged> {
    const upstream = await FakeUpstream.start(script);
    const service = await Service.start({
      ...options,
      config: { upstream: [{ address: upstream.text }], ...config },
    });
    return new Logged(service, upstream, await Api.of(service));
  }

  async dig(question: string): Promise<void> {
    const said = await lookUp("dig", this.service.address, question);
    assert.match(said, /status: /);
  }

  /** Entries that pass, newest first; each in its own order of fields. */
  async entries(query = ""): Promise<Record<string, unknown>[]> {
    const { entries, error } = await this.api.call("GET", `querylog?${query}`);
    assert.ok(Array.isArray(entries), JSON.stringify(error));
    return entries;
  }

  async names(query = ""): Promise<string> {
    return (await this.entries(query)).map(({ name }) => String(name).split(".")[0]).join(" ");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await this.upstream.close();
  }
}

Deno.test({
  name: "the query log has every query with what became of it",
  permissions,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await using own = await OwnDirectory.make();
    const directory = own.path;
    await Deno.mkdir(`${directory}/lists`);
    await Deno.writeTextFile(
      `${directory}/lists/ads.txt`,
      "||ads.example^\n@@||fine.ads.example^\n||pat*.example^\n/^trk[0-9]+\\./\n",
    );
    await Deno.writeTextFile(`${directory}/services.json`, JSON.stringify(SERVICES));
    const filter = {
      default_lists: false,
      directory: false,
      services: true,
      services_file: "services.json",
      lists: [{ name: "Ads", path: "lists/ads.txt" }],
      rules: [
        "||mine.example^",
        "||moved.example^$dnsrewrite=192.0.2.9",
        "@@|pat-fine.",
        "/^mov[a-z]+-/$dnsrewrite=192.0.2.8",
      ],
    };
    await using logged = await Logged.start({ filter }, { directory });
    const { api, upstream } = logged;
    const [list] = (await api.call("GET", "lists")).items;
    await until("the list's rules", async () => {
      return (await api.call("GET", "status")).filter.rules >= 6;
    });
    const group = await api.create("groups", {
      name: "children",
      safe_search: true,
      lists: [],
      blocked_services: [{ service: "chat" }],
    });
    await api.create("clients", { name: "Tablet", addresses: ["127.0.0.2"], ids: [], group });
    await api.create("records", { name: "nas.example", type: "A", value: "192.0.2.5" });
    const rows: readonly (readonly [question: string, want: Record<string, unknown>])[] = [
      ["www.example", { outcome: "forwarded", answers: ["192.0.2.1"], upstream: upstream.text }],
      ["WWW.Example", {
        outcome: "cached",
        cached: true,
        answers: ["192.0.2.1"],
        name: "www.example",
      }],
      ["www.example AAAA", {
        outcome: "forwarded",
        type: "AAAA",
        answers: ["2001:db8::1"],
        upstream: upstream.text,
      }],
      ["+tcp ads.example", {
        outcome: "blocked",
        protocol: "tcp",
        rule: "||ads.example^",
        list: list.id,
        answers: ["0.0.0.0"],
      }],
      ["fine.ads.example", {
        outcome: "forwarded",
        rule: "@@||fine.ads.example^",
        list: list.id,
        answers: ["192.0.2.1"],
        upstream: upstream.text,
      }],
      ["mine.example HTTPS", {
        outcome: "blocked",
        type: "HTTPS",
        rule: "||mine.example^",
        list: "rules",
      }],
      ["moved.example", {
        outcome: "rewritten",
        rule: "||moved.example^$dnsrewrite=192.0.2.9",
        list: "rules",
        answers: ["192.0.2.9"],
      }],
      ["pattern.example", {
        outcome: "blocked",
        rule: "||pat*.example^",
        list: list.id,
        answers: ["0.0.0.0"],
      }],
      ["pat-fine.example", {
        outcome: "forwarded",
        rule: "@@|pat-fine.",
        list: "rules",
        answers: ["192.0.2.1"],
        upstream: upstream.text,
      }],
      ["TRK7.example", {
        outcome: "blocked",
        name: "trk7.example",
        rule: "/^trk[0-9]+\\./",
        list: list.id,
        answers: ["0.0.0.0"],
      }],
      ["movie-1.example", {
        outcome: "rewritten",
        rule: "/^mov[a-z]+-/$dnsrewrite=192.0.2.8",
        list: "rules",
        answers: ["192.0.2.8"],
      }],
      ["nas.example", { outcome: "local", answers: ["192.0.2.5"] }],
      ["nothing.example", {
        outcome: "forwarded",
        rcode: "NXDOMAIN",
        upstream: upstream.text,
      }],
      ["broken.example", { outcome: "failed", rcode: "SERVFAIL" }],
      ["+norecurse other.example", { outcome: "refused", rcode: "REFUSED" }],
      ["-b 127.0.0.2 www.chat.example", {
        outcome: "blocked",
        client: "127.0.0.2",
        client_name: "Tablet",
        group,
        rule: "||chat.example^",
        list: "service:chat",
        answers: ["0.0.0.0"],
      }],
    ];
    for (const [question, want] of rows) {
      await t.step(question, async () => {
        const since = new Date().toISOString();
        await logged.dig(question);
        const [entry, ...more] = await logged.entries(`since=${since}`);
        assert.equal(more.length, 0, "one entry a query");
        const { id, time, duration_us, ...rest } = entry;
        assert.match(String(id), /^[0-9a-z]+$/);
        assert.ok(String(time) >= since && String(time) <= new Date().toISOString());
        assert.ok(Number.isInteger(duration_us) && Number(duration_us) < 10_000_000);
        if (want.upstream !== undefined) {
          assert.ok(Number(duration_us) > 0, "the upstream took time");
        }
        assert.deepEqual(rest, {
          client: "127.0.0.1",
          client_name: null,
          client_id: null,
          group: DEFAULT_GROUP,
          protocol: "udp",
          name: question.split(" ").find((word) => word.endsWith(".example")),
          type: "A",
          rcode: "NOERROR",
          rule: null,
          list: null,
          answers: [],
          upstream: null,
          cached: false,
          dnssec: null,
          dnssec_reason: null,
          node: "local",
          ...want,
        });
      });
    }
    await t.step("safe search, with the host that answers", async () => {
      await logged.dig("-b 127.0.0.2 www.google.com");
      const [entry] = await logged.entries("outcome=safe_search");
      assert.equal(entry.name, "www.google.com");
      assert.deepEqual(entry.answers, ["forcesafesearch.google.com", "192.0.2.1"]);
    });
    await t.step("the rule that is logged is the one that is explained", async () => {
      for (
        const [name, outcome, rule, id] of [
          ["pattern.example", "blocked", "||pat*.example^", list.id],
          ["trk7.example", "blocked", "/^trk[0-9]+\\./", list.id],
          ["pat-fine.example", "forwarded", "@@|pat-fine.", "rules"],
        ]
      ) {
        const told = await api.call("GET", `explain?name=${name}`);
        assert.deepEqual([told.outcome, told.rule, told.list], [outcome, rule, id]);
      }
    });
    await t.step("health checks are left out", async () => {
      await logged.dig("health.svc.test");
      assert.deepEqual(await logged.entries("name=health"), []);
    });
    await t.step("a rule that is gone since stays in its entries", async () => {
      const { items } = await api.call("GET", "rules");
      for (const { id } of items) await api.call("DELETE", `rules/${id}`);
      const [entry] = await logged.entries("name=mine.example");
      assert.equal(entry.rule, "||mine.example^");
    });
    await t.step("filters, and pages to the end", async () => {
      assert.equal(await logged.names("outcome=blocked"), "www trk7 pattern mine ads");
      assert.equal(await logged.names("client=127.0.0.2"), "www www");
      assert.equal(await logged.names("client=Tablet"), "www www");
      assert.equal(await logged.names("name=ADS"), "fine ads");
      assert.equal(await logged.names("name=ads&outcome=blocked"), "ads");
      assert.equal(await logged.names("client=192.0.2.99"), "");
      const all = await logged.entries();
      const paged: unknown[] = [];
      let next = "";
      do {
        const page = await api.call("GET", `querylog?limit=3${next === "" ? "" : `&next=${next}`}`);
        paged.push(...page.entries);
        next = page.next ?? "";
      } while (next !== "");
      assert.deepEqual(paged, all);
      assert.equal(all.length, rows.length + 1);
      const [first, second] = all.toReversed();
      assert.deepEqual(await logged.entries(`until=${second.time}`), [first]);
      assert.equal((await api.call("GET", "querylog?next=@")).status, 400);
      assert.equal((await api.call("GET", "querylog?next=zzzzzzzzzzzzzz")).status, 400);
    });
    await t.step("statistics and status", async () => {
      const { total, outcomes, series, top, nodes, unreachable } = await api.call(
        "GET",
        "stats?hours=2",
      );
      assert.equal(total, rows.length + 1);
      assert.deepEqual([outcomes.blocked, outcomes.safe_search, outcomes.failed], [5, 1, 1]);
      assert.equal(series.length, 2);
      assert.deepEqual(top.names[0], { name: "www.example", count: 3 });
      const [unknown, tablet] = top.clients;
      assert.equal(top.clients.length, 2);
      assert.match(tablet.client, /^cl_/);
      const ofTablet = { name: "Tablet", count: 2, client: tablet.client, address: "127.0.0.2" };
      assert.deepEqual(tablet, ofTablet);
      assert.deepEqual(unknown, {
        ...{ name: "127.0.0.1", count: rows.length - 1, client: null, address: "127.0.0.1" },
      });
      assert.equal(top.blocked.length, 5);
      assert.deepEqual([nodes, unreachable], [["local"], []]);
      const cluster = await api.call("GET", "stats?scope=cluster");
      assert.deepEqual([cluster.scope, cluster.hours, cluster.total], ["cluster", 24, total]);
      const { querylog } = await api.call("GET", "status");
      assert.deepEqual(querylog, { entries: rows.length + 1, dropped: 0 });
    });
    await t.step("as a file", async () => {
      const fetched = async (query: string) => {
        const response = await fetch(`${api.base}/querylog/export?${query}`);
        assert.equal(response.status, 200);
        return await response.text();
      };
      const lines = (await fetched("format=ndjson")).trimEnd().split("\n");
      assert.deepEqual(lines.map((line) => JSON.parse(line)), await logged.entries());
      const csv = (await fetched("outcome=blocked")).trimEnd().split("\r\n");
      assert.equal(csv.length, 6);
      assert.match(csv[0], /^time,client,/);
      assert.match(csv[5], /,ads\.example,A,blocked,NOERROR,\|\|ads\.example\^,/);
    });
    assert.equal(logged.service.count("api request failed"), 0);
  },
});

Deno.test({
  name: "the query log is told live, to those who ask for it",
  permissions,
  ignore: !HAS_DIG || !hasProgram("curl"),
  fn: async () => {
    await using logged = await Logged.start({
      filter: { rules: ["||ads.example^"], default_lists: false },
    });
    const { service, api } = logged;
    const watching = new Deno.Command("curl", {
      args: ["-sSN", "--max-time", "60", `${api.base}/querylog/stream?outcome=blocked`],
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    let text = "";
    const read = (async () => {
      for await (const piece of watching.stdout.pipeThrough(new TextDecoderStream())) text += piece;
    })();
    await until("the first sign", () => text.startsWith(":\n\n"));
    await logged.dig("www.example");
    await logged.dig("ads.example");
    await until("the entry", () => text.includes("data: "));
    const entry = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "");
    assert.deepEqual([entry.name, entry.outcome, entry.node], ["ads.example", "blocked", "local"]);
    // The end of the service is that of the stream, and no reason to wait.
    assert.equal((await service.stop()).code, 0);
    assert.equal((await watching.status).code, 0, "the stream has ended as it should");
    await read;
    assert.equal(text.match(/^data: /gm)?.length, 1);
  },
});

Deno.test({
  name: "the query log keeps its entries through a restart and a crash, and starts anew if damaged",
  permissions,
  ignore: !HAS_DIG,
  fn: async () => {
    await using own = await OwnDirectory.make();
    const directory = own.path;
    const file = `${directory}/store/querylog/querylog.db`;
    {
      await using logged = await Logged.start({}, { directory });
      await logged.dig("one.example");
      assert.equal((await logged.service.stop()).code, 0);
    }
    {
      await using logged = await Logged.start({}, { directory });
      assert.equal(await logged.names(), "one");
      await logged.dig("two.example");
      assert.equal(await logged.names(), "two one");
      logged.service.kill("SIGKILL");
      await logged.service.ended;
    }
    {
      await using logged = await Logged.start({}, { directory });
      assert.equal(await logged.names(), "two one");
      assert.equal((await logged.api.call("GET", "stats")).total >= 1, true);
      await logged.service.stop();
    }
    await Deno.writeTextFile(file, "damaged ".repeat(2_000));
    {
      await using logged = await Logged.start({}, { directory });
      await logged.dig("three.example");
      assert.equal(await logged.names(), "three");
      assert.deepEqual((await logged.api.call("GET", "status")).problems, []);
    }
    const files = Array.from(Deno.readDirSync(`${directory}/store/querylog`), ({ name }) => name);
    assert.equal(files.filter((name) => name.startsWith("querylog.db.bad-")).length, 1);
  },
});

Deno.test({
  name: "[querylog] turns the log off, keeps the start of addresses, and bounds it",
  permissions,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await t.step("enabled = false", async () => {
      await using own = await OwnDirectory.make();
      const directory = own.path;
      await using logged = await Logged.start({ querylog: { enabled: false } }, { directory });
      await logged.dig("www.example");
      assert.deepEqual(await logged.entries(), []);
      assert.equal((await logged.api.call("GET", "stats")).total, 0);
      const { querylog } = await logged.api.call("GET", "status");
      assert.deepEqual(querylog, { entries: 0, dropped: 0 });
      await assert.rejects(Deno.stat(`${directory}/store/querylog`), Deno.errors.NotFound);
    });
    await t.step("anonymize = true", async () => {
      await using logged = await Logged.start({ querylog: { anonymize: true } });
      await logged.dig("-b 127.0.0.77 www.example");
      const [{ client }] = await logged.entries("client=127.0.0.78");
      assert.equal(client, "127.0.0.0");
    });
    await t.step("max_entries", async () => {
      await using logged = await Logged.start({ querylog: { max_entries: 2 } });
      for (const name of ["one", "two", "three"]) await logged.dig(`${name}.example`);
      assert.equal(await logged.names(), "three two");
      assert.equal((await logged.api.call("GET", "status")).querylog.entries, 2);
      assert.equal((await logged.api.call("GET", "stats")).total, 3);
    });
  },
});

Deno.test({
  name: "every query of a load is logged or counted as dropped",
  permissions,
  ignore: !hasProgram("dnsperf"),
  fn: async () => {
    const rules = ["||ads.example^"];
    await using logged = await Logged.start({
      filter: { rules, default_lists: false, services: false, directory: false },
      server: { workers: 2 },
      "server.rate_limit": { queries_per_second: 0 },
    });
    const { service, api } = logged;
    const QUERIES = 20_000;
    const lines = Array.from({ length: QUERIES }, (_, i) => `n${i % 5_000}.ads.example A`);
    const { completed } = await dnsperf(service.address, service.directory, lines, 10_000);
    assert.equal(completed, QUERIES);
    const { total } = await api.call("GET", "stats");
    const { querylog: { entries, dropped } } = await api.call("GET", "status");
    assert.equal(entries + dropped, QUERIES);
    assert.equal(total, QUERIES);
    const { stdout } = await runProgram("curl", "-s", `${api.base}/querylog/export?format=ndjson`);
    assert.equal(stdout.trimEnd().split("\n").length, entries);
    assert.deepEqual((await api.call("GET", "status")).problems, []);
  },
});

Deno.test("kill -9 loses no entry that was written, and each is within seconds", {
  permissions,
}, async () => {
  await using own = await OwnDirectory.make();
  const directory = own.path;
  const ASKED = 300;
  let written = 0;
  {
    await using logged = await Logged.start({}, { directory });
    const { service, api } = logged;
    using client = await UdpClient.open(service.address);
    for (let i = 0; i < ASKED; i++) {
      client.send(encodeQuery(`n${i}.example`, Qtype.A, { id: i }));
      await until("its answer", () => client.received.length === i + 1);
    }
    // Nobody asks for the log, which would write it; what counts is what it has written by itself.
    const figure = async () => {
      const found = /^svc_querylog_written_total (\d+)$/m.exec(await api.metrics());
      return written = Number(found?.[1]);
    };
    await until("the log is written", async () => await figure() >= ASKED);
    service.kill("SIGKILL");
    await service.ended;
  }
  await using again = await Logged.start({}, { directory });
  const names = new Set((await again.names("limit=1000")).split(" "));
  for (let i = 0; i < written; i++) assert.ok(names.has(`n${i}`), `n${i} of ${written}`);
});
