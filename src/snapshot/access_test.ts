import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { formatPrefix, type IpPrefix, isLoopback, parseIp, prefixHolds } from "../addr/mod.ts";
import { FRESH_NODE_ALLOWED } from "../model/mod.ts";
import { Access, AccessCompiler, compileAccess } from "./access.ts";

const encoder = new TextEncoder();

interface Row {
  readonly allowed?: readonly string[];
  readonly disallowed?: readonly string[];
  /** `address` or `address id`, and whether it is let in. */
  readonly asks: Readonly<Record<string, boolean>>;
}

const NETWORKS: Readonly<Record<string, Row>> = {
  "everybody is allowed where nobody is": {
    asks: { "203.0.113.1": true, "2001:db8::1": true, "203.0.113.1 phone": true, "": true },
  },
  "with an allowed list, others are not": {
    allowed: ["192.0.2.0/24", "2001:db8:1::/48", "198.51.100.7"],
    asks: {
      "192.0.2.0": true,
      "192.0.2.255": true,
      "192.0.3.0": false,
      "2001:db8:1:ffff::1": true,
      "2001:db8:2::1": false,
      "198.51.100.7": true,
      "198.51.100.8": false,
      "": false,
    },
  },
  "the disallowed list outranks the allowed one, whichever network is longer": {
    allowed: ["192.0.2.0/24", "198.51.100.128/25"],
    disallowed: ["192.0.2.64/26", "198.51.100.0/24"],
    asks: {
      "192.0.2.63": true,
      "192.0.2.64": false,
      "192.0.2.127": false,
      "192.0.2.128": true,
      "198.51.100.200": false,
      "198.51.100.2": false,
    },
  },
  "one network in both lists is disallowed": {
    allowed: ["192.0.2.0/24"],
    disallowed: ["192.0.2.0/24"],
    asks: { "192.0.2.1": false },
  },
  "a disallowed list alone keeps out nobody else": {
    disallowed: ["192.0.2.0/24", "2001:db8::/32"],
    asks: { "192.0.2.1": false, "192.0.3.1": true, "2001:db8::1": false, "2001:db9::1": true },
  },
  "loopback always passes": {
    allowed: ["192.0.2.0/24"],
    disallowed: ["127.0.0.0/8", "127.0.0.1", "::1", "::/0", "0.0.0.0/0", "phone"],
    asks: {
      "127.0.0.1": true,
      "127.255.255.255": true,
      "::1": true,
      "127.0.0.1 phone": true,
      "::2": false,
      "192.0.2.1": false,
    },
  },
  "a client ID lets in whom its address does not": {
    allowed: ["192.0.2.0/24", "phone"],
    asks: {
      "203.0.113.1": false,
      "203.0.113.1 phone": true,
      "203.0.113.1 tablet": false,
      "192.0.2.1 tablet": true,
      "192.0.2.1": true,
      " phone": true,
    },
  },
  "a disallowed client ID keeps out whom its address lets in": {
    allowed: ["192.0.2.0/24", "phone"],
    disallowed: ["tablet"],
    asks: {
      "192.0.2.1 tablet": false,
      "192.0.2.1": true,
      "203.0.113.1 tablet": false,
      "203.0.113.1 phone": true,
    },
  },
  "a client ID in both lists is disallowed": {
    allowed: ["phone"],
    disallowed: ["phone"],
    asks: { "192.0.2.1 phone": false },
  },
  "no client ID lets in a disallowed address": {
    allowed: ["phone"],
    disallowed: ["192.0.2.0/24"],
    asks: { "192.0.2.1 phone": false, "192.0.3.1 phone": true },
  },
  "a fresh node answers local networks": {
    allowed: FRESH_NODE_ALLOWED,
    asks: {
      "127.0.0.1": true,
      "10.200.0.1": true,
      "172.15.255.255": false,
      "172.16.0.1": true,
      "172.31.255.255": true,
      "172.32.0.0": false,
      "192.168.1.2": true,
      "169.254.1.1": true,
      "100.64.0.1": true,
      "100.127.255.255": true,
      "100.128.0.0": false,
      "203.0.113.1": false,
      "::1": true,
      "fd00::1": true,
      "fe80::1": true,
      "2001:db8::1": false,
    },
  },
};

function split(ask: string): { ip: Uint8Array; id: Uint8Array | null } {
  const [address, id] = ask.split(" ");
  return {
    ip: address === "" ? new Uint8Array(0) : parseIp(address)!,
    id: id === undefined ? null : encoder.encode(id),
  };
}

