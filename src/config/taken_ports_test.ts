import assert from "node:assert/strict";
import { parseHostPort } from "../addr/mod.ts";
import { anybodyInTheWay, stubInTheWay } from "./taken_ports.ts";

const hosts = (...texts: string[]) => texts.map((text) => parseHostPort(text)!);
const none = { permissions: "none" } as const;

Deno.test("stubInTheWay() tells where systemd-resolved has the port, and the mend", none, () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["0.0.0.0:53", "127.0.0.53:53", true],
    ["127.0.0.53:53", "127.0.0.53:53", true],
    ["0.0.0.0:53", "127.0.0.54:53", true],
    ["0.0.0.0:1053", "127.0.0.53:53", false],
    ["192.0.2.1:53", "127.0.0.53:53", false],
    ["[::]:53", "127.0.0.53:53", false],
    ["0.0.0.0:53", "192.0.2.1:53", false],
  ];
  for (const [own, taken, isInTheWay] of cases) {
    const found = stubInTheWay(hosts("[2001:db8::1]:53", own), hosts(taken));
    assert.equal(found?.index ?? null, isInTheWay ? 1 : null, `${own} ${taken}`);
    if (found !== null) {
      assert.ok(found.message.startsWith(`${own} is taken by systemd-resolved at ${taken}: `));
      assert.match(found.message, /DNSStubListener=no.*systemctl restart systemd-resolved$/);
    }
  }
});

Deno.test("anybodyInTheWay() tells of each other program as well", none, () => {
  const cases: readonly (readonly [string, string, RegExp | null])[] = [
    ["0.0.0.0:53", "192.0.2.1:53", /another program: .*'sport = :53'/],
    ["192.0.2.1:53", "0.0.0.0:53", /another program/],
    ["[::]:53", "[2001:db8::1]:53", /another program/],
    ["0.0.0.0:53", "127.0.0.53:53", /systemd-resolved/],
    ["0.0.0.0:53", "[::]:53", null],
    ["0.0.0.0:0", "0.0.0.0:0", null],
  ];
  for (const [own, taken, wanted] of cases) {
    const found = anybodyInTheWay(hosts(own), hosts(taken));
    if (wanted === null) assert.equal(found, null, own);
    else assert.match(found?.message ?? "", wanted);
  }
});
