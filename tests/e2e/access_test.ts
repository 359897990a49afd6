// Goal: whoever may not ask learns nothing over any transport, whoever asks too much is told so, and
// a change of either holds for the next query. Method: the program in a network namespace, asked by
// dig and kdig from addresses of another one, and its metrics.

import assert from "node:assert/strict";
import { formatIp, type HostPort, parseIp } from "../../src/addr/mod.ts";
import { Api } from "./api.ts";
import { makeAuthority, writePair } from "./certificates.ts";
import { lookUp } from "./clients.ts";
import {
  type ConfigText,
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  until,
} from "./harness.ts";
import { HAS_NAMESPACES, Network } from "./network.ts";

const permissions = PERMISSIONS;
const DOMAIN = "dns.svc.test";
const HEALTH = "health.svc.test";
const HAS_CLIENTS = hasProgram("dig") && hasProgram("kdig") && hasProgram("curl");

const SERVER = ["198.51.100.1/24", "10.77.0.1/24", "2001:db8:77::1/64"];
const [PUBLIC, OTHER, PRIVATE, PUBLIC6] = [
  ...["198.51.100.2", "198.51.100.3", "10.77.0.2", "2001:db8:77::2"],
];
const CLIENT = [`${PUBLIC}/24`, `${OTHER}/24`, `${PRIVATE}/24`, `${PUBLIC6}/64`];
/** In the /64 of `PUBLIC6`. */
const NEIGHBOUR6 = "2001:db8:77::3";

type Over = "plain" | "dot" | "doh";

/** A service with encrypted listeners, and the network it is asked from. */
class Running {
  private constructor(
    readonly service: Service,
    readonly network: Network,
    private readonly api: string,
    private readonly stack: AsyncDisposableStack,
  ) {}

  static async start(config: ConfigText = {}): Promise<Running> {
    await using stack = new AsyncDisposableStack();
    const network = stack.use(await Network.make(SERVER, [...CLIENT, `${NEIGHBOUR6}/64`]));
    const directory = stack.use(await OwnDirectory.make()).path;
    const authority = await makeAuthority();
    const issued = await authority.issue({ names: [DOMAIN, `*.${DOMAIN}`] });
    await writePair(directory, "server", issued);
    const listen = SERVER.map((text) => text.split("/")[0])
      .map((ip) => ip.includes(":") ? `[${ip}]:0` : `${ip}:0`);
    const service = stack.use(
      await Service.start({
        directory,
        prefix: network.atServer,
        config: {
          ...config,
          server: { listen, workers: 2, ...config.server },
          "server.tls": {
            ...{ cert: "server.crt", key: "server.key", server_name: DOMAIN },
            ...{ dot: listen, doh: listen, doq: listen },
            ...config["server.tls"],
          },
        },
      }),
    );
    const line = await service.logged("serving the API");
    const api = `http://${(line.listen as string[])[0]}`;
    return new Running(service, network, api, stack.move());
  }

  async curl(path: string, ...args: string[]): Promise<string> {
    const command = [...this.network.atServer, "curl", "-sS", ...args, this.api + path];
    const { stdout, stderr } = await runProgram(command[0], ...command.slice(1));
    assert.equal(stderr, "");
    return stdout;
  }

  async setAccess(allowed: readonly string[], disallowed: readonly string[] = []): Promise<void> {
    const settings = JSON.parse(await this.curl("/api/v1/settings"));
    const body = JSON.stringify({ ...settings, access: { allowed, disallowed } });
    const headers = ["-H", "content-type: application/json", "-X", "PUT", "-d", body];
    const answer = JSON.parse(await this.curl("/api/v1/settings", ...headers));
    assert.equal(answer.error, undefined, JSON.stringify(answer));
  }

  /** Samples of a family that are not 0, by protocol. */
  async counts(family: string): Promise<Record<string, number>> {
    const text = await this.curl("/metrics");
    const found = [...text.matchAll(new RegExp(`^${family}{protocol="(\\w+)"} (\\d+)$`, "gm"))];
    assert.notEqual(found.length, 0, text);
    const rows = found.map(([, protocol, value]) => [protocol, Number(value)] as const);
    return Object.fromEntries(rows.filter(([, value]) => value > 0));
  }

  /** What is said to a client at an address: the code, `cut` behind it, or `nothing`. */
  async ask(from: string, args = "", over: Over = "plain"): Promise<string> {
    const place = this.place(from, over);
    const program = over === "plain" ? "dig" : "kdig";
    const how = { plain: "+ignore", dot: "+tls", doh: "+https" }[over];
    const text = `-b ${from} ${how} ${args} ${HEALTH} A`.replaceAll(/ +/g, " ");
    const said = await lookUp(program, place, text, this.network.atClient);
    const code = /status: ([A-Z]+)/.exec(said)?.[1];
    if (code === undefined) return "nothing";
    const flags = /flags:([^;]*)/i.exec(said)?.[1] ?? "";
    return /\btc\b/i.test(flags) ? `${code} cut` : code;
  }

