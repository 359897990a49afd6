// Goal: upstreams are told of clients what the configuration says and no more, and what they answer for
// one part of the Internet reaches no other (RFC 7871). Method: an upstream whose answers tell the subnet
// it was told and hold for as much of it as the name says; dig asks with the option that a forwarder adds.

import assert from "node:assert/strict";
import { formatIp } from "../../src/addr/mod.ts";
import { Qtype } from "../../src/dns/mod.ts";
import { lookUp } from "./clients.ts";
import { answer, FakeUpstream, type Seen } from "./fake_upstream.ts";
import { hasProgram, PERMISSIONS, Service } from "./harness.ts";

const HAS_DIG = hasProgram("dig");
const ECS = 8;
const OPT_FIXED_BYTES = 11;

/** Data of the client subnet option of a query, or `null`. */
function optionOf({ message }: Seen): Uint8Array | null {
  return message.opt?.options.find(({ code }) => code === ECS)?.data ?? null;
}

function shown(option: Uint8Array | null): string {
  if (option === null) return "none";
  const ip = new Uint8Array(option[1] === 1 ? 4 : 16);
  ip.set(option.subarray(4));
  return `${formatIp(ip)}/${option[2]}`;
}

/** Adds an option to a message whose last record is an OPT without any. */
function withOption(message: Uint8Array, data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(message.length + 4 + data.length);
  bytes.set(message);
  const view = new DataView(bytes.buffer);
  view.setUint16(message.length - 2, 4 + data.length);
  view.setUint16(message.length, ECS);
  view.setUint16(message.length + 2, data.length);
  bytes.set(data, message.length + 4);
  assert.equal(bytes[message.length - OPT_FIXED_BYTES], 0);
  return bytes;
}

/** The third byte of the address it was told is the last of the address it answers with. */
function tailored(query: Seen): Uint8Array {
  const option = optionOf(query);
  const data = option === null ? "192.0.2.255" : `192.0.2.${option[6] ?? 0}`;
  const message = answer(query, { answers: [{ type: Qtype.A, ttl: 300, data }] });
  if (option === null || /^silent/i.test(query.name)) return message;
  const scope = Number(/^s(\d+)-/i.exec(query.name)?.[1] ?? 24);
  const back = option.with(3, scope);
  return withOption(message, /^wrong/i.test(query.name) ? back.with(4, back[4] ^ 1) : back);
}

const upstreamsWith = (clientSubnet: string, ...upstreams: FakeUpstream[]) => ({
  config: {
    upstream: upstreams.map(({ text }) => ({
      address: text,
      timeout: "10s",
      client_subnet: clientSubnet,
    })),
  },
});

Deno.test({
  name: "svc run tells upstreams where clients are, and keeps the answers apart",
  permissions: PERMISSIONS,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await using upstream = await FakeUpstream.start(tailored);
    await using service = await Service.start(upstreamsWith("client", upstream));
    const ask = async (name: string, ...args: string[]) =>
      (await lookUp("dig", service.address, [name, "A", "+short", ...args].join(" "))).trim();
    const told = (name: string) => upstream.about(name).map((query) => shown(optionOf(query)));

    await t.step("each subnet has its own answer", async () => {
      const name = "s24-a.example";
      assert.equal(await ask(name, "+subnet=203.0.113.7/32"), "192.0.2.113");
      assert.equal(await ask(name, "+subnet=203.0.114.0/24"), "192.0.2.114");
      assert.equal(await ask(name), "192.0.2.255", "who is at home has nobody's");
      // All from the cache.
      const before = told(name).length;
      assert.equal(await ask(name, "+subnet=203.0.113.99/32"), "192.0.2.113");
      assert.equal(await ask(name, "+subnet=203.0.114.9/32"), "192.0.2.114");
      assert.equal(await ask(name), "192.0.2.255");
      assert.equal(told(name).length, before);
      assert.deepEqual(new Set(told(name)), new Set(["203.0.113.0/24", "203.0.114.0/24", "none"]));
    });
    await t.step("what holds for everybody is asked once", async () => {
      for (const name of ["s0-a.example", "silent.example"]) {
        assert.equal(await ask(name, "+subnet=203.0.113.0/24"), "192.0.2.113");
        const before = told(name).length;
        assert.equal(await ask(name, "+subnet=203.0.114.0/24"), "192.0.2.113");
        assert.equal(told(name).length, before);
        assert.equal(await ask(name), "192.0.2.255", "but for who is told of nothing");
      }
    });
    await t.step("addresses of one's own network are not told", async () => {
      for (const [i, net] of ["192.168.1.0/24", "10.0.0.0/8", "fd00::/56", "127.0.0.1"].entries()) {
        assert.equal(await ask(`s24-p${i}.example`, `+subnet=${net}`), "192.0.2.255");
      }
    });
    await t.step("who wants nothing told has nothing told", async () => {
      assert.equal(await ask("s24-b.example", "+subnet=0.0.0.0/0"), "192.0.2.255");
      assert.deepEqual(new Set(told("s24-b.example")), new Set(["none"]));
    });
    await t.step("IPv6 is cut to 56 bits", async () => {
      await ask("s56-c.example", "+subnet=2001:db8:1:2ff::1/128");
      assert.deepEqual(new Set(told("s56-c.example")), new Set(["2001:db8:1:200::/56"]));
    });
    await t.step("an answer about another subnet is none", async () => {
      assert.match(
        await lookUp("dig", service.address, "wrong-a.example A +subnet=203.0.113.0/24"),
        /status: SERVFAIL/,
      );
      assert.equal(await ask("wrong-a.example"), "192.0.2.255");
    });
    service.assertCalm();
  },
});

Deno.test({
  name: "svc run tells upstreams nothing of clients unless the configuration says so",
  permissions: PERMISSIONS,
  ignore: !HAS_DIG,
  fn: async (t) => {
    await using upstream = await FakeUpstream.start(tailored);
    const ask = async (service: Service, name: string) =>
      (await lookUp("dig", service.address, `${name} A +short +subnet=203.0.113.0/24`)).trim();
    await t.step("off", async () => {
      await using service = await Service.start(upstreamsWith("off", upstream));
      assert.equal(await ask(service, "s24-d.example"), "192.0.2.255");
      service.assertCalm();
    });
    await t.step("the same for every client", async () => {
      await using service = await Service.start(upstreamsWith("198.51.100.0/24", upstream));
      assert.equal(await ask(service, "s24-e.example"), "192.0.2.100");
      const shared = await lookUp("dig", service.address, "s24-e.example A +short");
      assert.equal(shared.trim(), "192.0.2.100");
      const told = upstream.about("s24-e.example").map((query) => shown(optionOf(query)));
      assert.deepEqual(new Set(told), new Set(["198.51.100.0/24"]));
      service.assertCalm();
    });
  },
});
