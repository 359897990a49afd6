import assert from "node:assert/strict";
import { checkFiles, type FileFacts } from "./check_files.ts";
import { formatProblem, parseConfig } from "./mod.ts";

const none = { permissions: "none" } as const;

// A CA, a certificate of dns.example and *.dns.example from it, another of the member a with the same
// key, and both keys: made for these tests
// with OpenSSL, valid from 2026-11-20 to 2126.
const CA = `-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUKCeoWyvIuWHce5h90v1nn47OE4YwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHVGVzdCBDQTAgFw0yNjExMjAyMzQ1NTFaGA8yMTI2MTAyNzIz
NDU1MVowEjEQMA4GA1UEAwwHVGVzdCBDQTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABPejAVPqv7PnD6HY1jLhYdkuOKqRre+GpX5w16Npu9yxhAPex5uaAym4RHD7
ci7igrl5LEBrqHNJnfzykgfuUS2jUzBRMB0GA1UdDgQWBBRZhwRr6HxvocWPIuhC
PzSvZvaLJTAfBgNVHSMEGDAWgBRZhwRr6HxvocWPIuhCPzSvZvaLJTAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIFL5Bq4i7xRqBlREHC0mC5uMPUcl
qI/2Fr/YFT6tycH7AiEAtPuOy3oAsvHJ+EM5QmIccf4QRlimt/RaW7hgxRXu110=
-----END CERTIFICATE-----`;
const CERT = `-----BEGIN CERTIFICATE-----
MIIBjTCCATOgAwIBAgIBAjAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAdUZXN0IENB
MCAXDTI2MTEyMDIzNDU1MVoYDzIxMjYwNzE5MjM0NTUxWjAWMRQwEgYDVQQDDAtk
bnMuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLxDFueMupVxXhNi
1EtDnC5dnqL7IIPggi4AoDHlHla/F+W28LxYUXWqjyT6Qoz5eH+NbNaY4LqPhsb1
Iwl4Z6ejdDByMCUGA1UdEQQeMByCC2Rucy5leGFtcGxlgg0qLmRucy5leGFtcGxl
MAkGA1UdEwQCMAAwHQYDVR0OBBYEFBQOy7wPI1CslhF7A9UZfhQgJ69EMB8GA1Ud
IwQYMBaAFFmHBGvofG+hxY8i6EI/NK9m9oslMAoGCCqGSM49BAMCA0gAMEUCIQDK
iZxyIdggM7wBXCmJMtLzX6wOLDRBqiLWqd+IUrPRRgIgDItRAWRSx87KlN6qnsGV
EqxL09S8zwc94JeYum/naTc=
-----END CERTIFICATE-----`;
const MEMBER = `-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIBBzAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAdUZXN0IENB
MCAXDTI2MTEyMjEzNDIxNVoYDzIxMjUwNjE2MTM0MjE1WjAMMQowCAYDVQQDDAFh
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvEMW54y6lXFeE2LUS0OcLl2eovsg
g+CCLgCgMeUeVr8X5bbwvFhRdaqPJPpCjPl4f41s1pjguo+GxvUjCXhnp6N6MHgw
DAYDVR0RBAUwA4IBYTAJBgNVHRMEAjAAMB0GA1UdJQQWMBQGCCsGAQUFBwMBBggr
BgEFBQcDAjAdBgNVHQ4EFgQUFA7LvA8jUKyWEXsD1Rl+FCAnr0QwHwYDVR0jBBgw
FoAUWYcEa+h8b6HFjyLoQj80r2b2iyUwCgYIKoZIzj0EAwIDRwAwRAIgZvUepoVq
iI/Cw1rhMPte1IQ+8Fu+Juc+1/pR+F99KewCIDDIG4atuGF/XmWHvyRh7Qi/9S/M
50yt1/XhXkvmo98O
-----END CERTIFICATE-----`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgQUTq7z1TEzXFAlSW
uh0QJKjEKU/CubbEmqBo7NIYGPOhRANCAAS8QxbnjLqVcV4TYtRLQ5wuXZ6i+yCD
4IIuAKAx5R5WvxfltvC8WFF1qo8k+kKM+Xh/jWzWmOC6j4bG9SMJeGen
-----END PRIVATE KEY-----`;
const OTHER_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgARbCQtEivkOYoCjP
EY0nm1uhbT7VPVlq2DT9jg+k7yGhRANCAAT3owFT6r+z5w+h2NYy4WHZLjiqka3v
hqV+cNejabvcsYQD3sebmgMpuERw+3Iu4oK5eSxAa6hzSZ388pIH7lEt
-----END PRIVATE KEY-----`;
const WEAK_KEY = `-----BEGIN PRIVATE KEY-----
MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgTQLqgcrhAPEk69qGrREL
meAUfdqGwLByLciFjGYgPTShRANCAASYeefVLvkBCxVazM4m4l1xJbMcjaFb4LW2
6oEn6OMv37H+r4ddf/PzKWCT78/mgW43agNOAMdLDyMZ6UPKzSvM
-----END PRIVATE KEY-----`;

