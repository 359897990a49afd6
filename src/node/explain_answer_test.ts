import assert from "node:assert/strict";
import type { Config } from "../config/mod.ts";
import { parseName } from "../dns/mod.ts";
import type { DnsUpstream } from "../isolate/mod.ts";
import { askedOf } from "./explain_answer.ts";

const none = { permissions: "none" } as const;

function upstream(address: string, more: Partial<DnsUpstream>): DnsUpstream {
  const endpoint = { ip: new Uint8Array(4), port: 53 };
  return { transport: "udp", address, endpoint, timeoutMs: 1, domains: [], ...more } as DnsUpstream;
}

const LAN = upstream("192.168.1.1", { domains: [parseName("lan")!] });
const FAMILY = upstream("192.0.2.2", { name: "family", groupsOnly: true });
const ALL = [upstream("192.0.2.1", {}), FAMILY, LAN];

Deno.test("askedOf() says who is asked for a client of a group", none, () => {
  const CASES = [
    // While forwarding, and while recursing: upstreams that are for every name are not asked then.
    [false, [], "www.example", "forwarded 192.0.2.1"],
    [false, ["family"], "www.example", "forwarded 192.0.2.2 family"],
    [false, ["family"], "nas.lan", "forwarded 192.168.1.1"],
    [false, ["elsewhere"], "www.example", "forwarded "],
    [false, [], "192.0.2.9", "forwarded nobody"],
    [true, [], "www.example", "recursed nobody"],
    [true, [], "NAS.lan", "forwarded 192.168.1.1"],
    [true, ["family"], "www.example", "forwarded 192.0.2.2 family"],
    [true, [], "192.0.2.9", "recursed nobody"],
    [false, [], "db.corp.example", "forwarded "],
    [true, [], "db.corp.example", "forwarded "],
  ] as const;
  for (const [enabled, groupUpstreams, name, want] of CASES) {
    const config = { recursion: { enabled } } as Pick<Config, "recursion">;
    const upstreams = {
      asked: enabled ? [FAMILY, LAN] : ALL,
      lostDomains: [parseName("corp.example")!],
    };
    const { outcome, upstreams: asked } = askedOf(config, upstreams, { name, groupUpstreams });
    const told = asked?.map(({ address, name }) => [address, name].filter(Boolean).join(" "));
    assert.equal(`${outcome} ${told?.join(", ") ?? "nobody"}`, want, `${name} ${groupUpstreams}`);
  }
});
