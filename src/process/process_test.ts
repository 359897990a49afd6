import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { openNative } from "../native/mod.ts";
import { openProcess, type Process } from "../native/system.ts";
import { inherit, lookUpUser } from "./mod.ts";

const process = openProcess();
const options = { permissions: { ffi: true }, ignore: process === null } as const;
const text = (value: string) => new TextEncoder().encode(`${value}\0`);

function setSockets({ symbols }: Process, value: string): void {
  symbols.setenv(text("SVC_INHERITED"), text(value), 1);
}

Deno.test("lookUpUser() finds the IDs of a user, and none of nobody", options, () => {
  assert.deepEqual(lookUpUser(process!, "root"), { uid: 0, gid: 0 });
  assert.equal(lookUpUser(process!, "no-such-user-here"), null);
});

Deno.test(
  "inherit() tells of the sockets once, and closes them to children",
  options,
  () => {
    const native = openNative()!;
    const fd = native.eventfd(0, 0);
    try {
      assert.equal(inherit(process!), null, "this is no second stage");
      setSockets(process!, JSON.stringify({ descriptors: [fd, fd], notes: null }));
      assert.deepEqual(inherit(process!)?.descriptors, [fd, fd]);
      assert.equal(native.fcntl(fd, 1, 0n), 1, "FD_CLOEXEC is set");
      assert.equal(inherit(process!), null, "nobody else finds them");
    } finally {
      native.close(fd);
    }
  },
);

Deno.test("inherit() takes no numbers that are no open descriptors", options, () => {
  const lists = ["1000000", "1.5", "-1", '"1"', "null", "1,".repeat(2_000) + "1"];
  const values = lists.map((list) => `{ "descriptors": [${list}] }`);
  for (const value of ["x", "3,4", "{}", '{ "descriptors": 3 }', "null", ...values]) {
    setSockets(process!, value);
    assert.throws(() => inherit(process!), SvcError, value.slice(0, 20));
    assert.equal(inherit(process!), null);
  }
});
