import assert from "node:assert/strict";
import { parseConfig } from "./parse.ts";

const none = { permissions: "none" } as const;
const OPTIONS = { file: "svc.toml", directory: "/etc/svc" };

function querylog(text: string) {
  const { draft, problems } = parseConfig(text, OPTIONS);
  return {
    querylog: draft!.querylog,
    problems: problems.map(({ key, message }) => `${key} ${message}`),
  };
}

Deno.test("[querylog.dnstap] says where a receiver is", none, async (t) => {
  const targets = [
    ["unix:/run/dnstap.sock", { kind: "unix", path: "/run/dnstap.sock" }],
    ["unix:///run/dnstap.sock", { kind: "unix", path: "/run/dnstap.sock" }],
    ["unix:tap/dnstap.sock", { kind: "unix", path: "/etc/svc/tap/dnstap.sock" }],
    ["tcp://192.0.2.1", { kind: "tcp", host: "192.0.2.1", port: 6000, serverName: "192.0.2.1" }],
    ["tcp://[2001:db8::1]:7", {
      kind: "tcp",
      host: "2001:db8::1",
      port: 7,
      serverName: "2001:db8::1",
    }],
    ["TLS://Tap.Example:6001", {
      ...{ kind: "tls", host: "tap.example", port: 6001, serverName: "tap.example" },
    }],
    ["tls://192.0.2.1#tap.example", {
      ...{ kind: "tls", host: "192.0.2.1", port: 6000, serverName: "tap.example" },
    }],
  ] as const;
  for (const [address, target] of targets) {
    await t.step(address, () => {
      const read = querylog(`[querylog.dnstap]\naddress = "${address}"`);
      assert.deepEqual(read.problems, []);
      assert.deepEqual(read.querylog.dnstap?.target, target);
      assert.equal(read.querylog.dnstap?.outcomes, null);
    });
  }
});

const WRONG = [
  ['[querylog.dnstap]\nidentity = "attic"', /^querylog\.dnstap\.address is missing/],
  [
    '[querylog.dnstap]\naddress = "udp://192.0.2.1"',
    /address is "udp:.*not a receiver of dnstap: write/,
  ],
  ['[querylog.dnstap]\naddress = "192.0.2.1:6000"', /not a receiver of dnstap: write/],
  ['[querylog.dnstap]\naddress = "tcp://192.0.2.1:70000"', /has the port 70000, out of range/],
  ['[querylog.dnstap]\naddress = "tcp://192.0.2.1#tap"', /name behind #, which is for tls:/],
  ['[querylog.dnstap]\naddress = "tcp://192.0.2.1"\nca = "x"', /ca is for tls:\/\/ receivers/],
  [`[querylog.dnstap]\naddress = "unix:/${"x".repeat(107)}"`, /longer than the 107 bytes/],
  [
    '[querylog.dnstap]\naddress = "unix:/x"\noutcomes = ["all"]',
    /outcomes\[0\] is "all", not "forwarded"/,
  ],
  [
    '[querylog.dnstap]\naddress = "unix:/x"\noutcomes = []',
    /outcomes names no outcome: take it away/,
  ],
  ['[querylog.dnstap]\naddress = "unix:/x"\nformat = 1', /format is an unknown key/],
  ["[querylog.otlp]", /^querylog\.otlp\.endpoint is missing/],
  ['[querylog.otlp]\nendpoint = "https://ann:x@c.example"', /holds a user name or password/],
  [
    '[querylog]\nenabled = false\n[querylog.otlp]\nendpoint = "https://c.example"',
    /otlp sends nothing/,
  ],
] as const;

Deno.test("[querylog.dnstap] and [querylog.otlp] are read strictly", none, async (t) => {
  for (const [text, message] of WRONG) {
    await t.step(text, () => {
      const { problems } = querylog(text);
      assert.equal(problems.length, 1, problems.join("\n"));
      assert.match(problems[0], message);
    });
  }
});

Deno.test("[querylog.otlp] is read as [telemetry] is", none, () => {
  const { querylog: { otlp }, problems } = querylog(`[querylog.otlp]
endpoint = "https://collector.example:4318"
headers_file = "headers"
ca_file = "/etc/ca.pem"
outcomes = ["blocked", "failed"]`);
  assert.deepEqual(problems, []);
  assert.deepEqual(otlp, {
    endpoint: "https://collector.example:4318/",
    headersFile: "/etc/svc/headers",
    caFile: "/etc/ca.pem",
    outcomes: ["blocked", "failed"],
  });
});
