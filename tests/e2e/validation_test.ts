// Goal: with `validate_forwarded`, what upstreams answer is proven or refused, as a client sees it.
// Method: BIND signs zones, NSD serves them as the upstream, and dig asks a service that trusts them.
import assert from "node:assert/strict";
import { Api } from "./api.ts";
import { hasProgram, PERMISSIONS, runProgram, Service, svcCommand, until } from "./harness.ts";
import { SignedZones, signZones, type ZoneSpec } from "../conformance/signed_zones.ts";

const TOOLS = ["dnssec-keygen", "dnssec-signzone", "nsd", "dig"].map(hasProgram).every(Boolean);
const OPTIONS = { permissions: PERMISSIONS, ignore: !TOOLS } as const;

const ZONES: readonly ZoneSpec[] = [
  { name: "bad.test.", denial: "nsec", records: ["www A 192.0.2.66"], children: [] },
  { name: "off.test.", denial: "nsec", records: ["www A 192.0.2.5"], children: [] },
  { name: "plain.test.", denial: null, records: ["www A 192.0.2.2"], children: [] },
  { name: "hash.test.", denial: "nsec3", records: ["www A 192.0.2.3"], children: [] },
  {
    name: "test.",
    denial: "nsec",
    records: ["www A 192.0.2.1", "*.wild A 192.0.2.9", "alias CNAME www.bad"],
    children: ["bad.test.", "off.test.", "plain.test.", "hash.test."],
  },
];

/** Changes the address in a zone that was signed. */
async function spoil(directory: string): Promise<void> {
  const file = `${directory}/bad.test.signed`;
  const text = await Deno.readTextFile(file);
  const spoilt = text.replace("192.0.2.66", "192.0.2.67");
  assert.notEqual(spoilt, text);
  await Deno.writeTextFile(file, spoilt);
}

async function dig(service: Service, ...args: string[]): Promise<string> {
  const { port } = service.address;
  const { stdout } = await new Deno.Command("dig", {
    args: ["@127.0.0.1", "-p", `${port}`, "+tries=1", "+time=10", ...args],
    stdout: "piped",
  }).output();
  return new TextDecoder().decode(stdout);
}