const DIRECTORY = "/etc/svc";
const NOW_MS = Date.UTC(2030, 0, 1);

class Missing extends Error {
  override readonly name = "NotFound";
}
class Denied extends Error {
  override readonly name = "PermissionDenied";
}

/**
 * A disk of these files below the configuration's folder: `null` may not be read, `link TARGET` is a
 * symbolic link.
 */
function disk(files: Record<string, string | null>, nowMs = NOW_MS): FileFacts {
  const find = (path: string): string => {
    const text = files[path.replace(`${DIRECTORY}/`, "")];
    if (text === undefined) throw new Missing(path);
    if (text === null) throw new Denied(path);
    return text;
  };
  return {
    readText: (path) => Promise.try(find, path),
    stat: (path) =>
      Promise.try(() => ({
        isFile: find(path) !== "folder",
        isDirectory: find(path) === "folder",
      })),
    realPath: (path) =>
      Promise.try(() =>
        path.endsWith("/lists") ? path : find(path).match(/^link (.*)/)?.[1] ?? path
      ),
    listening: () => Promise.resolve([]),
    interfaces: () =>
      Promise.resolve([
        { name: "lo", addresses: [new Uint8Array([127, 0, 0, 1])] },
        { name: "eth0", addresses: [new Uint8Array([192, 0, 2, 1])] },
      ]),
    checkServices: (text) => {
      if (!text.startsWith("{}")) throw new Error("it is no catalogue");
    },
    nowMs: () => nowMs,
  };
}

async function problemsOf(text: string, facts: FileFacts): Promise<string[]> {
  const { draft, source } = parseConfig(text, { file: "svc.toml", directory: DIRECTORY });
  assert.ok(draft !== null);
  const problems = await checkFiles(draft, facts, source);
  return problems.map((p) => formatProblem(p) + (p.severity === "error" ? "" : ` (${p.severity})`));
}

const TLS = `[server.tls]\ncert = "a.crt"\nkey = "a.key"\nserver_name = "dns.example"\n`;
const CLUSTER = `[cluster]\nnode = "a"\nca = "ca.crt"\ncert = "a.crt"\nkey = "a.key"\n`;
const VRRP =
  `[vrrp]\ninterface = "eth0"\naddress = "192.0.2.53"\npeer = "192.0.2.2"\nrouter_id = 1\n`;
const GOOD = { "a.crt": `${CERT}\n${CA}`, "a.key": KEY, "ca.crt": CA };
const MEMBER_GOOD = { ...GOOD, "a.crt": MEMBER };

