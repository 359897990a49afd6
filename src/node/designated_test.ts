import assert from "node:assert/strict";
import { parseConfig } from "../config/mod.ts";
import { parseRdata, Qtype } from "../dns/mod.ts";
import { designatedRecords } from "./designated.ts";

const none = { permissions: "none" } as const;

function recordsOf(toml: string): string[] {
  const parsed = parseConfig(
    `[server.tls]\ncert = "a.crt"\nkey = "a.key"\n${toml}`,
    { file: "/etc/svc/svc.toml", directory: "/etc/svc" },
  );
  assert.ok(parsed.config !== null, JSON.stringify(parsed));
  return designatedRecords(parsed.config.server.tls).map(({ name, type, value }) => {
    assert.ok(parseRdata(Qtype[type], value) !== null, value);
    return `${name} ${value}`;
  });
}

Deno.test("designatedRecords() names each encrypted listener once", none, () => {
  const name = 'server_name = "dns.home.example"\n';
  assert.deepEqual(
    recordsOf(
      `${name}dot = ["0.0.0.0:853", "[::]:853"]\ndoh = ["0.0.0.0:8443"]\ndoq = ["0.0.0.0:853"]`,
    ),
    ["_dns.resolver.arpa", "_dns.dns.home.example"].flatMap((owner) => [
      `${owner} 1 dns.home.example alpn=doq`,
      `${owner} 2 dns.home.example alpn=dot`,
      `${owner} 3 dns.home.example alpn=h2 dohpath=/dns-query{?dns} port=8443`,
    ]),
  );
});

Deno.test("designatedRecords() leads nobody to where no certificate or no answer is", none, () => {
  const name = 'server_name = "dns.home.example"\n';
  assert.deepEqual(recordsOf('dot = ["0.0.0.0:853"]'), []);
  assert.deepEqual(recordsOf(`${name}dot = ["0.0.0.0:853"]\nrequire_client_id = true`), []);
  assert.deepEqual(recordsOf(name), []);
});