Deno.test("validate_forwarded proves what upstreams answer", OPTIONS, async (t) => {
  const directory = await signZones(ZONES, "ECDSAP256SHA256");
  await spoil(directory);
  await using zones = await SignedZones.serve(directory, ZONES.map(({ name }) => name));
  await using service = await Service.start({
    config: {
      upstream: [{ address: `127.0.0.1:${zones.port}` }],
      recursion: {
        validate_forwarded: true,
        trust_anchor: `${directory}/dsset-test.`,
        negative_trust_anchors: ["off.test"],
      },
    },
  });
  const api = await Api.of(service);
  await t.step("dig +dnssec shows AD and the proof", async () => {
    for (const again of [false, true]) {
      const text = await dig(service, "+dnssec", "www.test");
      assert.match(text, /status: NOERROR/, `${again}`);
      assert.match(text, /flags: qr rd ra ad;/);
      assert.match(text, /www\.test\.\s+\d+\s+IN\s+RRSIG\s+A /);
    }
  });
  await t.step("a bogus zone gives SERVFAIL and says why; +cd gives the data", async () => {
    for (const again of [false, true]) {
      const text = await dig(service, "+dnssec", "www.bad.test");
      assert.match(text, /status: SERVFAIL/, `${again}`);
      assert.match(
        text,
        /EDE: 6 \(DNSSEC Bogus\): \(www\.bad\.test A: the signature of key \d+ does not fit\)/,
      );
    }
    assert.match(await dig(service, "+cd", "www.bad.test"), /flags: qr rd ra cd;[^]*192\.0\.2\.67/);
  });
  await t.step("AD is for who asks for it, and signatures for who wants them", async () => {
    // Each twice: as it comes, and out of the cache.
    for (const again of [false, true]) {
      const plain = await dig(service, "+noedns", "+noadflag", "hash.test", "SOA");
      assert.match(plain, /flags: qr rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0/, `${again}`);
      const ad = await dig(service, "+noedns", "+adflag", "hash.test", "SOA");
      assert.match(ad, /flags: qr rd ra ad; QUERY: 1, ANSWER: 1, AUTHORITY: 0/);
      const proofs = await dig(service, "+dnssec", "+noadflag", "hash.test", "SOA");
      assert.match(proofs, /flags: qr rd ra ad; QUERY: 1, ANSWER: 2, AUTHORITY: 0/);
    }
  });
  await t.step("absence and wildcards are proven", async () => {
    const cases = [
      ["gone.test", "NXDOMAIN", /IN\s+NSEC\s/],
      ["gone.hash.test", "NXDOMAIN", /IN\s+NSEC3\s/],
      ["www.hash.test MX", "NOERROR", /IN\s+NSEC3\s/],
      ["any.wild.test", "NOERROR", /IN\s+NSEC\s/],
    ] as const;
    for (const [question, status, proof] of cases) {
      const text = await dig(service, "+dnssec", ...question.split(" "));
      assert.match(text, new RegExp(`status: ${status}`), question);
      assert.match(text, /flags: qr rd ra ad;/, question);
      assert.match(text, proof, question);
      assert.doesNotMatch(await dig(service, ...question.split(" ")), /NSEC|RRSIG/, question);
    }
  });
  await t.step("what is not signed is answered plainly", async () => {
    for (const name of ["www.plain.test", "www.off.test"]) {
      const text = await dig(service, "+dnssec", name);
      assert.match(text, /status: NOERROR[^]*flags: qr rd ra;/, name);
    }
  });
  await t.step("an alias is no better than where it leads", async () => {
    assert.match(await dig(service, "alias.test"), /status: SERVFAIL/);
  });
  await t.step("svc explain and the query log say what came of it, and why", async () => {
    const why = /^www\.bad\.test A: the signature of key \d+ does not fit$/;
    const cases = [
      ["www.test", "secure", null],
      ["www.plain.test", "insecure", /^plain\.test: delegated unsigned, test has no DS for it$/],
      ["www.bad.test", "bogus", why],
    ] as const;
    for (const [name, result, reason] of cases) {
      const { dnssec } = await api.call("GET", `explain?name=${name}`);
      assert.equal(dnssec.result, result, name);
      if (reason === null) assert.equal(dnssec.reason, null, name);
      else assert.match(dnssec.reason, reason, name);
    }
    const base = api.base.replace("/api/v1", "");
    const [command, ...args] = svcCommand(["explain", "www.bad.test", "--api", base]);
    const { stdout } = await runProgram(command, ...args);
    assert.match(stdout, /^dnssec: bogus: www\.bad\.test A: the signature of key/m);
    await until("the log's entries", async () => {
      const { entries } = await api.call("GET", "querylog?name=bad.test&limit=100");
      const bogus = entries.filter((entry: { dnssec: string }) => entry.dnssec === "bogus");
      return bogus.some(({ dnssec_reason }: { dnssec_reason: string }) => why.test(dnssec_reason));
    });
  });
  await t.step("keys of the anchor are followed, in a file of this member", async () => {
    const file = `${service.directory}/store/trust_anchors.json`;
    const { zones } = JSON.parse(await Deno.readTextFile(file));
    assert.equal(zones.length, 1);
    assert.equal(zones[0].zone, "test");
    assert.deepEqual(zones[0].keys.map(({ phase }: { phase: string }) => phase), ["valid"]);
  });
  await t.step("every answer is counted", async () => {
    const text = await api.metrics();
    for (const result of ["secure", "insecure", "bogus"]) {
      assert.match(text, new RegExp(`svc_recursion_dnssec_total\\{result="${result}"\\} [1-9]`));
    }
  });
});
