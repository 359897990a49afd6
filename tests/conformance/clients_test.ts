// Goal: the specification's "Client identification" 1 to 4 and `[server.rate_limit]` hold over every
// transport, each sentence a step. Method: services asked by kdig from addresses of loopback, where
// loopback is nothing special, and from another network namespace, where it would be.

import assert from "node:assert/strict";
import { formatHostPort } from "../../src/addr/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { decode } from "../e2e/clients.ts";
import {
  type AskOptions,
  DOMAIN,
  ENCRYPTED,
  EveryTransport,
  HAS_EVERY_CLIENT,
  type Over,
  TRANSPORTS,
} from "../e2e/every_transport.ts";
import { FakeUpstream } from "../e2e/fake_upstream.ts";
import { hasProgram, PERMISSIONS, runProgram } from "../e2e/harness.ts";
import { HAS_NAMESPACES, Network } from "../e2e/network.ts";
import { OBLIVIOUS, oblivious } from "../e2e/oblivious.ts";
import { zoneScript } from "../e2e/zone.ts";

const OPTIONS = { permissions: PERMISSIONS, ignore: !HAS_EVERY_CLIENT } as const;
const HEALTH = "health.svc.test";
const ADS = "ads.example";
const OPEN = "NOERROR 198.51.100.1";
const BLOCKED = "NOERROR 0.0.0.0";

Deno.test("Client identification, 1 and 2: who a query belongs to", OPTIONS, async (t) => {
  await using upstream = await FakeUpstream.start(zoneScript({}));
  await using bench = await EveryTransport.start({
    config: {
      upstream: [{ address: upstream.text }],
      filter: { rules: [`||${ADS}^`, "||log.example^"] },
    },
  });
  const { api } = bench;
  const group = (filtering: boolean) => api.create("groups", { name: `${filtering}`, filtering });
  const [open, filtered] = [await group(false), await group(true)];
  await api.create("clients", { name: "Phone", ids: ["phone", "phone-2"], group: open });
  await api.create("clients", { name: "Tablet", ids: ["tablet"], group: filtered });
  await api.create("clients", { name: "Net", addresses: ["127.0.0.0/16"], group: filtered });
  await api.create("clients", { name: "Room", addresses: ["127.0.4.0/24"], group: open });
  await api.create("clients", { name: "Desk", addresses: ["127.0.4.7"], group: filtered });
  const check = async (
    rows: readonly (readonly [AskOptions, string])[],
    overs: readonly Over[] = ENCRYPTED,
  ) => {
    for (const over of overs) {
      for (const [options, want] of rows) {
        const got = await bench.brief(over, ADS, options);
        assert.equal(got, want, `${over} ${JSON.stringify(options)}`);
      }
    }
  };

  await t.step("1. a known ID goes before the address, over DoT, DoH and DoQ", () =>
    check([
      [{ from: "127.0.0.1" }, BLOCKED],
      [{ from: "127.0.0.1", id: "phone" }, OPEN],
      [{ from: "127.0.0.1", id: "phone-2" }, OPEN],
      [{ from: "127.0.4.1" }, OPEN],
      [{ from: "127.0.4.1", id: "tablet" }, BLOCKED],
    ]));
  await t.step("1. over DoH it stands in the path or in the server name", () =>
    check([
      [{ serverName: `phone.${DOMAIN}` }, OPEN],
      [{ id: "phone", serverName: DOMAIN }, OPEN],
      [{ id: "phone", serverName: `tablet.${DOMAIN}` }, OPEN],
      [{ id: "tablet", serverName: `phone.${DOMAIN}` }, BLOCKED],
    ], ["doh"]));
  await t.step(
    "1. upper and lower case of a server name are the same",
    () => check([[{ serverName: `PHONE.${DOMAIN.toUpperCase()}` }, OPEN]]),
  );
  await t.step("1. it is the first label before the domain, and no other", () =>
    check([
      [{ serverName: DOMAIN }, BLOCKED],
      [{ serverName: "phone.other.test" }, BLOCKED],
      [{ serverName: `phone.a.${DOMAIN}` }, BLOCKED],
      [{ serverName: `a.phone.${DOMAIN}` }, BLOCKED],
      [{ serverName: `phone${DOMAIN}` }, BLOCKED],
      [{ serverName: "phone" }, BLOCKED],
    ]));
  await t.step("2. otherwise the address decides, the longest network first", () =>
    check([
      [{ from: "127.0.4.1", id: "stranger" }, OPEN],
      [{ from: "127.0.0.9", id: "stranger" }, BLOCKED],
      [{ from: "127.0.4.7", id: "stranger" }, BLOCKED],
    ]));
  await t.step("2. the longest network wins over every transport", () =>
    check([
      [{ from: "127.0.0.9" }, BLOCKED],
      [{ from: "127.0.4.1" }, OPEN],
      [{ from: "127.0.4.7" }, BLOCKED],
    ], TRANSPORTS));
  await t.step("2. unknown clients are in the default group", async () => {
    await check([[{ from: "127.1.0.1" }, BLOCKED]], TRANSPORTS);
    await check([[{ from: "127.1.0.1", id: "stranger" }, BLOCKED]]);
  });
  await t.step("the log names client and ID", async () => {
    for (const over of ENCRYPTED) {
      await bench.ask(over, `${over}.log.example`, { id: "tablet", from: "127.0.4.1" });
      await bench.ask(over, `room.${over}.log.example`, { id: "stranger", from: "127.0.4.1" });
      const { entries } = await api.call("GET", `querylog?name=${over}.log.example`);
      assert.deepEqual(
        // deno-lint-ignore no-explicit-any -- as the API answers
        entries.map((entry: any) => [entry.protocol, entry.client_name, entry.client_id]),
        [[over, "Room", "stranger"], [over, "Tablet", "tablet"]],
      );
    }
  });
  await t.step("1. an ID that moves to another client belongs to it at once", async () => {
    const { items } = await api.call("GET", "clients");
    // deno-lint-ignore no-explicit-any -- as the API answers
    const phone = items.find(({ spec }: any) => spec.name === "Phone");
    await api.call("PUT", `clients/${phone.id}`, { ...phone.spec, ids: ["phone-2"] });
    await check([[{ id: "phone" }, BLOCKED], [{ id: "phone-2" }, OPEN]]);
    await api.create("clients", { name: "New phone", ids: ["phone"], group: open });
    await check([[{ id: "phone" }, OPEN]]);
  });
  bench.service.assertCalm();
});