const CASES: readonly {
  name: string;
  text: string;
  files: Record<string, string | null>;
  nowMs?: number;
  want: string[];
}[] = [
  { name: "no file is named", text: "", files: {}, want: [] },
  { name: "a certificate and its key", text: TLS, files: GOOD, want: [] },
  { name: "a member's certificate", text: CLUSTER, files: MEMBER_GOOD, want: [] },
  {
    name: "the certificate of another member",
    text: CLUSTER.replace('"a"', '"b"'),
    files: MEMBER_GOOD,
    want: [
      'svc.toml:4: cluster.cert: "/etc/svc/a.crt" is the certificate of a, and this node is b: ' +
      "name that of b",
    ],
  },
  {
    name: "a certificate that is no member's",
    text: CLUSTER,
    files: GOOD,
    want: [
      'svc.toml:4: cluster.cert: "/etc/svc/a.crt" is no member\'s: make one with svc cluster cert',
    ],
  },
  {
    name: "the second of two authorities made it",
    text: CLUSTER,
    files: { ...MEMBER_GOOD, "ca.crt": `${CERT}\n${CA}` },
    want: [],
  },
  { name: "a peer that is elsewhere", text: VRRP, files: {}, want: [] },
  {
    name: "this node's own address as the peer",
    text: VRRP.replace("192.0.2.2", "192.0.2.1"),
    files: {},
    want: [
      "svc.toml:4: vrrp.peer: is this machine's own address on \"eth0\": write the other node's (check)",
    ],
  },
  {
    name: "an interface that is not there",
    text: VRRP.replace("eth0", "eth7"),
    files: {},
    want: [
      'svc.toml:2: vrrp.interface: is "eth7", which this machine does not have now; there are lo, eth0 (note)',
    ],
  },
  {
    name: "missing files",
    text: TLS,
    files: {},
    want: [
      'svc.toml:2: server.tls.cert: "/etc/svc/a.crt" is not there: make it or name another',
      'svc.toml:3: server.tls.key: "/etc/svc/a.key" is not there: make it or name another',
    ],
  },
  {
    name: "files that may not be read",
    text: TLS,
    files: { ...GOOD, "a.key": null },
    want: [
      'svc.toml:3: server.tls.key: "/etc/svc/a.key" may not be read: give this user the right to',
    ],
  },
  {
    name: "the key of another certificate",
    text: TLS,
    files: { ...GOOD, "a.key": OTHER_KEY },
    want: [
      'svc.toml:3: server.tls.key: "/etc/svc/a.key" is not the key of "/etc/svc/a.crt": ' +
      "name the files of one pair",
    ],
  },
  {
    name: "certificate and key the wrong way round",
    text: `[api]\ntls_cert = "a.key"\ntls_key = "a.crt"\n`,
    files: GOOD,
    want: [
      'svc.toml:2: api.tls_cert: "/etc/svc/a.key" holds no PEM certificate: ' +
      "name a file that does",
      'svc.toml:3: api.tls_key: "/etc/svc/a.crt" is no PEM private key: …',
    ],
  },
  {
    name: "a broken certificate behind a good one",
    text: TLS,
    files: {
      ...GOOD,
      "a.crt": `${CERT}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
    },
    want: ['svc.toml:2: server.tls.cert: certificate 2 of "/etc/svc/a.crt" can\'t be read: …'],
  },
  {
    name: "a key with a password",
    text: TLS,
    files: { ...GOOD, "a.key": "-----BEGIN ENCRYPTED PRIVATE KEY-----\n" },
    want: [
      'svc.toml:3: server.tls.key: "/etc/svc/a.key" has a password, which nobody types at start: ' +
      "write the key without one",
    ],
  },
  {
    name: "a name that the certificate does not cover",
    text: TLS.replace("dns.example", "example"),
    files: GOOD,
    want: [
      'svc.toml:2: server.tls.cert: "/etc/svc/a.crt" covers neither example nor *.example: ' +
      "clients would refuse it, get one for that name (check)",
    ],
  },
  {
    name: "a name that the wildcard covers",
    text: TLS.replace("dns.example", "eu.dns.example"),
    files: GOOD,
    want: [],
  },
  {
    name: "a name that the wildcard covers, and clients that tell their ID by it",
    text: `${TLS.replace("dns.example", "eu.dns.example")}dot = ["192.0.2.1"]\n`,
    files: GOOD,
    want: [
      'svc.toml:2: server.tls.cert: "/etc/svc/a.crt" does not cover *.eu.dns.example: clients ' +
      "that tell their ID by that name would refuse it; get one that does if there are any (note)",
    ],
  },
  {
    name: "a name and those of its clients",
    text: `${TLS}dot = ["192.0.2.1"]\n`,
    files: GOOD,
    want: [],
  },
  {
    name: "a key that is no longer for TLS",
    text: TLS,
    files: { ...GOOD, "a.key": WEAK_KEY },
    want: [
      'svc.toml:3: server.tls.key: "/etc/svc/a.key": keys of the curve secp256k1 are not for ' +
      "TLS: make one of ECDSA P-256",
      'svc.toml:3: server.tls.key: "/etc/svc/a.key" is not the key of "/etc/svc/a.crt": name the ' +
      "files of one pair",
    ],
  },
  {
    name: "too early",
    text: TLS,
    files: GOOD,
    nowMs: Date.UTC(2026, 0, 1),
    want: [
      'svc.toml:2: server.tls.cert: "/etc/svc/a.crt" is not valid before ' +
      "2026-11-20T23:45:51.000Z: check the clock (check)",
    ],
  },
  {
    name: "too late",
    text: TLS,
    files: GOOD,
    nowMs: Date.UTC(2127, 0, 1),
    want: [
      'svc.toml:2: server.tls.cert: "/etc/svc/a.crt" expired at 2126-07-19T23:45:51.000Z: ' +
      "renew it (check)",
    ],
  },
  {
    name: "a member's certificate from another CA",
    text: CLUSTER,
    files: { ...GOOD, "ca.crt": CERT },
    want: [
      'svc.toml:4: cluster.cert: "/etc/svc/a.crt" was not made by this cluster\'s CA: ' +
      "make one with svc cluster cert",
    ],
  },
  {
    name: "lists in their folder, one missing, one a folder, one outside",
    text: `[filter]\nlists = [\n  { name = "a", path = "lists/a" },\n  { name = "b", path = ` +
      `"lists/b" },\n  { name = "c", path = "lists/c" },\n  { name = "d", path = "d" },\n]\n`,
    files: { "lists/a": "||ads.example^", "lists/c": "folder" },
    want: [
      'svc.toml:4: filter.lists[1].path: "/etc/svc/lists/b" is not there: ' +
      "make it or name another (check)",
      'svc.toml:5: filter.lists[2].path: "/etc/svc/lists/c" is not a file: name one (check)',
    ],
  },
  {
    name: "rules, of which some are none",
    text: `[filter]\nrules = [\n  "||ads*.example^",\n  "/^ads[0-9]+/",\n  "/ads(/",\n  ` +
      `"||a.example/path",\n  "a*",\n]\n`,
    files: {},
    want: [
      "svc.toml:5: filter.rules[2]: it is no rule that is read, from column 1: the regular " +
      "expression is broken or looks around (lookahead, \\b, \\1): write it without (check)",
      "svc.toml:6: filter.rules[3]: it is no rule that is read, from column 1: it is about a URL, " +
      "and queries have names alone: write ||name^ (check)",
      "svc.toml:7: filter.rules[4]: it is no rule that is read, from column 1: a pattern has 3 " +
      "characters at least (check)",
    ],
  },
  {
    name: "a list that is a link out of the folder",
    text: `[filter]\nlists = [{ name = "a", path = "lists/a" }]\n`,
    files: { "lists/a": `link ${DIRECTORY}/secret`, secret: "text" },
    want: [
      'svc.toml:2: filter.lists[0].path: "/etc/svc/lists/a" is a link out of ' +
      "filter.local_lists_dir, so the list is skipped: put the file itself there (check)",
    ],
  },
  {
    name: "a draft with holes keeps its places",
    text: `[[upstream]]\naddress = "nonsense"\n[[upstream]]\naddress = "tls://dns.example"\n` +
      `ca = "none.pem"\n[filter]\nlists = [\n  { name = 1 },\n  { name = "b", path = ` +
      `"lists/b" },\n]\n`,
    files: {},
    want: [
      'svc.toml:5: upstream[1].ca: "/etc/svc/none.pem" is not there: make it or name another',
      'svc.toml:9: filter.lists[1].path: "/etc/svc/lists/b" is not there: ' +
      "make it or name another (check)",
    ],
  },
  {
    name: "a services catalog that is none",
    text: `[filter]\nservices_file = "services.json"\n`,
    files: { "services.json": "{" },
    want: [
      'svc.toml:2: filter.services_file: "/etc/svc/services.json": it is no catalogue: name one in ' +
      "the shape of HostlistsRegistry's services.json (check)",
    ],
  },
  {
    name: "a services catalog",
    text: `[filter]\nservices_file = "services.json"\n`,
    files: { "services.json": "{}" },
    want: [],
  },
  {
    name: "a services catalog that nobody reads",
    text: `[filter]\nservices = false\nservices_file = "services.json"\n`,
    files: {},
    want: [],
  },
  {
    name: "files about devices, of which one is not there",
    text: `[devices]\nhosts_files = ["/etc/hosts", "hosts"]\nlease_files = ["leases"]\n`,
    files: { hosts: "192.168.1.5 nas\n" },
    want: [
      'svc.toml:3: devices.lease_files[0]: "/etc/svc/leases" is not there: make it or name another (check)',
    ],
  },
  {
    name: "root hints and trust anchors",
    text: `[recursion]\nroot_hints = "root.hints"\ntrust_anchor = "root.ds"\n`,
    files: {
      "root.hints": ". 3600000 NS a.root-servers.net.\na.root-servers.net. 3600000 A 198.41.0.4\n",
      "root.ds": ". IN DS 20326 8 2 E06D44B8\n",
    },
    want: [],
  },
  {
    name: "root hints and trust anchors without a record",
    text: `[recursion]\nroot_hints = "root.hints"\ntrust_anchor = "root.ds"\n`,
    files: { "root.hints": "", "root.ds": "; . IN DS 20326 8 2 E06D44B8\n" },
    want: [
      'svc.toml:2: recursion.root_hints: "/etc/svc/root.hints" holds no A or AAAA record: ' +
      "name a file that does",
      'svc.toml:3: recursion.trust_anchor: "/etc/svc/root.ds": line 1 holds no DS or DNSKEY record',
    ],
  },
  {
    name: "trust anchors of several zones, one of them broken",
    text: `[recursion]\ntrust_anchor = "root.ds"\n`,
    files: { "root.ds": "test. IN DS 1 8 2 E06D44B8\na.example. DNSKEY 257 3 15 AAAA\n" },
    want: [
      'svc.toml:2: recursion.trust_anchor: "/etc/svc/root.ds": line 2 the key has not the form of ' +
      "algorithm 15",
    ],
  },
  {
    name: "a file of headers that holds something else",
    text: `[telemetry]\nheaders_file = "h"\n`,
    files: { "h": "# mine\nBearer s3cret\n" },
    want: [
      'svc.toml:2: telemetry.headers_file: "/etc/svc/h": line 2 is no header: write one such as ' +
      '"Authorization: Bearer …"',
    ],
  },
  {
    name: "files of the telemetry export",
    text: `[telemetry]\nheaders_file = "h"\nca_file = "ca.crt"\n`,
    files: { "ca.crt": "no certificate" },
    want: [
      'svc.toml:2: telemetry.headers_file: "/etc/svc/h" is not there: make it or name another',
      'svc.toml:3: telemetry.ca_file: "/etc/svc/ca.crt" holds no PEM certificate: ' +
      "name a file that does",
    ],
  },
  {
    name: "a store that is a file",
    text: `[store]\npath = "data"\n`,
    files: { data: "text" },
    want: ['svc.toml:2: store.path: "/etc/svc/data" is not a folder: name one'],
  },
  { name: "a store", text: `[store]\npath = "data"\n`, files: { data: "folder" }, want: [] },
];

Deno.test("checkFiles() checks every file that the configuration names", none, async (t) => {
  for (const { name, text, files, nowMs, want } of CASES) {
    await t.step(name, async () => {
      const problems = await problemsOf(text, disk(files, nowMs));
      // What the platform itself says about a parse error is not ours to fix.
      const shown = problems.map((line, i) => {
        const [head, tail] = (want[i] ?? "").split("…");
        const isOpen = tail !== undefined && line.startsWith(head) && line.endsWith(tail);
        return isOpen && line.length > head.length + tail.length ? want[i] : line;
      });
      assert.deepEqual(shown, want);
    });
  }
});

Deno.test("checkFiles() never repeats a byte of a key", none, async () => {
  const broken = KEY.replace("MIGH", "AAAA");
  const problems = await problemsOf(TLS, disk({ ...GOOD, "a.key": broken }));
  assert.equal(problems.length, 1);
  for (const line of broken.split("\n").slice(1, -1)) assert.ok(!problems[0].includes(line));
});

Deno.test(
  "checkFiles() notes that systemd-resolved has the port, which may change",
  none,
  async () => {
    const stub = { ip: new Uint8Array([127, 0, 0, 53]), port: 53 };
    const facts = { ...disk({}), listening: () => Promise.resolve([stub]) };
    const { draft, source } = parseConfig('[server]\nlisten = ["0.0.0.0"]\n', {
      file: "svc.toml",
      directory: DIRECTORY,
    });
    const [problem] = await checkFiles(draft!, facts, source);
    assert.equal(problem.severity, "note");
    assert.match(
      formatProblem(problem),
      /^svc\.toml:2: server\.listen\[0\]: 0\.0\.0\.0:53 is taken by/,
    );
  },
);

Deno.test("checkFiles() tells of secrets that everybody may read", none, async () => {
  const text = `${TLS}[telemetry]\nendpoint = "https://o.example"\nheaders_file = "h"\n`;
  const facts = disk({ ...GOOD, h: "Authorization: Bearer x\n" });
  const withMode = (mode: number | null): FileFacts => ({
    ...facts,
    stat: async (path) => ({ ...await facts.stat(path), mode }),
  });
  for (const mode of [0o100600, 0o100640, null]) {
    assert.deepEqual(await problemsOf(text, withMode(mode)), []);
  }
  const open = "may be read by every user of this machine: chmod o-r it (note)";
  assert.deepEqual(await problemsOf(text, withMode(0o100644)), [
    `svc.toml:3: server.tls.key: "/etc/svc/a.key" ${open}`,
    `svc.toml:7: telemetry.headers_file: "/etc/svc/h" ${open}`,
  ]);
});
