import assert from "node:assert/strict";
import { Qtype } from "../dns/mod.ts";
import { policyState } from "../snapshot/fakes.ts";
import { HostNames } from "./host_names.ts";

const none = { permissions: "none" } as const;
const DAY_MS = 86_400_000;

/** Names by a router that answers what the test says, and all that it was asked. */
function bench(domains: readonly string[] = ["168.192.in-addr.arpa", "d.f.ip6.arpa"]) {
  const asked: string[] = [];
  const state = policyState({ records: ["nas.home.arpa A 192.168.1.5", "*.x.test A 192.168.1.6"] });
  const told = { nowMs: 0, answer: "tv.lan." as string | null, running: 0, most: 0 };
  const names = new HostNames({
    devices: {
      hostnameOf: (address) =>
        address === "192.168.1.7" ? { hostname: "printer", source: "lease" } : null,
      macOf: () => null,
    },
    upstreams: [{ domains: [] }, { domains }],
    state: () => state,
    nowMs: () => told.nowMs,
    dns: {
      lookup: async (name, qtype) => {
        assert.equal(qtype, Qtype.PTR);
        asked.push(name);
        told.most = Math.max(told.most, ++told.running);
        await undefined;
        told.running--;
        if (told.answer === null) throw new Error("the router is away");
        return { addresses: told.answer === "" ? [] : [told.answer], ttl: 60, failure: null };
      },
    },
  });
  return { names, asked, told };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 1_000, "it does not come to be");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

Deno.test("HostNames asks the upstream of the reverse zone, and nobody else", none, async () => {
  const { names, asked, told } = bench();
  const nobody = { hostname: null, source: null };
  for (const address of ["192.0.2.1", "10.0.0.1", "2001:db8::1", "no address", "fe80::1"]) {
    assert.deepEqual(names.nameOf(address), nobody);
  }
  assert.deepEqual(names.nameOf("192.168.1.5"), { hostname: "nas.home.arpa", source: "record" });
  assert.deepEqual(names.nameOf("192.168.1.7"), { hostname: "printer", source: "lease" });
  assert.deepEqual(names.nameOf("192.168.1.6"), nobody, "it is waited for by nobody");
  await until(() => names.nameOf("192.168.1.6").hostname !== null);
  assert.deepEqual(names.nameOf("192.168.1.6"), { hostname: "tv.lan", source: "ptr" });
  assert.deepEqual(asked, ["6.1.168.192.in-addr.arpa"], "once, however often it is wanted");
  names.nameOf("fd00::1");
  await until(() => asked.length === 2);
  told.nowMs = DAY_MS;
  told.answer = null;
  assert.equal(names.nameOf("192.168.1.6").hostname, "tv.lan");
  await until(() => asked.length === 3);
  assert.equal(names.nameOf("192.168.1.6").hostname, "tv.lan", "what it said before holds");
  await new Promise((resolve) => setTimeout(resolve, 0));
});

Deno.test("HostNames asks nobody where no upstream is for the reverse zone", none, () => {
  const { names, asked } = bench(["lan"]);
  names.nameOf("192.168.1.6");
  assert.deepEqual(asked, []);
});

Deno.test("HostNames asks for few at a time", none, async () => {
  const { names, asked, told } = bench();
  for (let i = 1; i < 6; i++) names.nameOf(`192.168.7.${i}`);
  await until(() => asked.length === 5);
  assert.ok(told.most <= 2, `${told.most} at a time`);
  await until(() => names.nameOf("192.168.7.5").hostname !== null);
  await new Promise((resolve) => setTimeout(resolve, 200)); // The last pause is over.
});
