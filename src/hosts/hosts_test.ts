import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { readHosts, readLeases } from "./mod.ts";

const none = { permissions: "none" } as const;
const MAC = "02:00:5e:10:00:01";

Deno.test("readHosts() takes the first name of each address that somebody has", none, () => {
  const text = [
    "127.0.0.1 localhost",
    "::1 ip6-localhost",
    "0.0.0.0 ads.example",
    "192.168.1.5\tnas.home.arpa nas # in the cellar",
    "fd00::0005 NAS.",
    "192.168.1.6 # nobody",
    "192.168.1.7 <script>",
    "nothing of this is an address",
    "",
  ].join("\n");
  assert.deepEqual(readHosts(text), [
    { address: "192.168.1.5", hostname: "nas.home.arpa", mac: null },
    { address: "fd00::5", hostname: "NAS", mac: null },
  ]);
});

Deno.test("readLeases() reads what dnsmasq, Kea and ISC dhcpd write", none, async (t) => {
  const told = (text: string) =>
    readLeases(text).map(({ address, hostname, mac }) => `${address} ${hostname} ${mac}`);
  await t.step("dnsmasq", () => {
    const text = [
      "1790000000 02:00:5E:10:00:01 192.168.1.20 tablet 01:02:00:5e:10:00:01",
      "0 02:00:5e:10:00:02 192.168.1.21 * *",
      "duid 00:01:00:01:2c:5a",
      "1790000000 84215045 fd00::21 tablet 00:01:00:01:2c:5a",
      "",
    ].join("\n");
    assert.deepEqual(told(text), [
      `192.168.1.20 tablet ${MAC}`,
      "192.168.1.21 null 02:00:5e:10:00:02",
      "fd00::21 tablet null",
    ]);
  });
  await t.step("Kea: the last line of an address stands, and takes a lease away", () => {
    const header = "address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev," +
      "hostname,state,user_context,pool_id";
    const line = (address: string, mac: string, name: string, state: number) =>
      `${address},${mac},,3600,1790000000,1,0,0,${name},${state},,0`;
    const text = [
      header,
      line("192.168.1.20", "02:00:5e:10:00:09", "former", 0),
      line("192.168.1.20", MAC, "tablet.home.arpa.", 0),
      line("192.168.1.21", MAC, "gone", 0),
      line("192.168.1.21", MAC, "gone", 2),
      line("192.168.1.22", "", "a&#x2cb", 0),
      "192.168.1.23,",
    ].join("\r\n");
    assert.deepEqual(told(text), [
      `192.168.1.20 tablet.home.arpa ${MAC}`,
      "192.168.1.22 null null",
      "192.168.1.23 null null",
    ]);
    const six = "address,duid,valid_lifetime,expire,subnet_id,pref_lifetime,lease_type,iaid," +
      `prefix_len,fqdn_fwd,fqdn_rev,hostname,hwaddr,state\nfd00::5,00:01,1,1,1,1,0,1,128,0,0,nas,${MAC},0\n`;
    assert.deepEqual(told(six), [`fd00::5 nas ${MAC}`]);
  });
  await t.step("ISC dhcpd", () => {
    const lease = (address: string, state: string, name: string) =>
      `lease ${address} {\n  starts 4 2026/01/01 00:00:00;\n  ends never;\n  binding state ${state};\n` +
      `  hardware ethernet ${MAC};\n  uid "\\001";\n  client-hostname "${name}";\n}\n`;
    const text = `# a comment\nauthoring-byte-order little-endian;\n` +
      lease("192.168.1.20", "active", "tablet") + lease("192.168.1.21", "active", "laptop") +
      lease("192.168.1.21", "free", "laptop") + "lease 192.168.1.22 {\n  binding state active;\n";
    assert.deepEqual(told(text), [`192.168.1.20 tablet ${MAC}`]);
  });
});

Deno.test("readLeases() and readHosts() take whatever a file holds", none, () => {
  const prng = new Prng(seedFromEnv());
  const words = [
    ...["lease", "{", "}", "\n", " ", ",", "192.168.1.1", "fd00::1", MAC, "binding state active;"],
    ...[
      "\u202e",
      "\0",
      "#",
      "address,hwaddr,hostname,state\n",
      "hardware ethernet",
      "&#x0a",
      '"',
      "é",
    ],
  ];
  for (let i = 0; i < 5_000; i++) {
    const text = Array.from({ length: prng.int(40) }, () => prng.pick(words)).join("");
    for (const { address, hostname, mac } of [...readLeases(text), ...readHosts(text)]) {
      assert.match(address, /^[0-9a-f.:]+$/);
      assert.ok(hostname === null || !/[\p{C}\s<>"]/u.test(hostname), JSON.stringify(text));
      assert.ok(mac === null || mac === MAC);
    }
  }
});