  /** Says that a client at an address is told nothing; how long to wait for it is no question. */
  async assertSilent(from: string, args = "", over: Over = "plain"): Promise<void> {
    assert.equal(await this.ask(from, `+timeout=1 ${args}`, over), "nothing");
  }

  /** Where a client at an address reaches the service. */
  place(from: string, over: Over = "plain"): HostPort {
    const { listening, encrypted } = this.service;
    const addresses = over === "plain" ? listening : encrypted[over];
    const prefix = from.includes(":") ? "2001" : from.split(".")[0];
    return addresses.find(({ ip }) => formatIp(ip).startsWith(prefix)) ?? assert.fail(from);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stack.disposeAsync();
  }
}

Deno.test({
  name: "whoever may not ask learns nothing, and a change holds for the next query",
  ignore: !HAS_CLIENTS || !HAS_NAMESPACES,
  permissions,
  fn: async (t) => {
    await using running = await Running.start();
    const phone = `+tls-sni=phone.${DOMAIN}`;
    await t.step("a fresh node answers local networks alone", async () => {
      assert.equal(await running.ask(PRIVATE), "NOERROR");
      assert.equal(await running.ask(PRIVATE, "+tcp"), "NOERROR");
      assert.equal(await running.ask(PRIVATE, "", "dot"), "NOERROR");
      for (const from of [PUBLIC, PUBLIC6]) {
        await running.assertSilent(from);
        await running.assertSilent(from, "+tcp");
        await running.assertSilent(from, "", "dot");
        await running.assertSilent(from, "", "doh");
      }
      const refused = await running.counts("svc_access_refused_total");
      assert.equal(refused.udp, 2);
      // kdig may knock at each door more than once.
      for (const protocol of ["tcp", "dot", "doh"]) assert.ok(refused[protocol] >= 2, protocol);
      const text = await running.curl("/metrics");
      assert.match(text, /^svc_tls_handshake_failures_total 0$/m, "there was no handshake");
    });
    await t.step(
      "what a PUT leaves out opens it to nobody; an empty list is a problem",
      async () => {
        const problems = async () =>
          JSON.parse(await running.curl("/api/v1/status")).problems.join();
        await running.setAccess([]);
        assert.equal(await running.ask(PUBLIC), "NOERROR");
        assert.match(await problems(), /anybody who reaches 198\.51\.100\.1:\d+ is answered/);
        const headers = ["-H", "content-type: application/json", "-X", "PUT", "-d", "{}"];
        const { access } = JSON.parse(await running.curl("/api/v1/settings", ...headers));
        assert.ok(access.allowed.includes("10.0.0.0/8"));
        await running.assertSilent(PUBLIC);
        assert.equal(await running.ask(PRIVATE), "NOERROR");
        assert.doesNotMatch(await problems(), /anybody/);
      },
    );
    await t.step("networks, and the disallowed among them", async () => {
      await running.setAccess(["198.51.100.0/24", "2001:db8:77::/64"], [OTHER]);
      for (const from of [PUBLIC, PUBLIC6]) {
        assert.equal(await running.ask(from), "NOERROR");
        assert.equal(await running.ask(from, "+tcp"), "NOERROR");
        assert.equal(await running.ask(from, "", "dot"), "NOERROR");
        assert.equal(await running.ask(from, "", "doh"), "NOERROR");
      }
      for (const from of [OTHER, PRIVATE]) {
        await running.assertSilent(from);
        await running.assertSilent(from, "", "dot");
      }
    });
    await t.step("an empty allowed list is everybody", async () => {
      await running.setAccess([], [OTHER]);
      assert.equal(await running.ask(PRIVATE), "NOERROR");
      assert.equal(await running.ask(PUBLIC), "NOERROR");
      await running.assertSilent(OTHER);
    });
    await t.step("client IDs, after the handshake", async () => {
      await running.setAccess(["phone"], ["tablet", OTHER]);
      assert.equal(await running.ask(PUBLIC, phone, "dot"), "NOERROR");
      assert.equal(await running.ask(PUBLIC, "+https=/dns-query/phone", "doh"), "NOERROR");
      assert.equal(await running.ask(PUBLIC, `+tls-sni=tablet.${DOMAIN}`, "dot"), "REFUSED");
      assert.equal(await running.ask(PUBLIC, `+tls-sni=${DOMAIN}`, "dot"), "REFUSED");
      assert.equal(await running.ask(PUBLIC, "+https=/dns-query/tablet", "doh"), "REFUSED");
      await running.assertSilent(PUBLIC);
      await running.assertSilent(PUBLIC, "+tcp");
      await running.assertSilent(OTHER, phone, "dot");
    });
    await t.step("loopback always passes", async () => {
      await running.setAccess([PRIVATE], ["127.0.0.0/8", "::1"]);
      assert.match(await running.curl("/api/v1/health"), /ok/);
      await running.assertSilent(PUBLIC);
    });
    running.service.assertCalm();
  },
});

