import assert from "node:assert/strict";
import { decodeHex, encodeHex } from "../bytes/mod.ts";
import { parseIp } from "../addr/mod.ts";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { readAdvertisement, VRRP_GROUP, writeAdvertisement } from "./mod.ts";

const none = { permissions: "none" } as const;
const ip = (text: string) => parseIp(text) as Uint8Array<ArrayBuffer>;
const GROUP = { routerId: 51, address: ip("198.18.0.100") };

/** As keepalived 2.2.7 sends them: IP header, message, and what they say. */
const CAPTURED = [
  ["45c0002000010000ff701487c6120001e0000012", "313396010064cb4dc6120064", 150],
  ["45c0002000060000ff701482c6120001e0000012", "313300010064614ec6120064", 0],
  ["45c0002000010000ff701486c6120002e0000012", "313364010064fd4cc6120064", 100],
  ["45c0002000050000ff701482c6120002e0000012", "313300010064614dc6120064", 0],
  ["45c0002000010000ff702e85c6120001c6120002", "313396010064e54bc6120064", 150],
  ["45c0002000040000ff702e82c6120001c6120002", "3133000100647b4cc6120064", 0],
] as const;

Deno.test("readAdvertisement() and writeAdvertisement() agree with keepalived", none, async (t) => {
  for (const [header, message, priority] of CAPTURED) {
    await t.step(message, () => {
      const packet = decodeHex(header + message)!;
      const [source, destination] = [packet.slice(12, 16), packet.slice(16, 20)];
      const advertisement = { priority, intervalMs: 1_000 };
      assert.deepEqual(readAdvertisement(packet, { ...GROUP, peer: source }), {
        kind: "advertisement",
        advertisement,
      });
      const written = writeAdvertisement(advertisement, GROUP, source, destination);
      assert.equal(encodeHex(written), message);
    });
  }
});

const PEER = ip("198.18.0.1");

/** A packet of the peer, changed before and after its checksum was made. */
function packet(change: {
  readonly header?: (header: Uint8Array) => void;
  readonly message?: (message: Uint8Array) => void;
  readonly late?: (message: Uint8Array) => void;
  readonly lengthBytes?: number;
  readonly source?: string;
}): Uint8Array {
  const source = change.source === undefined ? PEER : ip(change.source);
  const header = decodeHex("45c0002000010000ff70000000000000e0000012")!;
  header.set(source, 12);
  change.header?.(header);
  const first = writeAdvertisement({ priority: 100, intervalMs: 1_000 }, GROUP, source, VRRP_GROUP);
  const message = new Uint8Array(change.lengthBytes ?? first.length);
  message.set(first.subarray(0, message.length));
  change.message?.(message);
  message[6] = message[7] = 0;
  let sum = 112 + message.length;
  for (const part of [source, VRRP_GROUP, message]) {
    for (let i = 0; i < part.length; i++) sum += i % 2 === 0 ? part[i] << 8 : part[i];
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  message[6] = (~sum >> 8) & 0xff;
  message[7] = ~sum & 0xff;
  change.late?.(message);
  const whole = new Uint8Array(20 + message.length);
  whole.set(header);
  whole.set(message, 20);
  return whole;
}

const read = (bytes: Uint8Array) => {
  const reading = readAdvertisement(bytes, { ...GROUP, peer: PEER });
  return reading.kind === "dropped" ? reading.reason : "advertisement";
};

const FORGED = [
  ["nothing changed", {}, "advertisement"],
  ["through a router", { header: (h: Uint8Array) => h[8] = 254 }, "ttl"],
  ["a TTL of 64", { header: (h: Uint8Array) => h[8] = 64 }, "ttl"],
  ["version 2", { message: (m: Uint8Array) => m[0] = 0x21 }, "version"],
  ["type 2", { message: (m: Uint8Array) => m[0] = 0x32 }, "type"],
  ["a bad checksum", { late: (m: Uint8Array) => m[7] ^= 1 }, "checksum"],
  ["a priority changed on the way", { late: (m: Uint8Array) => m[2] = 255 }, "checksum"],
  ["another router", { message: (m: Uint8Array) => m[1] = 52 }, "router_id"],
  ["another sender", { source: "198.18.0.3" }, "peer"],
  ["another address", { message: (m: Uint8Array) => m[11] = 101 }, "address"],
  ["no address", { lengthBytes: 8, message: (m: Uint8Array) => m[3] = 0 }, "address"],
  ["two addresses", { lengthBytes: 16, message: (m: Uint8Array) => m[3] = 2 }, "address"],
  ["fewer addresses than it says", { message: (m: Uint8Array) => m[3] = 2 }, "truncated"],
  ["half a header", { lengthBytes: 7 }, "truncated"],
  ["no message", { lengthBytes: 0 }, "truncated"],
  ["half an address", { lengthBytes: 10 }, "truncated"],
  ["more than it says", { lengthBytes: 16 }, "length"],
  ["no pause", { message: (m: Uint8Array) => m[4] = m[5] = 0 }, "interval"],
  ["reserved bits", { message: (m: Uint8Array) => m[4] |= 0xf0 }, "advertisement"],
  ["options of IP that are not there", { header: (h: Uint8Array) => h[0] = 0x4f }, "truncated"],
  ["a header that is too short", { header: (h: Uint8Array) => h[0] = 0x44 }, "truncated"],
] as const;

Deno.test("readAdvertisement() drops what is forged, and says why", none, async (t) => {
  for (const [what, change, want] of FORGED) {
    await t.step(what, () => assert.equal(read(packet(change)), want));
  }
});

Deno.test("readAdvertisement() takes no packet but a right one, whatever is changed", none, () => {
  const prng = new Prng(seedFromEnv());
  const right = packet({});
  for (let i = 0; i < 20_000; i++) {
    const bytes = right.slice(0, prng.chance(0.2) ? prng.int(right.length + 1) : right.length);
    for (let n = prng.int(4); n > 0 && bytes.length > 0; n--) {
      bytes[prng.int(bytes.length)] = prng.int(256);
    }
    // One's complement takes two changes that make up for each other; what they say is right then.
    if (read(bytes) !== "advertisement") continue;
    assert.deepEqual([bytes[8], [...bytes.subarray(12, 16)], bytes[21]], [255, [...PEER], 51]);
  }
});