const SERVER = ["198.51.100.1/24", "10.77.0.1/24", "2001:db8:77::1/64", "fd77::1/64"];
const [PUBLIC, OTHER, PRIVATE, PUBLIC6, LOCAL6] = [
  ...["198.51.100.2", "198.51.100.3", "10.77.0.2", "2001:db8:77::2", "fd77::2"],
];
const CLIENTS = [
  ...[`${PUBLIC}/24`, `${OTHER}/24`, `${PRIVATE}/24`, `${PUBLIC6}/64`, `${LOCAL6}/64`],
];
const FRESH = [
  ...["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
  ...["169.254.0.0/16", "100.64.0.0/10", "fc00::/7", "fe80::/10"],
];
/** How long to wait for an answer that is not to come. */
const SILENCE = "+timeout=1";

Deno.test({
  name: "Client identification, 3: access control",
  permissions: PERMISSIONS,
  ignore: !HAS_EVERY_CLIENT || !HAS_NAMESPACES || !hasProgram("openssl"),
  fn: async (t) => {
    await using network = await Network.make(SERVER, CLIENTS);
    const ips = ["127.0.0.1", ...SERVER.map((text) => text.split("/")[0])];
    await using bench = await EveryTransport.start({ network, ips });
    const { api } = bench;
    const access = (allowed: readonly string[], disallowed: readonly string[] = []) =>
      api.set({ access: { allowed, disallowed } });
    const answered = async (options: AskOptions, overs: readonly Over[] = TRANSPORTS) => {
      for (const over of overs) {
        const said = await bench.brief(over, HEALTH, options);
        assert.equal(said, "NOERROR 127.0.0.1", `${over} ${JSON.stringify(options)}`);
      }
    };
    const silent = async (from: string, overs: readonly Over[] = TRANSPORTS) => {
      for (const over of overs) {
        const said = await bench.brief(over, HEALTH, { from, args: SILENCE });
        assert.equal(said, "nothing", `${over} ${from}`);
      }
    };
    const refused = async (options: AskOptions) => {
      for (const over of ENCRYPTED) {
        const said = await bench.brief(over, HEALTH, options);
        assert.equal(said, "REFUSED", `${over} ${JSON.stringify(options)}`);
      }
    };
    const failedHandshakes = async () =>
      /^svc_tls_handshake_failures_total (\d+)$/m.exec(await api.metrics())?.[1];

    await t.step("a fresh node's allowed list has loopback and local networks", async () => {
      const settings = await api.call("GET", "settings");
      assert.deepEqual(settings.access.allowed.toSorted(), FRESH.toSorted());
      assert.deepEqual(settings.access.disallowed, []);
      for (const from of [PRIVATE, LOCAL6]) await answered({ from });
      for (const from of [PUBLIC, PUBLIC6]) await silent(from);
    });
    await t.step("refused connections are closed before the TLS handshake", async () => {
      for (const over of ["dot", "doh"] as const) {
        const to = ["-connect", formatHostPort(bench.place(over, PUBLIC)), "-bind", `${PUBLIC}:0`];
        const [command, ...args] = [...network.atClient, "openssl", "s_client", ...to];
        const { stdout, stderr } = await runProgram(command, ...args);
        assert.match(stdout + stderr, /CONNECTED/);
        assert.match(stdout, /has read 0 bytes/);
      }
      assert.equal(await failedHandshakes(), "0");
      const counts = await bench.counts("svc_access_refused_total");
      for (const over of TRANSPORTS) {
        assert.ok(counts[over] >= 2, `${over} of ${PUBLIC}, ${PUBLIC6}`);
      }
    });
    await t.step("allowed by address and network, for every transport", async () => {
      await access(["198.51.100.0/30", PUBLIC6]);
      for (const from of [PUBLIC, OTHER, PUBLIC6]) await answered({ from });
      await silent(PRIVATE);
    });
    await t.step("disallowed by address and network, within allowed ones", async () => {
      await access(["198.51.100.0/24", "2001:db8::/32", PRIVATE], [OTHER, "2001:db8:77::/64"]);
      await answered({ from: PUBLIC });
      await silent(OTHER);
      await silent(PUBLIC6, ENCRYPTED);
    });
    await t.step("an empty allowed list is everybody who is not disallowed", async () => {
      await access([], ["10.77.0.0/16"]);
      await answered({ from: PUBLIC });
      await silent(PRIVATE);
    });
    await t.step("allowed by client ID; a refused one gets REFUSED", async () => {
      await access(["phone"], [OTHER]);
      await answered({ from: PUBLIC, id: "phone" }, ENCRYPTED);
      await refused({ from: PUBLIC, id: "tablet" });
      await refused({ from: PUBLIC, serverName: DOMAIN });
      await silent(PUBLIC, ["udp", "tcp"]);
      for (const over of ENCRYPTED) {
        const options = { from: OTHER, id: "phone", args: SILENCE };
        assert.equal(await bench.brief(over, HEALTH, options), "nothing", over);
      }
    });
    await t.step("disallowed by client ID", async () => {
      await access([], ["tablet"]);
      await refused({ from: PUBLIC, id: "tablet" });
      await refused({ from: PUBLIC, id: "TABLET" });
      await answered({ from: PUBLIC, id: "phone" }, ENCRYPTED);
      await answered({ from: PUBLIC });
    });
    await t.step("loopback always passes", async () => {
      await access([PRIVATE], ["127.0.0.0/8", "::1", "tablet"]);
      await answered({ from: "127.0.0.1" });
      await answered({ from: "127.0.0.1", id: "tablet" }, ENCRYPTED);
      await silent(PUBLIC, ["udp"]);
    });
    await t.step("an existing node keeps its stored list", async () => {
      await access([PUBLIC]);
      bench.service.assertCalm();
      await bench.stop();
      await using again = await EveryTransport.start({ network, ips, directory: bench.directory });
      const settings = await again.api.call("GET", "settings");
      assert.deepEqual(settings.access, { allowed: [PUBLIC], disallowed: [] });
      assert.equal(await again.brief("udp", HEALTH, { from: PUBLIC }), "NOERROR 127.0.0.1");
      const said = await again.brief("udp", HEALTH, { from: PRIVATE, args: SILENCE });
      assert.equal(said, "nothing");
    });
  },
});

/** The slowest refill there is: a slow machine is answered a few queries more. */
const LIMIT = { queries_per_second: 1, burst: 10, exempt: ["127.0.0.9/32"] };
const RATED = "rated.example";

Deno.test("Client identification, 4: rate limits", OPTIONS, async (t) => {
  await using bench = await EveryTransport.start({ config: { "server.rate_limit": LIMIT } });
  const { api } = bench;
  await api.create("records", { name: `*.${RATED}`, type: "A", value: "192.0.2.1" });
  const limitedCode = (over: Over) => over === "udp" ? "NOERROR cut" : "REFUSED";
  const names = (name: string, times: number) => Array<string>(times).fill(`${name}.${RATED}`);
  const times = 40;
  const answered: Record<string, number> = {};
  for (const [i, over] of TRANSPORTS.entries()) {
    const from = `127.0.0.${10 + i}`;
    const what = over === "udp" ? "truncated answers" : "REFUSED";
    await t.step(`over the limit, ${over} gets ${what}`, async () => {
      const before = (await bench.counts("svc_rate_limited_total"))[over] ?? 0;
      const codes = await bench.codes(over, names(over, times), { from });
      const limited = codes[limitedCode(over)] ?? 0;
      answered[over] = codes.NOERROR;
      assert.equal(codes.NOERROR + limited, times, JSON.stringify(codes));
      assert.ok(codes.NOERROR >= LIMIT.burst, JSON.stringify(codes));
      assert.ok(limited >= times / 4, JSON.stringify(codes));
      assert.equal((await bench.counts("svc_rate_limited_total"))[over] - before, limited);
    });
    await t.step(`${over} counts against the same limit as the others`, async () => {
      for (const other of TRANSPORTS) {
        // Full again by a query or two in the meantime.
        const codes = await bench.codes(other, names("again", 8), { from });
        assert.ok((codes[limitedCode(other)] ?? 0) >= 1, `${other} ${JSON.stringify(codes)}`);
      }
    });
  }
  await t.step("a client ID is no way around it", async () => {
    for (const over of ENCRYPTED) {
      const codes = await bench.codes(over, names("id", 20), { from: "127.0.0.10", id: "phone" });
      assert.ok(codes.REFUSED >= 1, `${over} ${JSON.stringify(codes)}`);
    }
  });
  await t.step("queries over the limit are not logged", async () => {
    for (const over of TRANSPORTS) {
      const path = `querylog?name=${over}.${RATED}&limit=100`;
      const { entries } = await api.call("GET", path);
      assert.equal(entries.length, answered[over], over);
      for (const { outcome } of entries) assert.equal(outcome, "local");
    }
  });
  await t.step("[server.rate_limit] exempt: such networks are never limited", async () => {
    for (const over of TRANSPORTS) {
      const codes = await bench.codes(over, names("exempt", times), { from: "127.0.0.9" });
      assert.deepEqual(codes, { NOERROR: times }, over);
    }
  });
  await t.step("it is counted per address", async () => {
    for (const over of TRANSPORTS) {
      const said = await bench.ask(over, `other.${RATED}`, { from: "127.0.0.77" });
      assert.equal(said.code, "NOERROR", over);
    }
  });
  bench.service.assertCalm();
});

Deno.test(
  "Client identification, 4: Oblivious DoH is not limited by queries",
  OPTIONS,
  async (t) => {
    await using bench = await EveryTransport.start({
      config: {
        "server.tls": { odoh: true },
        "server.rate_limit": { ...LIMIT, burst: 1, exempt: [] },
      },
    });
    const from = "127.0.0.20";
    const { body: configs } = await bench.curl("/.well-known/odohconfigs");
    const codes = await bench.codes("dot", Array(20).fill(HEALTH), { from });
    assert.ok(codes.REFUSED >= 5, JSON.stringify(codes));
    await t.step("a proxy over the limit is answered", async () => {
      for (let i = 0; i < 8; i++) {
        const { message, open } = await oblivious(configs, encodeQuery(HEALTH, Qtype.A, { id: i }));
        const args = ["--interface", from, "-H", `content-type: ${OBLIVIOUS}`];
        const { status, body } = await bench.curl("/dns-query", args, message);
        assert.equal(status, 200);
        assert.equal(decode(await open(body)).rcode, Rcode.NoError);
      }
      assert.equal((await bench.counts("svc_queries_total")).odoh, 8);
    });
    bench.service.assertCalm();
  },
);

Deno.test("Decisions, 2: [server.rate_limit]", OPTIONS, async (t) => {
  const from = "127.0.0.30";
  const times = 60;
  const names = Array<string>(times).fill(HEALTH);
  await t.step("queries_per_second = 0 turns it off", async () => {
    await using bench = await EveryTransport.start({
      config: { "server.rate_limit": { queries_per_second: 0, burst: 1, exempt: [] } },
    });
    for (const over of ["udp", "dot"] as const) {
      assert.deepEqual(await bench.codes(over, names, { from }), { NOERROR: times });
    }
  });
  await t.step("loopback is exempt by default", async () => {
    await using bench = await EveryTransport.start({
      config: { "server.rate_limit": { queries_per_second: 1, burst: 1 } },
    });
    for (const over of ["udp", "dot"] as const) {
      assert.deepEqual(await bench.codes(over, names, { from }), { NOERROR: times });
    }
  });
});
