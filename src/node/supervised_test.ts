// Goal: a supervisor is told that all is well while DNS answers, and only then. Method: a server that
// answers the health check, then keeps silent, then answers again.
import assert from "node:assert/strict";
import { getU16 } from "../bytes/mod.ts";
import { until } from "../../tests/e2e/harness.ts";
import { feedWatchdog } from "./supervised.ts";

const LOOPBACK = new Uint8Array([127, 0, 0, 1]);

Deno.test({
  name: "feedWatchdog() feeds it only while DNS answers",
  permissions: { net: true, ffi: true, read: true },
  ignore: Deno.build.os !== "linux",
}, async () => {
  const udp = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  const { port } = udp.addr as Deno.NetAddr;
  const silentlyAsked = new Set<number>();
  let isSilent = false;
  const serving = (async () => {
    for await (const [query, from] of udp) {
      if (isSilent) {
        silentlyAsked.add(getU16(query, 0));
        continue;
      }
      const answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...LOOPBACK];
      const response = new Uint8Array([...query, ...answer]);
      response[2] |= 0x80;
      response[7] = 1;
      await udp.send(response, from);
    }
  })();
  let told = 0;
  const notifier = { watchdogMs: 60, alive: () => void told++ };
  const end = await feedWatchdog(notifier, [{ ip: LOOPBACK, port }]);
  await until("it is fed", () => told > 2);
  isSilent = true;
  // The first look may have begun before; so many questions are more than one.
  await until("a look that fails", () => silentlyAsked.size > 4);
  const before = told;
  await until("one more", () => silentlyAsked.size > 8);
  assert.equal(told, before);
  isSilent = false;
  await until("it is fed again", () => told > before + 2);
  end();
  udp.close();
  await serving;
});
