// Goal: the specification's "DNS transports and resolution" 1 to 5 and 8 and `[server.tls]` hold, each
// sentence a step. Method: services on every transport, asked by kdig, curl and a client of
// Oblivious DoH; behind them upstreams of the test's own that come and go.

import assert from "node:assert/strict";
import { encodeBase64url, getU16 } from "../../src/bytes/mod.ts";
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";
import { type Asked, fakeDoh, fakeDot } from "../../src/transport/exchange/fakes.ts";
import { Api } from "../e2e/api.ts";
import { makeAuthority } from "../e2e/certificates.ts";
import { ask, decode } from "../e2e/clients.ts";
import {
  DOMAIN,
  ENCRYPTED,
  EveryTransport,
  HAS_EVERY_CLIENT,
  type Over,
  TRANSPORTS,
} from "../e2e/every_transport.ts";
import { address, FakeUpstream, seenInStream } from "../e2e/fake_upstream.ts";
import { HAS_IPV6, OwnDirectory, PERMISSIONS, Service, until } from "../e2e/harness.ts";
import { OBLIVIOUS, oblivious } from "../e2e/oblivious.ts";
import { recordOf, zoneScript } from "../e2e/zone.ts";

const OPTIONS = { permissions: PERMISSIONS, ignore: !HAS_EVERY_CLIENT } as const;
const IPS = HAS_IPV6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"];
const CONFIGS = "/.well-known/odohconfigs";
const DNS_MESSAGE = "application/dns-message";
/** Blocks that answers and our own queries are padded to, in bytes (RFC 8467 §4.1). */
const [ANSWER_BLOCK, QUERY_BLOCK] = [468, 128];
const OPT_PADDING = 12;

/** An answer that needs more than one block. */
const LONG = Array.from({ length: 32 }, (_, i) => recordOf(`A 192.0.2.${i}`, "long.example"));
const SPECIAL = { "long.example": { answers: LONG } };

const query = (name: string, id = 0) => encodeQuery(name, Qtype.A, { id });

/** Asks as an oblivious client with a target's key; the status, and the answer where there is one. */
async function askObliviously(bench: EveryTransport, configs: Uint8Array, name: string) {
  const { message, open } = await oblivious(configs, query(name, 7));
  const told = await bench.curl("/dns-query", ["-H", `content-type: ${OBLIVIOUS}`], message);
  return { status: told.status, answer: told.status === 200 ? await open(told.body) : null };
}

