import assert from "node:assert/strict";
import { parseHostPort, parseIp } from "../addr/mod.ts";
import { decodeHex, encodeHex } from "../bytes/mod.ts";
import { encodeQuery, Qtype } from "../dns/mod.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { gratuitousArp } from "./arp.ts";
import { healthQuery, healthTarget, isHealthy } from "./health_query.ts";
import { KernelTables } from "./kernel_tables.ts";
import { addressRequest, linkRequest, readReplies } from "../netlink/mod.ts";
import { ownAddress } from "./own_address.ts";
import type { Libc } from "./sockets.ts";
import { formatHostPort } from "../addr/mod.ts";

const none = { permissions: "none" } as const;
const ip = (text: string) => parseIp(text) as Uint8Array<ArrayBuffer>;

Deno.test("gratuitousArp() writes the frame that keepalived sends", none, () => {
  const mac = decodeHex("c6770af7abef")!;
  const request = "ffffffffffffc6770af7abef08060001080006040001" +
    "c6770af7abefc6120064ffffffffffffc6120064";
  assert.equal(encodeHex(gratuitousArp(1, mac, ip("198.18.0.100"))), request);
  const reply = request.replace("06040001", "06040002");
  assert.equal(encodeHex(gratuitousArp(2, mac, ip("198.18.0.100"))), reply);
});

Deno.test("addressRequest() writes what the kernel takes", none, () => {
  const address = { index: 3, address: ip("192.0.2.53"), prefixLengthBits: 32 };
  assert.equal(
    encodeHex(addressRequest("add", address, 7)),
    "28000000" + "1400" + "0506" + "07000000" + "00000000" + "02200000" + "03000000" +
      "08000200c0000235" + "08000100c0000235",
  );
  assert.equal(
    encodeHex(addressRequest("remove", address, 8)).slice(0, 24),
    "280000001500050008000000",
  );
});

Deno.test("linkRequest() names the interface, filled up to four bytes", none, () => {
  const request = linkRequest("eth0", 1);
  assert.deepEqual([request.length, encodeHex(request.subarray(32))], [
    44,
    "0900030065746830" + "00000000",
  ]);
});

/** As the kernel answers: an interface, an address, the end, a refusal. */
const LINK = "3800000010000000" + "05000000" + "00000000" + "0000010002000000" + "43100100" +
  "00000000" + "0a000300" + "73656730" + "30000000" + "0a000100" + "525400aabbcc" + "0000";
const ADDRESS = "2800000014000200" + "05000000" + "00000000" + "0218" + "0000" + "02000000" +
  "08000100c0a84d01" + "08000200c0a84d01";
const DONE = "1400000003000200" + "05000000" + "00000000" + "00000000";
const REFUSED = "2400000002000000" + "05000000" + "00000000" + "ffffffff" + "00".repeat(16);

Deno.test("readReplies() reads interfaces, addresses and refusals of its request", none, () => {
  const bytes = decodeHex(LINK + ADDRESS + DONE)!;
  assert.deepEqual(readReplies(bytes, 5), {
    links: [{
      index: 2,
      name: "seg00",
      mac: decodeHex("525400aabbcc"),
      isUp: true,
      isLoopback: false,
    }],
    addresses: [{ index: 2, address: ip("192.168.77.1"), prefixLengthBits: 24 }],
    error: 0,
    isDone: true,
  });
  const other = readReplies(bytes, 6);
  assert.deepEqual([other.links, other.addresses, other.isDone], [[], [], false]);
  assert.equal(readReplies(decodeHex(REFUSED)!, 5).error, -1);
});

Deno.test("KernelTables takes no answer for no success", none, () => {
  const native = { socket: () => 9, bind: () => 0, recv: () => -1n } as unknown as Libc["native"];
  const packets = { sendto: () => -1n } as unknown as Libc["packets"];
  const tables = new KernelTables({ native, packets });
  const address = { index: 2, address: ip("192.168.77.100"), prefixLengthBits: 32 };
  assert.equal(tables.add(address), "errno 5");
});

