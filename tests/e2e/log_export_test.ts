// Goal: the query log leaves by dnstap and by OTLP as it is written, without those who are exempt, and
// no receiver, however bad, keeps a query from its answer or a later receiver from its entries. Method:
// a running service between dig, receivers that take everything apart and misbehave in turn, the tool
// of golang-dnstap where there is one, and an OTLP collector.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { makeAuthority } from "./certificates.ts";
import { Collector } from "./collector.ts";
import { DnstapReceiver } from "./dnstap_receiver.ts";
import { Qtype } from "../../src/dns/mod.ts";
import { address, answer, FakeUpstream } from "./fake_upstream.ts";
import {
  freePort,
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  until,
} from "./harness.ts";
import { scrape, valueOf } from "./scrape.ts";

const permissions = PERMISSIONS;
const HAS_DNSTAP = hasProgram("dnstap");
const CLIENT_RESPONSE = 6;
const [INET, UDP, LOCAL_DATA] = [1, 1, 6];

/** Asks, and has the query log written: what is asked for last it has written always. */
async function dig(service: Service, name: string, from = "127.0.0.1"): Promise<string> {
  const at = ["@127.0.0.1", "-b", from, "-p", `${service.address.port}`];
  const { stdout } = await runProgram("dig", ...at, name, "+short");
  await (await Api.of(service)).call("GET", "querylog?limit=1");
  return stdout.trim();
}

async function figure(api: Api, what: string, exporter: string): Promise<number> {
  return valueOf(await scrape(api.base), `svc_querylog_export_${what}`, { exporter });
}

Deno.test("the query log leaves by dnstap over a Unix socket, and by OTLP", {
  permissions,
}, async (t) => {
  await using home = await OwnDirectory.make();
  await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
  await using collector = new Collector();
  const path = `${home.path}/dnstap.sock`;
  await Deno.writeTextFile(`${home.path}/headers`, "authorization: Bearer wlkrs\n");
  await using service = await Service.start({
    directory: home.path,
    config: {
      upstream: [{ address: upstream.text }],
      filter: { rules: ["||ads.example^"] },
      querylog: {
        dnstap: { address: `unix:${path}`, identity: "attic" },
        otlp: {
          endpoint: `${collector.url}/tenant`,
          headers_file: `${home.path}/headers`,
          outcomes: ["blocked"],
        },
      },
    },
  });
  const api = await Api.of(service);
  await api.create("clients", { name: "Quiet", addresses: ["127.0.0.8"], querylog: false });
  await api.create("clients", { name: "Tablet", addresses: ["127.0.0.9"] });

  await t.step("what is asked before there is a receiver waits for it", async () => {
    await until("a failure", async () => await figure(api, "failing", "dnstap") === 1);
    const line = await service.logged("the query log can't be sent; this is said once");
    assert.equal(line.exporter, "dnstap");
    assert.equal(await dig(service, "early.example"), "192.0.2.7");
  });

  let receiver = new DnstapReceiver({ path });
  await t.step("a message has what the entry has", async () => {
    await dig(service, "quiet.example", "127.0.0.8");
    assert.equal(await dig(service, "ads.example", "127.0.0.9"), "0.0.0.0");
    const early = await receiver.about("early.example");
    assert.equal(early.identity, "attic");
    assert.match(early.version, /^svc \d/);
    assert.deepEqual(
      [early.type, early.family, early.protocol, early.address],
      [CLIENT_RESPONSE, INET, UDP, "127.0.0.1"],
    );
    assert.ok(Math.abs(Date.now() - early.responseMs) < 60_000);
    assert.ok(early.queryMs <= early.responseMs);
    assert.deepEqual(early.response.answers.map(({ data }) => data), ["192.0.2.7"]);
    assert.equal(early.extra.outcome, "forwarded");
    assert.equal(early.policy, null);
    const ads = await receiver.about("ads.example");
    assert.deepEqual(
      [ads.extra.outcome, ads.extra.client_name, ads.extra.list],
      ["blocked", "Tablet", "rules"],
    );
    const policy = { type: "rules", rule: "||ads.example^", action: LOCAL_DATA };
    assert.deepEqual(ads.policy, { ...policy, value: "ads.example" });
    assert.ok(!receiver.has("quiet.example"), "who is exempt is not among them");
    await until("success", async () => await figure(api, "failing", "dnstap") === 0);
    await service.logged("the query log is sent again", { exporter: "dnstap" });
  });

  await t.step("a log record has it too, of the outcomes asked for", async () => {
    await until("the record", () => collector.logs.length > 0);
    const [{ body, severity, attributes }] = collector.logs;
    assert.deepEqual([body, severity], ["blocked ads.example A", "INFO"]);
    assert.equal(attributes["client.address"], "127.0.0.9");
    assert.equal(attributes["svc.client.name"], "Tablet");
    assert.equal(attributes["dns.question.name"], "ads.example");
    assert.equal(attributes["svc.rule"], "||ads.example^");
    assert.equal(collector.logs.length, 1, "early.example was not blocked");
    assert.deepEqual(collector.paths, ["/tenant/v1/logs"]);
    assert.equal(collector.headers[0].get("authorization"), "Bearer wlkrs");
  });

  await t.step("a collector that fails gets it once it does not", async () => {
    collector.mood = 503;
    await dig(service, "x.ads.example");
    await until("a failure", async () => await figure(api, "failing", "otlp") === 1);
    collector.mood = 200;
    await until("the record", () => collector.logs.some(({ body }) => body.includes("x.ads")));
    await until("success", async () => await figure(api, "failing", "otlp") === 0);
  });

  await t.step("a socket that is replaced is found again", async () => {
    await receiver[Symbol.asyncDispose](); // Which removes it.
    assert.equal(await dig(service, "between.example"), "192.0.2.7");
    receiver = new DnstapReceiver({ path });
    await receiver.about("between.example");
  });

  await t.step("a bad receiver costs no answer, and no entry", async () => {
    const before = await figure(api, "failures_total", "dnstap");
    receiver.mood = "garbage";
    receiver.drop();
    assert.equal(await dig(service, "garbage.example"), "192.0.2.7");
    await until(
      "failures",
      async () => await figure(api, "failures_total", "dnstap") >= before + 2,
    );
    receiver.mood = "good";
    await receiver.about("garbage.example");
    assert.equal(await figure(api, "dropped_total", "dnstap"), 0);
  });

  await t.step("the next program goes on sending, and the last entries are sent", async () => {
    await service.upgrade();
    await dig(service, "upgraded.example");
    await receiver.about("upgraded.example");
    const before = receiver.farewells;
    await dig(service, "last.example");
    await service.stop();
    await receiver.about("last.example");
    await until("the farewell", () => receiver.farewells > before);
    await receiver[Symbol.asyncDispose]();
  });
});