Deno.test("Access.admits() follows the two lists", { permissions: "none" }, async (t) => {
  for (const [name, { allowed = [], disallowed = [], asks }] of Object.entries(NETWORKS)) {
    await t.step(name, () => {
      const access = new Access(compileAccess({ allowed, disallowed }));
      const found = Object.keys(asks).map((ask) => {
        const { ip, id } = split(ask);
        return [ask, access.admits(ip, 0, ip.length, id)];
      });
      assert.deepEqual(Object.fromEntries(found), asks);
    });
  }
});

Deno.test(
  "Access.admitsConnection() waits for a client ID that may come",
  { permissions: "none" },
  () => {
    const asks = (allowed: string[], disallowed: string[], address: string) => {
      const access = new Access(compileAccess({ allowed, disallowed }));
      const ip = parseIp(address)!;
      return [false, true].map((id) => access.admitsConnection(ip, 0, ip.length, id));
    };
    assert.deepEqual(asks([], [], "203.0.113.1"), [true, true]);
    assert.deepEqual(asks(["192.0.2.0/24"], [], "203.0.113.1"), [false, false]);
    assert.deepEqual(asks(["192.0.2.0/24"], [], "192.0.2.1"), [true, true]);
    assert.deepEqual(asks(["192.0.2.0/24", "phone"], [], "203.0.113.1"), [false, true]);
    assert.deepEqual(asks(["phone"], ["203.0.113.0/24"], "203.0.113.1"), [false, false]);
    assert.deepEqual(asks(["phone"], ["tablet"], "127.0.0.9"), [true, true]);
  },
);

Deno.test(
  "AccessCompiler keeps its tables while the setting says the same",
  { permissions: "none" },
  () => {
    const compiler = new AccessCompiler();
    const first = compiler.compile({ allowed: ["192.0.2.0/24"], disallowed: [] });
    assert.equal(compiler.compile({ allowed: ["192.0.2.0/24"], disallowed: [] }), first);
    const second = compiler.compile({ allowed: ["192.0.2.0/24"], disallowed: ["phone"] });
    assert.notEqual(second, first);
    assert.equal(compiler.compile({ allowed: ["192.0.2.0/24"], disallowed: ["phone"] }), second);
  },
);

/** A network among few enough addresses that networks lie in each other. */
function randomNetwork(prng: Prng): IpPrefix {
  const isIpv4 = prng.chance(0.5);
  const ip = randomAddress(prng, isIpv4);
  const lengthBits = prng.pick(
    isIpv4 ? [0, 1, 8, 22, 24, 30, 31, 32] : [0, 7, 32, 63, 64, 126, 128],
  );
  for (let bit = lengthBits; bit < ip.length * 8; bit++) ip[bit >> 3] &= ~(0x80 >> (bit & 7));
  return { ip, lengthBits };
}

function randomAddress(prng: Prng, isIpv4: boolean): Uint8Array<ArrayBuffer> {
  const ip = new Uint8Array(isIpv4 ? 4 : 16);
  ip[0] = prng.pick(isIpv4 ? [127, 10, 192] : [0, 0x20, 0xfd]);
  ip[isIpv4 ? 2 : 7] = prng.int(4);
  ip[ip.length - 1] = prng.int(8);
  return ip;
}

Deno.test("Access agrees with a reading of the lists one by one", { permissions: "none" }, () => {
  const prng = new Prng(seedFromEnv());
  const ids = ["phone", "tablet", "tv"];
  for (let round = 0; round < 300; round++) {
    const draw = () => Array.from({ length: prng.int(6) }, () => randomNetwork(prng));
    const drawIds = () => ids.filter(() => prng.chance(0.2));
    const lists = { allowed: draw(), disallowed: draw() };
    const named = { allowed: drawIds(), disallowed: drawIds() };
    const texts = (list: "allowed" | "disallowed") => [
      ...lists[list].map(formatPrefix),
      ...named[list],
    ];
    const settings = { allowed: texts("allowed"), disallowed: texts("disallowed") };
    const access = new Access(compileAccess(settings));
    for (let i = 0; i < 100; i++) {
      const ip = randomAddress(prng, prng.chance(0.5));
      const id = prng.chance(0.5) ? prng.pick(ids) : null;
      const isIn = (list: "allowed" | "disallowed") =>
        lists[list].some((network) => prefixHolds(network, ip)) ||
        (id !== null && named[list].includes(id));
      const want = isLoopback(ip) ||
        (!isIn("disallowed") && (settings.allowed.length === 0 || isIn("allowed")));
      const got = access.admits(ip, 0, ip.length, id === null ? null : encoder.encode(id));
      assert.equal(got, want, `${ip} ${id} by ${JSON.stringify(settings)}`);
      // Nobody is answered who could not connect.
      if (got) assert.ok(access.admitsConnection(ip, 0, ip.length, id !== null));
    }
  }
});