/** Codes of many answers to one client, counted. */
async function askOften(
  running: Running,
  from: string,
  times: number,
  args: string,
): Promise<Record<string, number>> {
  const question = `${args} -b ${from} ${HEALTH} A `.repeat(times).trim();
  const said = await lookUp("dig", running.place(from), question, running.network.atClient);
  const counted: Record<string, number> = {};
  for (const [, code, flags] of said.matchAll(/status: ([A-Z]+)[^]*?flags:([^;]*)/g)) {
    const what = flags.includes("tc") ? `${code} cut` : code;
    counted[what] = (counted[what] ?? 0) + 1;
  }
  return counted;
}

Deno.test({
  name: "whoever asks too much gets cut answers over UDP and REFUSED over the others",
  ignore: !HAS_CLIENTS || !HAS_NAMESPACES,
  permissions,
  fn: async () => {
    // The slowest refill there is: what a slow machine takes longer for is a few queries more.
    const limit = { queries_per_second: 1, burst: 40, exempt: ["198.51.100.3/32"] };
    await using running = await Running.start({ "server.rate_limit": limit });
    await running.setAccess([]);
    const [times, udp, tcp] = [200, "+ignore", "+tcp"];
    const first = await askOften(running, PUBLIC, times, udp);
    assert.equal(first.NOERROR + first["NOERROR cut"], times, JSON.stringify(first));
    assert.ok(first.NOERROR >= 40 && first["NOERROR cut"] >= 50, JSON.stringify(first));
    // The same bucket, whichever isolate and transport.
    const second = await askOften(running, PUBLIC, 20, tcp);
    assert.equal(second.REFUSED + (second.NOERROR ?? 0), 20, JSON.stringify(second));
    assert.ok(second.REFUSED >= 1, JSON.stringify(second));
    assert.deepEqual(await running.counts("svc_rate_limited_total"), {
      udp: first["NOERROR cut"],
      tcp: second.REFUSED,
    });
    // Others have buckets of their own, and some have none.
    assert.equal(await running.ask(PRIVATE), "NOERROR");
    assert.deepEqual(await askOften(running, OTHER, times, udp), { NOERROR: times });
    // A /64 is one client.
    const six = await askOften(running, PUBLIC6, times, udp);
    assert.ok(six["NOERROR cut"] >= 50, JSON.stringify(six));
    const neighbour = await askOften(running, NEIGHBOUR6, 20, udp);
    assert.ok(neighbour["NOERROR cut"] >= 1, JSON.stringify(neighbour));
    running.service.assertCalm();
  },
});

/** A service on loopback with a certificate in its folder. */
async function startEncrypted(directory: string, tls: ConfigText[string]): Promise<Service> {
  const authority = await makeAuthority();
  await writePair(directory, "server", await authority.issue({ names: [DOMAIN, `*.${DOMAIN}`] }));
  const files = { cert: "server.crt", key: "server.key", server_name: DOMAIN };
  const listen = { dot: ["127.0.0.1:0"], doh: ["127.0.0.1:0"] };
  return await Service.start({
    directory,
    config: { "server.tls": { ...files, ...listen, ...tls } },
  });
}

