import assert from "node:assert/strict";
import { fileLimit, openHost, raiseFileLimit } from "./mod.ts";

const host = openHost();

Deno.test({
  name: "raiseFileLimit() raises the soft limit to the hard one",
  permissions: { ffi: true },
  ignore: host === null,
  fn: () => {
    const before = fileLimit(host!);
    assert.ok(before !== null);
    const { soft, hard } = before;
    const set = (to: number) => {
      const limits = new Uint8Array(BigUint64Array.of(BigInt(to), BigInt(hard)).buffer);
      assert.equal(host!.setrlimit(7, limits), 0);
    };
    set(Math.min(hard, 512));
    try {
      assert.deepEqual(raiseFileLimit(host!), { soft: hard, hard });
      assert.deepEqual(fileLimit(host!), { soft: hard, hard });
      assert.deepEqual(raiseFileLimit(host!), { soft: hard, hard }, "it is there already");
    } finally {
      set(soft);
    }
  },
});
