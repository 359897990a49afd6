import assert from "node:assert/strict";
import { formatHostPort } from "../addr/mod.ts";
import { openProcess } from "../native/system.ts";
import { listeningSockets, parseSocketTable } from "./listening.ts";

Deno.test("parseSocketTable() reads addresses of both families, of one state", {
  permissions: "none",
}, () => {
  const rows = [
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid",
    "   0: 3500007F:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101",
    "  11: 0100007F:B1A6 0100007F:1F75 01 00000000:00000000 00:00000000 00000000     0",
    "   2: 00000000000000000000000001000000:1F75 00000000000000000000000000000000:0000 0A 0",
    "not a row",
  ].join("\n");
  const found = parseSocketTable(rows, "0A").map(formatHostPort);
  assert.deepEqual(found, ["127.0.0.53:53", "[::1]:8053"]);
  assert.deepEqual(parseSocketTable(rows, "01").map(formatHostPort), ["127.0.0.1:45478"]);
});

const process = openProcess();

Deno.test("listeningSockets() finds a socket that listens, and not once it is closed", {
  permissions: { ffi: true, net: true },
  ignore: process === null,
}, () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const place = formatHostPort({
    ip: new Uint8Array([127, 0, 0, 1]),
    port: (listener.addr as Deno.NetAddr).port,
  });
  const has = () =>
    listeningSockets(process!).some((one) =>
      one.transport === "tcp" && formatHostPort(one) === place
    );
  assert.ok(has());
  listener.close();
  assert.ok(!has());
});
