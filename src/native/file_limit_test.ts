import assert from "node:assert/strict";
import { fileLimit, openNative, raiseFileLimit } from "./mod.ts";

const native = openNative();

Deno.test({
  name: "raiseFileLimit() raises the soft limit to the hard one",
  permissions: { ffi: true },
  ignore: native === null,
  fn: () => {
    const before = fileLimit(native!);
    assert.ok(before !== null);
    const { soft, hard } = before;
    const set = (to: number) => {
      const limits = new Uint8Array(BigUint64Array.of(BigInt(to), BigInt(hard)).buffer);
      assert.equal(native!.setrlimit(7, limits), 0);
    };
    set(Math.min(hard, 512));
    try {
      assert.deepEqual(raiseFileLimit(native!), { soft: hard, hard });
      assert.deepEqual(fileLimit(native!), { soft: hard, hard });
      assert.deepEqual(raiseFileLimit(native!), { soft: hard, hard }, "it is there already");
    } finally {
      set(soft);
    }
  },
});