Deno.test("readReplies() ends, whatever it reads", none, () => {
  const prng = new Prng(seedFromEnv());
  const whole = decodeHex(LINK + ADDRESS + REFUSED)!;
  for (let i = 0; i < 20_000; i++) {
    const bytes = whole.slice(0, prng.int(whole.length + 1));
    for (let n = prng.int(6); n > 0 && bytes.length > 0; n--) {
      bytes[prng.int(bytes.length)] = prng.int(256);
    }
    readReplies(bytes, 5);
  }
});

Deno.test("ownAddress() is the one in the peer's network, never the floating one", none, () => {
  const on = (index: number, text: string, prefixLengthBits = 24) => ({
    index,
    address: ip(text),
    prefixLengthBits,
  });
  const own = (...addresses: ReturnType<typeof on>[]) => {
    const found = ownAddress(addresses, 2, ip("192.0.2.53"), ip("192.0.2.2"));
    return found && found.join(".");
  };
  assert.equal(own(on(2, "10.0.0.1"), on(2, "192.0.2.1")), "192.0.2.1");
  assert.equal(own(on(2, "192.0.2.53"), on(2, "192.0.2.1")), "192.0.2.1");
  assert.equal(own(on(2, "10.0.0.1"), on(3, "192.0.2.1")), "10.0.0.1");
  assert.equal(own(on(2, "10.0.0.1", 0)), "10.0.0.1");
  assert.equal(own(on(2, "192.0.2.53", 32)), null);
  assert.equal(own(), null);
});

Deno.test("healthTarget() is this node's own DNS, and no way to the other's", none, async (t) => {
  const floating = ip("192.0.2.53");
  const rows = [
    [["0.0.0.0:53", "[::]:53"], "127.0.0.1:53"],
    [["[::]:53", "0.0.0.0:1053"], "127.0.0.1:1053"],
    [["[::]:53"], "[::1]:53"],
    [["192.0.2.53:53", "192.0.2.1:53"], "192.0.2.1:53"],
    [["[2001:db8::1]:53", "192.0.2.53:53"], "[2001:db8::1]:53"],
    [["192.0.2.53:53"], null],
    [["127.0.0.1:0"], null],
    [[], null],
  ] as const;
  for (const [listen, want] of rows) {
    await t.step(listen.join(" ") || "nothing", () => {
      const found = healthTarget(listen.map((text) => parseHostPort(text)!), floating);
      assert.equal(found && formatHostPort(found), want);
    });
  }
});

Deno.test("isHealthy() takes an answer to its own query alone", none, () => {
  const query = healthQuery(0x1234);
  const answer = (change: (packet: Uint8Array) => void = () => {}) => {
    const packet = new Uint8Array([...query, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]);
    packet[2] |= 0x80;
    packet[7] = 1;
    change(packet);
    return packet;
  };
  assert.ok(isHealthy(answer(), query));
  assert.ok(!isHealthy(answer((p) => p[0] ^= 1), query), "another ID");
  assert.ok(!isHealthy(answer((p) => p[3] |= 2), query), "SERVFAIL");
  assert.ok(!isHealthy(answer((p) => p[2] &= 0x7f), query), "a query");
  assert.ok(!isHealthy(query, query), "itself");
  const empty = query.slice();
  empty[2] |= 0x80;
  assert.ok(!isHealthy(empty, query), "no answer in it");
  const other = encodeQuery("other.svc.test", Qtype.A, { id: 0x1234 });
  const mixed = new Uint8Array([...other, ...answer().subarray(query.length)]);
  mixed[2] |= 0x80;
  mixed[7] = 1;
  assert.ok(!isHealthy(mixed, query), "another question");
  assert.ok(!isHealthy(new Uint8Array(3), query), "no message");
});
