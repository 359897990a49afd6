/** What readers of the API that read nothing cost a running service. */
import assert from "node:assert/strict";
import { RawClient } from "../raw_client.ts";
import { Api } from "./api.ts";
import { Asker } from "./asker.ts";
import { PERMISSIONS, Service, until } from "./harness.ts";

const RULES = 20_000;
const READERS = 32;
const MIB = 1024 * 1024;
/** Room for the answer and what it is made of, once: 32 copies of it alone would be 200 MiB. */
const GROWTH_BYTES_MAX = 96 * MIB;

Deno.test("readers of 20,000 rules that read nothing share one answer", {
  permissions: PERMISSIONS,
}, async () => {
  const rules = Array.from({ length: RULES }, (_, i) => `||host-${i}.ads.example^`);
  await using service = await Service.start({
    config: { filter: { default_lists: false, services: false, directory: false, rules } },
  });
  const api = await Api.of(service);
  const { hostname, port } = new URL(api.base);
  using asker = await Asker.open(service.address);
  const { items } = await api.call("GET", "rules");
  assert.equal(items.length, RULES);
  const before = await service.residentBytes();
  const clients = await Promise.all(
    Array.from({ length: READERS }, () => RawClient.open(Number(port), hostname)),
  );
  let highest = before;
  try {
    const request = `GET /api/v1/rules HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`;
    for (const client of clients) await client.write(request.repeat(100));
    for (let i = 0; i < 20; i++) {
      const answer = await asker.ask(`host-${i}.ads.example`);
      assert.deepEqual(answer.records, ["A 0.0.0.0"]);
      highest = Math.max(highest, await service.residentBytes());
    }
    // Silent readers are ended; the last one has been answered when its connection is over.
    for (const client of clients) {
      const head = await client.read();
      assert.match(head, /^HTTP\/1\.1 200 /);
    }
    await until("room for others", async () => (await api.call("GET", "health")).status === "ok");
    highest = Math.max(highest, await service.residentBytes());
  } finally {
    for (const client of clients) client[Symbol.dispose]();
  }
  const growth = highest - before;
  assert.ok(growth < GROWTH_BYTES_MAX, `it grew by ${Math.round(growth / MIB)} MiB`);
  service.assertCalm();
});