Deno.test({
  name: "require_client_id leaves queries without a known client ID unanswered",
  ignore: !HAS_CLIENTS,
  permissions,
  fn: async () => {
    await using directory = await OwnDirectory.make();
    await using service = await startEncrypted(directory.path, { require_client_id: true });
    const api = await Api.of(service);
    const [dot] = service.encrypted.dot;
    const [doh] = service.encrypted.doh;
    const ask = async (place: HostPort, args: string) =>
      /status: ([A-Z]+)/.exec(await lookUp("kdig", place, `${args} ${HEALTH} A`))?.[1];
    const phone = `+tls +tls-sni=phone.${DOMAIN}`;
    assert.equal(await ask(dot, phone), "REFUSED", "nobody has this ID yet");
    const id = await api.create("clients", { name: "Phone", ids: ["phone"] });
    assert.equal(await ask(dot, phone), "NOERROR");
    assert.equal(await ask(dot, `+tls +tls-sni=PHONE.${DOMAIN}`), "NOERROR");
    assert.equal(await ask(dot, `+tls +tls-sni=${DOMAIN}`), "REFUSED");
    assert.equal(await ask(dot, "+tls"), "REFUSED");
    assert.equal(await ask(doh, "+https=/dns-query/phone"), "NOERROR");
    assert.equal(await ask(doh, "+https=/dns-query/tablet"), "REFUSED");
    assert.equal(await ask(doh, "+https"), "REFUSED");
    assert.equal(await ask(service.address, "+noedns"), "NOERROR", "a node watches itself");
    const plain = (way: string) => lookUp("kdig", service.address, `${way} svc.test A`);
    assert.match(await plain("+tcp"), /status: REFUSED/);
    assert.doesNotMatch(await plain("+timeout=1 +retry=0"), /status:/);
    await api.call("DELETE", `clients/${id}`);
    assert.equal(await ask(dot, phone), "REFUSED");
    service.assertCalm();
  },
});

Deno.test({
  name: "a client ID outranks the address, and padded queries get padded answers",
  ignore: !HAS_CLIENTS,
  permissions,
  fn: async () => {
    await using directory = await OwnDirectory.make();
    await using service = await startEncrypted(directory.path, {});
    const api = await Api.of(service);
    await api.create("rules", { rule: "||blocked.example^" });
    const group = await api.create("groups", { name: "Open", filtering: false });
    await api.create("records", { name: "ok.example", type: "A", value: "192.0.2.1" });
    await api.create("clients", { name: "Here", addresses: ["127.0.0.0/8"] });
    await api.create("clients", { name: "Phone", ids: ["phone"], group });
    const [dot] = service.encrypted.dot;
    const kdig = (args: string) => lookUp("kdig", dot, `+tls ${args}`);
    const sized = async (args: string) =>
      Number(/Received (\d+) B/.exec(await kdig(`+tls-sni=${DOMAIN} ${args}`))?.[1]);
    assert.match(await kdig(`+tls-sni=${DOMAIN} blocked.example A`), /0\.0\.0\.0/);
    assert.doesNotMatch(await kdig(`+tls-sni=phone.${DOMAIN} blocked.example A`), /0\.0\.0\.0/);
    assert.match(await kdig(`+tls-sni=other.${DOMAIN} blocked.example A`), /0\.0\.0\.0/);
    assert.equal(await sized("+padding=128 ok.example A"), 468);
    assert.equal(await sized("+padding=128 blocked.example A"), 468);
    assert.ok(await sized("+nopadding ok.example A") < 100);
    const plain = await lookUp("kdig", service.address, "+padding=128 ok.example A");
    assert.ok(Number(/Received (\d+) B/.exec(plain)?.[1]) < 100, plain);
  },
});

Deno.test({
  name: "a leak test notes who asked for which of its names, and how",
  ignore: !HAS_CLIENTS,
  permissions,
  fn: async () => {
    await using service = await Service.start();
    const api = await Api.of(service);
    await api.create("clients", { name: "Second", addresses: ["127.0.0.2"] });
    const { id, names, reached, lookups } = await api.call("POST", "leak-tests");
    assert.deepEqual([names.length, reached, lookups], [8, 0, []]);
    const ask = (args: string) => lookUp("dig", service.address, `+short ${args}`);
    for (const name of names.slice(0, 3)) {
      assert.equal((await ask(`${name} A`)).trim(), "127.0.0.1");
    }
    const shown = () => api.call("GET", `leak-tests/${id}`);
    await until("three names", async () => (await shown()).reached === 3);
    const first = { address: "127.0.0.1", protocol: "udp", client: null };
    assert.deepEqual((await shown()).lookups, [first]);
    for (const name of names) await ask(`-b 127.0.0.2 +tcp ${name.toUpperCase()} AAAA`);
    await until("all names", async () => (await shown()).reached === 8);
    const second = { address: "127.0.0.2", protocol: "tcp", client: "Second" };
    assert.deepEqual((await shown()).lookups, [first, second]);
    // Of nobody's test: answered, and noted nowhere.
    await ask("1-0123456789abcdef.leak.svc.test A");
    const { items } = await api.call("GET", "leak-tests");
    assert.deepEqual(items.map((test: { id: string }) => test.id), [id]);
    assert.equal((await shown()).reached, 8);
    assert.equal(parseIp((await shown()).lookups[0].address)?.length, 4);
    service.assertCalm();
  },
});
