import assert from "node:assert/strict";
import { clientIdOf, readClientId } from "./client_id.ts";

const DOMAIN = "dns.svc.test";
const CASES: readonly (readonly [serverName: string | null, domain: string | null, id: string])[] =
  [
    ["phone.dns.svc.test", DOMAIN, "phone"],
    ["PHONE.DNS.Svc.Test", DOMAIN, "phone"],
    ["phone-2.dns.svc.test", "DNS.svc.test", "phone-2"],
    [`${"x".repeat(63)}.dns.svc.test`, DOMAIN, "x".repeat(63)],
    [`${"x".repeat(64)}.dns.svc.test`, DOMAIN, "none"],
    ["dns.svc.test", DOMAIN, "none"],
    [".dns.svc.test", DOMAIN, "none"],
    ["a.b.dns.svc.test", DOMAIN, "none"],
    ["phonedns.svc.test", DOMAIN, "none"],
    ["my_phone.dns.svc.test", DOMAIN, "none"],
    ["phone.dns.example", DOMAIN, "none"],
    ["", DOMAIN, "none"],
    [null, DOMAIN, "none"],
    ["phone.dns.svc.test", null, "none"],
  ];

function show(id: Uint8Array | null): string {
  return id === null ? "none" : new TextDecoder().decode(id);
}

Deno.test("clientIdOf() takes the label before the domain", { permissions: "none" }, async (t) => {
  for (const [serverName, domain, id] of CASES) {
    await t.step(`${serverName} of ${domain}`, () => {
      assert.equal(show(clientIdOf(serverName, domain)), id);
    });
  }
});

Deno.test("readClientId() takes labels in any case", { permissions: "none" }, () => {
  assert.deepEqual(["Tablet", "", "a b", "ä", "a/b"].map((text) => show(readClientId(text))), [
    ...["tablet", "none", "none", "none", "none"],
  ]);
});
