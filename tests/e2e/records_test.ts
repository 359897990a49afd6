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

/** What a zone of one's own says: the status, and the answer. */
const ZONE = [
  ["lan.example SOA", "NOERROR ns.lan.example. admin.lan.example. 1 3600 600 86400 300"],
  ["LAN.example A", "NOERROR"],
  ["nas.lan.example A", "NOERROR 192.168.1.7"],
  ["gone.lan.example A", "NXDOMAIN"],
  ["gone.lan.example ANY", "NXDOMAIN"],
  ["deep.gone.lan.example AAAA", "NXDOMAIN"],
  ["below.nas.lan.example A", "NXDOMAIN"],
  ["attic.lan.example A", "NOERROR"],
  ["b.attic.lan.example A", "NOERROR"],
  ["a.b.attic.lan.example A", "NOERROR 192.168.1.8"],
  ["any.wild.lan.example A", "NOERROR 192.168.1.6"],
  ["any.wild.lan.example AAAA", "NOERROR"],
  ["wild.lan.example A", "NOERROR"],
  ["alias.lan.example A", "NXDOMAIN gone.lan.example."],
] as const;
const ZONE_RECORDS: typeof RECORDS = [
  ["lan.example", "SOA", "ns.lan.example admin.lan.example 1 3600 600 86400 300"],
  ["nas.lan.example", "A", "192.168.1.7"],
  ["a.b.attic.lan.example", "A", "192.168.1.8"],
  ["*.wild.lan.example", "A", "192.168.1.6"],
  ["alias.lan.example", "CNAME", "gone.lan.example"],
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
  await t.step("a zone of one's own has the names that it has, and no others", async () => {
    for (const [name, type, value] of ZONE_RECORDS) {
      await api.create("records", { name, type, value });
    }
    for (const [question, want] of ZONE) {
      const args = ["@127.0.0.1", "-p", `${service.address.port}`, "+notcp"];
      const { stdout } = await runProgram("dig", ...args, ...question.split(" "));
      const answers = [...stdout.matchAll(/^\S+\s+\d+\s+IN\s+(?:A|CNAME|SOA)\s+(.*)$/gm)];
      const said = /;; ANSWER SECTION:/.test(stdout) ? answers.map(([, rdata]) => rdata) : [];
      const status = /status: (\w+)/.exec(stdout)?.[1];
      const negative = said.length === 0 || status === "NXDOMAIN";
      assert.equal([status, ...said.slice(0, 1)].join(" "), want, question);
      assert.equal(
        negative,
        / SOA|\tSOA/.test(stdout.split("AUTHORITY SECTION")[1] ?? ""),
        question,
      );
    }
    assert.deepEqual(upstream.seen.filter(({ name }) => name.includes("lan.example")), []);
    const { records } = await api.call("GET", "explain?name=gone.lan.example&type=A");
    assert.deepEqual(records, ["NXDOMAIN"]);
    const { status } = await api.call("POST", "records", {
      name: "*.lan.example",
      type: "SOA",
      value: "ns.lan.example admin.lan.example 1 3600 600 86400 300",
    });
    assert.equal(status, 422);
  });
  await t.step("explain shows them", async () => {
    const { outcome, records } = await api.call("GET", "explain?name=home.example&type=MX");
    assert.deepEqual([outcome, records], ["local", ["10 mail.home.example", "20 nas.example"]]);
  });
  await t.step("explain looks behind a CNAME, as queries do", async () => {
    await api.create("records", { name: "out.example", type: "CNAME", value: "www.else.example" });
    const explained = async () => {
      const { outcome, target, rule, records, upstreams } = await api.call(
        "GET",
        "explain?name=out.example&type=A",
      );
      assert.equal(target, "www.else.example");
      return [
        outcome,
        rule,
        records,
        upstreams?.map(({ address }: { address: string }) => address),
      ];
    };
    const dug = async () => {
      const args = ["@127.0.0.1", "-p", `${service.address.port}`, "+short", "out.example"];
      return (await runProgram("dig", ...args)).stdout.trim().split("\n");
    };
    const target = "www.else.example";
    assert.deepEqual(await explained(), ["forwarded", null, [target], [upstream.text]]);
    assert.deepEqual(await dug(), [`${target}.`, "192.0.2.7"]);
    await api.create("rules", { rule: "||else.example^" });
    const blocked = ["blocked", "||else.example^", [target, "0.0.0.0"], undefined];
    assert.deepEqual(await explained(), blocked);
    assert.deepEqual(await dug(), [`${target}.`, "0.0.0.0"]);
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
