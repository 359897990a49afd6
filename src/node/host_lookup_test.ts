import assert from "node:assert/strict";
import { Qtype } from "../dns/mod.ts";
import { SvcError } from "../errors.ts";
import { hostLookup } from "./host_lookup.ts";

const none = { permissions: "none" } as const;
const { signal } = new AbortController();

/** Looks a host up whose families are these addresses, or fail. */
function lookUp(v4: readonly string[] | null, v6: readonly string[] | null) {
  const asked: [string, number][] = [];
  const found = hostLookup({
    lookup: (hostname, qtype) => {
      asked.push([hostname, qtype]);
      const addresses = qtype === Qtype.A ? v4 : v6;
      if (addresses === null) return Promise.reject(new SvcError("unavailable", `no ${qtype}`));
      return Promise.resolve({ addresses, ttl: 60, failure: null });
    },
  })("lists.example", signal);
  return { asked, found };
}

Deno.test("hostLookup() asks for both families and tells IPv4 first", none, async () => {
  const { asked, found } = lookUp(["192.0.2.1", "192.0.2.2"], ["2001:db8::1"]);
  assert.deepEqual(await found, ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
  assert.deepEqual(asked, [["lists.example", Qtype.A], ["lists.example", Qtype.AAAA]]);
  assert.deepEqual(await lookUp([], []).found, []);
});

Deno.test(
  "hostLookup() fails where no family has an address and one has no answer",
  none,
  async () => {
    assert.deepEqual(await lookUp(null, ["2001:db8::1"]).found, ["2001:db8::1"]);
    assert.deepEqual(await lookUp(["192.0.2.1"], null).found, ["192.0.2.1"]);
    for (const [v4, v6] of [[null, null], [[], null]] as const) {
      await assert.rejects(
        lookUp(v4, v6).found,
        (error) => error instanceof SvcError && error.code === "unavailable",
      );
    }
  },
);