/** Leads connections to a port of this machine; before there is one, it takes them and says nothing. */
class Way implements Disposable {
  to: number | null = null;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open: Deno.Conn[] = [];

  constructor() {
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  async #accept(): Promise<void> {
    for await (const conn of this.#listener) {
      this.#open.push(conn);
      if (this.to === null) continue;
      const further = await Deno.connect({ hostname: "127.0.0.1", port: this.to });
      this.#open.push(further);
      conn.readable.pipeTo(further.writable).catch(() => {});
      further.readable.pipeTo(conn.writable).catch(() => {});
    }
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    for (const conn of this.#open) {
      try {
        conn.close();
      } catch { /* It is closed. */ }
    }
  }
}

Deno.test("dnstap over TLS: only to whom the certificate names, and anonymised as the log is", {
  permissions,
}, async (t) => {
  await using home = await OwnDirectory.make();
  const authority = await makeAuthority();
  const tls = await authority.issue({ names: ["tap.home.arpa"] });
  await Deno.writeTextFile(`${home.path}/ca.pem`, authority.cert);
  using way = new Way();
  await using upstream = await FakeUpstream.start((query) => {
    if (query.name.toLowerCase() !== "tap.home.arpa") return address(query, "192.0.2.7");
    return query.type === Qtype.A ? address(query, "127.0.0.1") : answer(query);
  });
  await using service = await Service.start({
    directory: home.path,
    config: {
      upstream: [{ address: upstream.text }],
      querylog: {
        anonymize: true,
        max_entries: 0,
        dnstap: { address: `tls://tap.home.arpa:${way.port}`, ca: `${home.path}/ca.pem` },
      },
    },
  });
  const api = await Api.of(service);

  await t.step("a handshake that takes for ever is given up", async () => {
    assert.equal(await dig(service, "slow.example", "127.0.0.9"), "192.0.2.7");
    const line = await service.logged("the query log can't be sent; this is said once");
    assert.match(String(line.reason), /took more than/);
  });

  await t.step("a certificate of somebody else is none", async () => {
    const other = await authority.issue({ names: ["other.example"] });
    await using receiver = new DnstapReceiver({ port: 0, tls: other });
    way.to = receiver.port;
    const before = await figure(api, "failures_total", "dnstap");
    await until("refusals", async () => await figure(api, "failures_total", "dnstap") > before + 1);
    assert.equal(receiver.tapped.length, 0);
  });

  await t.step("the right one gets it, without the end of addresses", async () => {
    await using receiver = new DnstapReceiver({ port: 0, tls });
    way.to = receiver.port;
    const tapped = await receiver.about("slow.example");
    assert.equal(tapped.address, "127.0.0.0");
    assert.equal(tapped.response.opt, null);
    assert.ok(!JSON.stringify(tapped.extra).includes("127.0.0.9"));
  });
});

Deno.test({
  name: "dnstap over TCP: the tool of golang-dnstap reads it",
  ignore: !HAS_DNSTAP,
  permissions,
}, async () => {
  await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
  const port = freePort();
  const tool = new Deno.Command("dnstap", {
    args: ["-l", `127.0.0.1:${port}`, "-j"],
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let text = "";
  const read = (async () => {
    for await (const part of tool.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  try {
    await using service = await Service.start({
      config: {
        upstream: [{ address: upstream.text }],
        querylog: { dnstap: { address: `tcp://127.0.0.1:${port}` } },
      },
    });
    await dig(service, "tool.example");
    await until("what the tool prints", () => text.includes("tool.example"));
    const { type, identity, message } = JSON.parse(text.split("\n")[0]);
    assert.deepEqual([type, identity], ["MESSAGE", "local"]);
    assert.equal(message.type, "CLIENT_RESPONSE");
    assert.equal(message.socket_protocol, "UDP");
    assert.equal(message.query_address, "127.0.0.1");
    assert.match(message.response_message, /tool\.example\.\s+\d+\s+IN\s+A\s+192\.0\.2\.7/);
  } finally {
    tool.kill();
    await tool.status;
    await read;
  }
});
