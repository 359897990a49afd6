import assert from "node:assert/strict";
import { parseIp, reverseName } from "./mod.ts";

const none = { permissions: "none" } as const;

Deno.test("reverseName() is the name of an address in the reverse zone", none, () => {
  assert.equal(reverseName(parseIp("192.0.2.7")!), "7.2.0.192.in-addr.arpa");
  assert.match(
    reverseName(parseIp("2001:db8::1")!),
    /^1\.0\.0\..*8\.b\.d\.0\.1\.0\.0\.2\.ip6\.arpa$/,
  );
});
