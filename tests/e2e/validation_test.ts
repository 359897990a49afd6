// Goal: with `validate_forwarded`, what upstreams answer is proven or refused, as a client sees it.
// Method: BIND signs zones, NSD serves them as the upstream, and dig asks a service that trusts them.
import assert from "node:assert/strict";
import { hasProgram, PERMISSIONS, Service } from "./harness.ts";
import { SignedZones, signZones, type ZoneSpec } from "../conformance/signed_zones.ts";

const TOOLS = ["dnssec-keygen", "dnssec-signzone", "nsd", "dig"].map(hasProgram).every(Boolean);
const OPTIONS = { permissions: PERMISSIONS, ignore: !TOOLS } as const;

const ZONES: readonly ZoneSpec[] = [
  { name: "bad.test.", denial: "nsec", records: ["www A 192.0.2.66"], children: [] },
  { name: "plain.test.", denial: null, records: ["www A 192.0.2.2"], children: [] },
  { name: "hash.test.", denial: "nsec3", records: ["www A 192.0.2.3"], children: [] },
  {
    name: "test.",
    denial: "nsec",
    records: ["www A 192.0.2.1", "*.wild A 192.0.2.9", "alias CNAME www.bad"],
    children: ["bad.test.", "plain.test.", "hash.test."],
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
});
