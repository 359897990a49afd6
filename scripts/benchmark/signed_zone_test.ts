import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { FakeWorld, rrsetsOf } from "../../src/dnssec/fakes.ts";
import { Security, TrustAnchors, Validator } from "../../src/dnssec/mod.ts";
import { wireName, type ZoneSet, ZoneSigner, zoneText } from "./signed_zone.ts";

const none = { permissions: "none" } as const;
const ZONE = "zone.example.";
/** The roots of two names, and five numbers. */
const SOA = new Uint8Array(2 + 20);
const SETS: readonly ZoneSet[] = [
  { owner: ZONE, type: Qtype.SOA, rdatas: [SOA] },
  { owner: ZONE, type: Qtype.NS, rdatas: [wireName(`ns.${ZONE}`), wireName(`a.${ZONE}`)] },
  { owner: `h0.${ZONE}`, type: Qtype.A, rdatas: [Uint8Array.of(192, 0, 2, 1)] },
  { owner: `cut.${ZONE}`, type: Qtype.NS, rdatas: [wireName(`ns.cut.${ZONE}`)] },
  { owner: `ns.cut.${ZONE}`, type: Qtype.A, rdatas: [Uint8Array.of(192, 0, 2, 2)] },
];

Deno.test("zoneText() writes a zone that a validator finds secure", none, async (t) => {
  const signer = await ZoneSigner.make();
  const lines = zoneText(ZONE, SETS, signer).trimEnd().split("\n");
  const of = (owner: string) => rrsetsOf(lines.filter((line) => line.startsWith(`${owner} `)));
  const world = new FakeWorld();
  world.set(ZONE, Qtype.DNSKEY, { answer: of(ZONE) });
  world.set(`cut.${ZONE}`, Qtype.DS, { authority: of(`cut.${ZONE}`) });
  const anchor = { zone: wireName(ZONE), type: Qtype.DS, rdata: signer.ds(ZONE) };
  const validator = new Validator(world.ports, new TrustAnchors([anchor]));
  const nowS = Math.floor(Date.now() / 1_000);
  const finding = async (name: string, type: number, rcode: number, said: readonly string[]) => {
    const sets = said.flatMap(of);
    const answer = sets.filter((set) => set.type === type);
    const authority = sets.filter((set) => set.type === Qtype.NSEC && answer.length === 0);
    const question = { name: wireName(name), type };
    const verdict = await validator.validate(question, { rcode, answer, authority }, nowS);
    return [verdict.finding.security, verdict.finding.reason];
  };
  await t.step("an address", async () => {
    const host = `h0.${ZONE}`;
    assert.deepEqual(await finding(host, Qtype.A, Rcode.NoError, [host]), [Security.Secure, ""]);
  });
  await t.step("a set of two", async () => {
    assert.deepEqual(await finding(ZONE, Qtype.NS, Rcode.NoError, [ZONE]), [Security.Secure, ""]);
  });
  await t.step("a name that is not there", async () => {
    const said = [ZONE, `cut.${ZONE}`];
    assert.deepEqual(await finding(`d.${ZONE}`, Qtype.A, Rcode.NXDomain, said), [
      Security.Secure,
      "",
    ]);
  });
  await t.step("a delegation that is not signed, and its glue", async () => {
    const glue = `ns.cut.${ZONE}`;
    const [security] = await finding(glue, Qtype.A, Rcode.NoError, [glue]);
    assert.equal(security, Security.Insecure);
    assert(!lines.some((line) => line.startsWith(glue) && line.includes("RRSIG")));
  });
  await t.step("another key's zone is bogus", async () => {
    const other = await ZoneSigner.make();
    const spoilt = { ...anchor, rdata: other.ds(ZONE) };
    const strict = new Validator(world.ports, new TrustAnchors([spoilt]));
    const response = { rcode: Rcode.NoError, answer: of(`h0.${ZONE}`), authority: [] };
    const question = { name: wireName(`h0.${ZONE}`), type: Qtype.A };
    world.ports.cuts.cuts.clear();
    const { finding } = await strict.validate(question, response, nowS);
    assert.equal(finding.security, Security.Bogus);
  });
});
