import assert from "node:assert/strict";
import { EmbeddingPrefix, formatIp, isPrivateAt, parseIp, parsePrefix } from "./mod.ts";

const none = { permissions: "none" } as const;

/** RFC 6052 §2.4. */
const TABLE = [
  ["2001:db8::/32", "2001:db8:c000:221::"],
  ["2001:db8:100::/40", "2001:db8:1c0:2:21::"],
  ["2001:db8:122::/48", "2001:db8:122:c000:2:2100::"],
  ["2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"],
  ["2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100:0"],
  ["2001:db8:122:344::/96", "2001:db8:122:344::c000:221"],
  ["64:ff9b::/96", "64:ff9b::c000:221"],
] as const;

Deno.test(
  "EmbeddingPrefix puts an IPv4 address behind each length, and finds it again",
  none,
  () => {
    for (const [prefix, want] of TABLE) {
      const embedding = new EmbeddingPrefix(parsePrefix(prefix)!);
      const target = new Uint8Array(20).fill(0xff);
      embedding.embed(Uint8Array.of(9, 192, 0, 2, 33), 1, target, 2);
      assert.equal(formatIp(target.slice(2, 18)), formatIp(parseIp(want)!), prefix);
      assert.deepEqual([...embedding.extract(target, 2)!], [192, 0, 2, 33]);
      assert.equal(embedding.extract(parseIp("2001:db9::1")!, 0), null);
      assert.equal(embedding.isWellKnown, prefix.startsWith("64:"));
    }
  },
);

Deno.test("isPrivateAt() sees through an embedding prefix", none, () => {
  const embedding = new EmbeddingPrefix(parsePrefix("2001:db8:122:344::/64")!);
  for (const [ip, want] of [["192.168.1.1", true], ["192.0.2.33", false]] as const) {
    const target = new Uint8Array(16);
    embedding.embed(parseIp(ip)!, 0, target, 0);
    assert.equal(isPrivateAt(target, 0, 16, embedding), want);
    assert.equal(isPrivateAt(target, 0, 16), false);
  }
});