Deno.test("DNS transports and resolution, 1 to 4 and 8", OPTIONS, async (t) => {
  await using upstream = await FakeUpstream.start(zoneScript({}, SPECIAL));
  const config = {
    upstream: [{ address: upstream.text }],
    filter: { rules: ["||ads.example^"] },
  };
  const odoh = { ...config, "server.tls": { odoh: true } };
  await using bench = await EveryTransport.start({ config: odoh, ips: IPS });

  await t.step("1. UDP, TCP, DoT, DoH and DoQ give the same answers", async () => {
    for (const from of IPS) {
      for (const over of TRANSPORTS) {
        const got = [
          await bench.brief(over, `${over}.example`, { from }),
          await bench.brief(over, "ads.example", { from }),
          await bench.brief(over, "nothing.svc.test", { from }),
        ];
        assert.deepEqual(
          got,
          ["NOERROR 198.51.100.1", "NOERROR 0.0.0.0", "NXDOMAIN"],
          `${over} ${from}`,
        );
      }
    }
  });
  await t.step("1. their certificate is the configured one", async () => {
    const args = `+tls-ca=${bench.directory}/ca.crt +tls-hostname=${DOMAIN}`;
    for (const over of ENCRYPTED) {
      assert.equal(await bench.brief(over, "ads.example", { args }), "NOERROR 0.0.0.0", over);
      const other = args.replace(DOMAIN, "other.test");
      assert.equal(await bench.brief(over, "ads.example", { args: other }), "nothing", over);
    }
  });
  const { body: configs } = await bench.curl(CONFIGS);
  await t.step("1. Oblivious DoH gives the same answers", async () => {
    for (const [name, want] of [["odoh.example", "198.51.100.1"], ["ads.example", "0.0.0.0"]]) {
      const { status, answer } = await askObliviously(bench, configs, name);
      assert.equal(status, 200);
      const { id, answers } = decode(answer!);
      assert.deepEqual([id, answers.map(({ data }) => data)], [7, [want]]);
    }
  });
  await t.step("1. each is counted as what it is", async () => {
    const counts = await bench.counts("svc_queries_total");
    for (const over of TRANSPORTS) assert.ok(counts[over] >= 3 * IPS.length, over);
    assert.equal(counts.odoh, 2);
  });

  for (const version of ["1.1", "2"]) {
    const http = `--http${version}`;
    await t.step(`2. GET and POST at /dns-query over HTTP/${version}`, async () => {
      const bytes = query("health.svc.test");
      const type = ["-H", `content-type: ${DNS_MESSAGE}`];
      for (const path of ["/dns-query", "/dns-query/phone"]) {
        for (
          const told of [
            await bench.curl(`${path}?dns=${encodeBase64url(bytes)}`, [http]),
            await bench.curl(path, [http, ...type], bytes),
          ]
        ) {
          assert.deepEqual([told.status, told.version, told.type], [200, version, DNS_MESSAGE]);
          assert.deepEqual(decode(told.body).answers.map(({ data }) => data), ["127.0.0.1"]);
        }
      }
      for (const path of ["/", "/dns-queryx", "/dns-query/phone/x", "/phone/dns-query"]) {
        const { status } = await bench.curl(`${path}?dns=${encodeBase64url(bytes)}`, [http]);
        assert.equal(status, 404, path);
      }
    });
  }

  await t.step("3. the key configuration is served at /.well-known/odohconfigs", async () => {
    const told = await bench.curl(CONFIGS);
    assert.deepEqual([told.status, told.body], [200, configs]);
    assert.equal(getU16(configs, 0), configs.length - 2);
    assert.equal(getU16(configs, 2), 1, "the version of RFC 9230 §6.1");
  });

  await t.step("8. answers to padded queries over DoT, DoH and DoQ are padded", async () => {
    const names = ["health.svc.test", "ads.example", "nothing.svc.test", "long.example"];
    for (const over of ENCRYPTED) {
      for (const name of names) {
        for (const args of ["+padding=0", "+padding=100", "+alignment=128"]) {
          const { code, lengthBytes } = await bench.ask(over, name, { args });
          const blocks = name === "long.example" ? 2 : 1;
          assert.equal(lengthBytes, blocks * ANSWER_BLOCK, `${over} ${name} ${args} ${code}`);
        }
      }
    }
  });
  await t.step("8. answers to other queries are not", async () => {
    for (const over of TRANSPORTS) {
      const args = over === "udp" || over === "tcp" ? "+padding=100" : "+nopadding +edns";
      const { code, lengthBytes } = await bench.ask(over, "health.svc.test", { args });
      assert.equal(code, "NOERROR", over);
      assert.ok(lengthBytes < 100, `${over}: ${lengthBytes}`);
    }
  });
  bench.service.assertCalm();
  await bench.stop();

  await t.step("3. keys live in memory only", async () => {
    const { directory } = bench;
    await using again = await EveryTransport.start({ directory, config: odoh });
    const { body: fresh } = await again.curl(CONFIGS);
    assert.notDeepEqual(fresh, configs);
    assert.equal((await askObliviously(again, fresh, "ads.example")).status, 200);
    assert.equal((await askObliviously(again, configs, "ads.example")).status, 401);
    await again.stop();
  });
  await t.step("3. without odoh = true there is no target", async () => {
    await using off = await EveryTransport.start({ directory: bench.directory, config });
    assert.equal((await off.curl(CONFIGS)).status, 404);
    assert.equal((await askObliviously(off, configs, "ads.example")).status, 415);
    assert.equal(await off.brief("doh", "ads.example"), "NOERROR 0.0.0.0");
  });
});

Deno.test("DNS transports and resolution, 4: require_client_id", OPTIONS, async (t) => {
  await using bench = await EveryTransport.start({
    config: { "server.tls": { require_client_id: true, odoh: true } },
  });
  const { api } = bench;
  const HEALTH = "health.svc.test";
  const id = await api.create("clients", { name: "Phone", ids: ["phone", "tablet-2"] });
  await t.step("encrypted queries with a known client ID are answered", async () => {
    for (const over of ENCRYPTED) {
      for (const one of ["phone", "tablet-2", "PHONE"]) {
        assert.equal(await bench.brief(over, HEALTH, { id: one }), "NOERROR 127.0.0.1", over);
      }
    }
    const said = await bench.brief("doh", HEALTH, { serverName: `phone.${DOMAIN}` });
    assert.equal(said, "NOERROR 127.0.0.1");
  });
  await t.step("those with another ID or none get REFUSED", async () => {
    for (const over of ENCRYPTED) {
      for (
        const options of [
          {},
          { id: "stranger" },
          { serverName: DOMAIN },
          { serverName: "phone.other.test" },
          { serverName: `a.phone.${DOMAIN}` },
          { serverName: `phone${DOMAIN}` },
        ]
      ) {
        const said = await bench.brief(over, HEALTH, options);
        assert.equal(said, "REFUSED", `${over} ${JSON.stringify(options)}`);
      }
    }
  });
  await t.step("plain queries can't carry one and get no answer", async () => {
    assert.equal(await bench.brief("udp", "svc.test", { args: "+timeout=1" }), "nothing");
    assert.equal(await bench.brief("tcp", "svc.test"), "REFUSED");
  });
  await t.step("oblivious queries carry none and get REFUSED", async () => {
    const { body: configs } = await bench.curl(CONFIGS);
    const { status, answer } = await askObliviously(bench, configs, HEALTH);
    assert.deepEqual([status, decode(answer!).rcode], [200, Rcode.Refused]);
  });
  await t.step("an ID that nobody has any more is known no longer", async () => {
    await api.call("DELETE", `clients/${id}`);
    for (const over of ENCRYPTED) {
      assert.equal(await bench.brief(over, HEALTH, { id: "phone" }), "REFUSED", over);
    }
  });
  bench.service.assertCalm();
});

