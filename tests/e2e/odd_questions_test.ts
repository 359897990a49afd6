// Goal: no text in the address of a request, however odd, makes the service fail or stop doing anything
// else. Method: the running service; each parameter of each GET of its own document with each text.
import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Api } from "./api.ts";
import { ask } from "./clients.ts";
import { FakeUpstream } from "./fake_upstream.ts";
import { PERMISSIONS, Service, until } from "./harness.ts";

/** What no reader of a text thinks of, as it stands in an address. */
const ODD = [
  ...["", "%00", "a%00b", "abc%00", "%00%00%00", "abc%00%27%20OR%201=1", "%22%00%22", "%27", "%22"],
  ...["%25", "_", "*", "?", "%5B", "%5D%5B", "%5C", "..", "%2e%2e%2f", ".", "%26", "%23", "%0D%0A"],
  ...["%ED%A0%80", "%FF", "%ZZ", "%F0%9F%98%80", "%E2%80%AE", "null", "-1", "0", "1e3", "1.5"],
  ...["9".repeat(400), "9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00%2B23:59", "::/0", "::1"],
  ...["10.0.0.0/33", "true", "1d", "name", "udp", "blocked,blocked", "TYPE65535", "__proto__"],
  ...["a.".repeat(127), "x".repeat(4_000)],
];

/** They ask servers of the public; or have no end, and of those there are but a few at a time. */
const LEFT_OUT = [
  "/api/v1/lists/recommended/sizes",
  "/api/v1/lists/directory",
  "/api/v1/querylog/stream",
  "/api/v1/events",
];

interface Described {
  readonly paths: Readonly<
    Record<string, {
      readonly get?: { readonly parameters?: readonly { readonly name: string; in: string }[] };
    }>
  >;
}

/** The addresses of one path with a text in it, at each place that takes one. */
function addressesOf(path: string, names: readonly string[], text: string): string[] {
  const plain = path.replace(/\{\w+\}/, "x");
  const given = (name: string) => {
    const required = path.endsWith("/explain") && name !== "name" ? "name=www.example&" : "";
    return `${plain}?${required}${name}=${text}`;
  };
  return [...(plain === path ? [] : [path.replace(/\{\w+\}/, text)]), ...names.map(given)];
}

Deno.test("no text in an address makes the service fail", {
  permissions: PERMISSIONS,
}, async () => {
  await using upstream = await FakeUpstream.start();
  await using service = await Service.start({ config: { upstream: [{ address: upstream.text }] } });
  const api = await Api.of(service);
  for (const name of ["www.example", "*.example", "a'b.example"]) {
    await ask(service.address, name, Qtype.A);
  }
  const failed: string[] = [];
  const get = async (address: string) => {
    const response = await fetch(new URL(api.base).origin + address);
    const text = await response.text();
    if (response.status < 500) return;
    failed.push(`${response.status} ${address.slice(0, 100)} ${text.slice(0, 200)}`);
  };
  const { paths }: Described = await api.call("GET", "openapi.json");
  let sent = 0;
  for (const [path, { get: described }] of Object.entries(paths)) {
    if (described === undefined || LEFT_OUT.some((one) => path.startsWith(one))) continue;
    const names = (described.parameters ?? []).filter((one) => one.in === "query")
      .map(({ name }) => name);
    for (const text of ODD) {
      const addresses = addressesOf(path, names, text);
      await Promise.all(addresses.map(get));
      sent += addresses.length;
    }
  }
  assert.deepEqual(failed, []);
  assert.ok(sent > 1_000, `${sent} requests`);
  await ask(service.address, "after.example", Qtype.A);
  await until("it is logged", async () => {
    const { entries } = await api.call("GET", "querylog?name=after");
    return entries.length === 1;
  });
  assert.deepEqual((await api.call("GET", "status")).problems, []);
  service.assertCalm();
});
