// Goal: records of the operator's own are answered as a zone's server would. Method: dig against a running
// service whose upstream says that it was asked.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import { PERMISSIONS, runProgram, Service } from "./harness.ts";

/** Long enough for three strings, and for TCP beside others. */
const LONG = "k=rsa; p=" + "x".repeat(600);

const RECORDS: readonly (readonly [name: string, type: string, value: string])[] = [
  ["nas.example", "A", "192.168.1.5"],
  ["nas.example", "AAAA", "fd00::5"],
  ["nas.example", "TXT", "the box below the stairs; ü"],
  ["nas.example", "CAA", "0 issue letsencrypt.org"],
  ["nas.example", "HTTPS", "1 . alpn=h2,h3 port=8443 ipv4hint=192.168.1.5"],
  ["home.example", "MX", "10 mail.home.example"],
  ["home.example", "MX", "20 nas.example."],
  ["_ldap._tcp.home.example", "SRV", "0 5 389 nas.example"],
  ["key._domainkey.home.example", "TXT", LONG],
  ["*.wild.example", "TXT", '"a" "b c"'],
  ["9.1.168.192.in-addr.arpa", "PTR", "printer.example"],
  ["printer.example", "A", "192.168.1.9"],
  ["printer2.example", "A", "192.168.1.9"],
  ["_dns.example", "SVCB", "1 dns.example alpn=dot"],
];

const ANSWERS: readonly (readonly [question: string, want: string])[] = [
  ["nas.example A", "192.168.1.5"],
  ["nas.example TXT", '"the box below the stairs; \\195\\188"'],
  ["nas.example CAA", '0 issue "letsencrypt.org"'],
  ["nas.example HTTPS", '1 . alpn="h2,h3" port=8443 ipv4hint=192.168.1.5'],
  ["nas.example MX", ""],
  ["home.example MX", "10 mail.home.example.\n20 nas.example."],
  ["_LDAP._tcp.home.example SRV", "0 5 389 nas.example."],
  [
    "key._domainkey.home.example TXT",
    [LONG.slice(0, 255), LONG.slice(255, 510), LONG.slice(510)].map((s) => `"${s}"`).join(" "),
  ],
  ["x.wild.example TXT", '"a" "b c"'],
  ["_dns.example SVCB", '1 dns.example. alpn="dot"'],
  ["-x 192.168.1.5", "nas.example."],
  ["-x fd00::5", "nas.example."],
  ["-x 192.168.1.9", "printer.example."],
];

Deno.test("records of every type are answered", { permissions: PERMISSIONS }, async (t) => {
  await using upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
  await using service = await Service.start({
    config: { upstream: [{ address: upstream.text }] },
  });
  const api = await Api.of(service);
  for (const [name, type, value] of RECORDS) await api.create("records", { name, type, value });
  for (const [question, want] of ANSWERS) {
    await t.step(question, async () => {
      const args = ["@127.0.0.1", "-p", `${service.address.port}`, "+short", "+notcp"];
      const { stdout } = await runProgram("dig", ...args, ...question.split(" "));
      const lines = stdout.trim().split("\n").sort().join("\n");
      assert.equal(lines, want);
    });
  }
  assert.deepEqual(upstream.seen.filter(({ name }) => !name.startsWith("health")), []);
  await t.step("explain shows them", async () => {
    const { outcome, records } = await api.call("GET", "explain?name=home.example&type=MX");
    assert.deepEqual([outcome, records], ["local", ["10 mail.home.example", "20 nas.example"]]);
  });
  await t.step("a value that is none says what one looks like", async () => {
    const { status, error } = await api.call("POST", "records", {
      name: "home.example",
      type: "MX",
      value: "mail.home.example",
    });
    assert.equal(status, 422);
    assert.deepEqual(error.details, [{
      path: "value",
      message: "it is no mail server: write a preference and a name, such as 10 mail.example",
    }]);
  });
});