Deno.test("Decisions, 2: [server.tls] has no listener by default", OPTIONS, async () => {
  await using service = await Service.start();
  const { listeners } = await (await Api.of(service)).call("GET", "status");
  const protocols = listeners.map(({ protocol }: { protocol: Over }) => protocol);
  assert.deepEqual([...new Set(protocols)].sort(), ["tcp", "udp"]);
});

/** Answers queries of an encrypted upstream with one address. */
function script(data: string): (asked: Asked) => void {
  return ({ packet, reply }) => reply(address(seenInStream(packet), data));
}

/** Who answers with what. */
const OF = { dot: "192.0.2.1", doh: "192.0.2.2", plain: "192.0.2.3" };

Deno.test("DNS transports and resolution, 5 and 8: upstreams", OPTIONS, async (t) => {
  const authority = await makeAuthority();
  const issued = await authority.issue({ names: ["dns.test"] });
  await using directory = await OwnDirectory.make("svc-conformance-");
  const ca = `${directory.path}/ca.pem`;
  await Deno.writeTextFile(ca, authority.cert);
  await using dot = await fakeDot(issued, ["dot"]);
  await using doh = await fakeDoh(issued);
  await using plain = await FakeUpstream.start((seen) => address(seen, OF.plain));
  dot.script = script(OF.dot);
  doh.script = script(OF.doh);
  await using service = await Service.start({
    config: {
      upstream: [
        { address: `tls://127.0.0.1:${dot.port}#dns.test`, ca },
        { address: `https://127.0.0.1:${doh.port}/dns-query#dns.test`, ca },
        { address: plain.text },
      ],
    },
  });
  let count = 0;
  /** Who answered, question by question of its own. */
  const answered = async (times: number) => {
    const by: (string | undefined)[] = [];
    for (let i = 0; i < times; i++) {
      const { answers } = await ask(service.address, `n${count++}.example`, Qtype.A);
      by.push(answers.at(0)?.data);
    }
    return by;
  };
  const times = 6;
  /** Waits for some answers in a row: one that is slow for once is overtaken by the next. */
  const answersAll = (data: string) =>
    until(`all by ${data}`, async () => (await answered(times)).every((by) => by === data));
  await t.step("5. queries go to the upstreams in order", async () => {
    await answersAll(OF.dot);
  });
  await t.step("5. the next one answers where the first fails: DoT, DoH, plain", async () => {
    await dot.stop();
    await answersAll(OF.doh);
    await doh.stop();
    await answersAll(OF.plain);
  });
  await t.step("5. who fails is left alone for a while, and comes back in its place", async () => {
    // Fails in its own words, so that its questions can be counted.
    const hangUp = (asked: Asked) => asked.hangUp();
    [dot.script, doh.script] = [hangUp, script(OF.doh)];
    const before = dot.asked.length;
    await dot.restart();
    assert.deepEqual(new Set(await answered(40)), new Set([OF.plain]));
    // Three failures in a row, and then nothing but probes, which ask for the root.
    const asked = dot.asked.slice(before).map(({ packet }) => decode(packet).questions[0].name);
    const names = new Set(asked.filter((name) => name.endsWith(".example")));
    assert.ok(names.size <= 3, `${[...names]} of ${asked.length} questions`);
    await doh.restart();
    await answersAll(OF.doh);
    dot.script = script(OF.dot);
    await answersAll(OF.dot);
  });
  await t.step("8. its own queries to DoT and DoH upstreams are padded", () => {
    assert.ok(dot.asked.length > times && doh.asked.length > times);
    for (const { packet } of [...dot.asked, ...doh.asked]) {
      assert.equal(packet.length % QUERY_BLOCK, 0, `${packet.length} bytes`);
      const codes = decode(packet).opt?.options.map(({ code }) => code);
      assert.ok(codes?.includes(OPT_PADDING));
    }
  });
  await t.step("8. those to plain upstreams are not", () => {
    for (const { message } of plain.seen) {
      assert.ok(!message.opt?.options.some(({ code }) => code === OPT_PADDING));
    }
  });
});
