import assert from "node:assert/strict";
import { formatHostPort } from "../addr/mod.ts";
import { formatProblem, parseConfig } from "./mod.ts";

const OPTIONS = { file: "svc.toml", directory: "/etc/svc" };
const none = { permissions: "none" } as const;

const GOOD = `[server.tls]
dot = ["0.0.0.0:853"]
[acme]
domains = ["DNS.Example.", "*.dns.example"]
agree_tos = true
challenge = "dns-01"
listen = ["192.0.2.5"]
api = true
eab_kid = "kid-1"
eab_key_file = "hmac"
ca_file = "ca.crt"
`;

Deno.test("parseConfig() reads [acme], whose certificate the listeners show", none, () => {
  const { config, problems } = parseConfig(GOOD, OPTIONS);
  assert.deepEqual(problems, []);
  const { acme, server, api } = config!;
  assert.deepEqual({ ...acme, listen: acme!.listen.map(formatHostPort) }, {
    directory: "https://acme-v02.api.letsencrypt.org/directory",
    email: null,
    domains: ["dns.example", "*.dns.example"],
    challenge: "dns-01",
    listen: ["192.0.2.5:53"],
    api: true,
    caFile: "/etc/svc/ca.crt",
    external: { kid: "kid-1", hmacKeyFile: "/etc/svc/hmac" },
    dir: "/var/lib/svc/acme",
    files: {
      certFile: "/var/lib/svc/acme/certificate.pem",
      keyFile: "/var/lib/svc/acme/certificate.pem",
    },
  });
  assert.deepEqual([server.tls.files, api.tls], [acme!.files, acme!.files]);
  const over = parseConfig(GOOD.replace("api = true\n", ""), OPTIONS).config!;
  assert.equal(over.api.tls, null);
});

const MINIMUM = '[acme]\ndomains = ["dns.example"]\nagree_tos = true\n';
const BAD: readonly (readonly [string, readonly string[]])[] = [
  [MINIMUM, []],
  ["[acme]\n", [
    "1: acme.domains: is missing: the table is of no use without it",
    "1: acme.agree_tos: is not true: read the authority's terms of service, and write true if you agree",
  ]],
  ["[acme]\ndomains = []\nagree_tos = true\n", [
    "2: acme.domains: names nothing: write the names of the certificate",
  ]],
  ['[acme]\ndomains = ["*.dns.example", "192.0.2.1", "dns.example"]\nagree_tos = true\n', [
    '2: acme.domains[0]: is a wildcard, which HTTP proves nothing of: write challenge = "dns-01"',
    '2: acme.domains[1]: is "192.0.2.1", not a domain name: write one such as "home.arpa", without a wildcard',
  ]],
  [`${MINIMUM}challenge = "dns-01"\n`, [
    "1: acme.listen: names nothing: write the address that the zones _acme-challenge are delegated to",
  ]],
  [`${MINIMUM}directory = "http://ca.example/"\n`, [
    "4: acme.directory: is fetched over http, which anybody on the way can change: write https",
  ]],
  [`${MINIMUM}email = "anna"\neab_kid = "x"\n`, [
    '4: acme.email: is "anna", not an address: write one such as "anna@example.org"',
    "5: acme.eab_kid: goes together with eab_key_file: set that as well",
  ]],
  [`[server.tls]\ncert = "a"\nkey = "b"\n${MINIMUM}`, [
    "2: server.tls.cert: is a second certificate beside that of [acme]: take one away",
  ]],
  [`[api]\nlisten = ["127.0.0.1:80"]\n${MINIMUM}listen = ["127.0.0.1:80"]\n`, [
    '2: api.listen[0]: is "127.0.0.1:80", which acme.listen[0] has over tcp: change one',
  ]],
];

Deno.test("parseConfig() tells what is wrong with [acme], and how to mend it", none, async (t) => {
  for (const [text, want] of BAD) {
    await t.step(text.replaceAll("\n", " ").slice(0, 70), () => {
      const { problems } = parseConfig(text, OPTIONS);
      assert.deepEqual(problems.map(formatProblem), want.map((one) => `svc.toml:${one}`));
    });
  }
});
