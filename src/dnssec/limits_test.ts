// Goal: what an attacker signs costs a bounded number of checks, hashes and questions. Method: each
// known attack is a zone made for it; the ports count what is asked of them.

import assert from "node:assert/strict";
import { wireName } from "../../tests/replay/records.ts";
import { Ede, Qtype, Rcode } from "../dns/mod.ts";
import { FakeKey, FakeWorld, rrsetsOf, TIMES } from "./fakes.ts";
import {
  ANSWER_CHECKS_MAX,
  ANY_RRSETS_MAX,
  CHAIN_CHECKS_MAX,
  CHAIN_LOOKUPS_MAX,
  DS_MAX,
  KEYS_PER_TAG_MAX,
  RRSET_CHECKS_MAX,
} from "./limits.ts";
import { type RrSet, Security, TrustAnchors, Validator } from "./mod.ts";
import { keyTag } from "./records.ts";
import type { RrSetResponse } from "./chain.ts";

const none = { permissions: "none" } as const;

/** A zone below the root, both with one key. */
function world() {
  const root = new FakeKey(".");
  const zone = new FakeKey("evil.");
  const fake = new FakeWorld();
  fake.addZone(root, null);
  fake.addZone(zone, root);
  const validator = new Validator(fake.ports, new TrustAnchors([root.anchor()]));
  const validate = (name: string, type: number, response: Partial<RrSetResponse>) =>
    validator.validate(
      { name: wireName(name), type },
      { rcode: Rcode.NoError, answer: [], authority: [], ...response },
      TIMES.nowS,
    );
  return { root, zone, fake, validate };
}

/** Keys of other bytes with the same tag: two bytes in an even place make up for the rest. */
function collidingKeys(rdata: Uint8Array, count: number): Uint8Array[] {
  const wanted = keyTag(rdata);
  const keys: Uint8Array[] = [];
  for (let i = 0; keys.length < count; i++) {
    const made = rdata.slice();
    made.set([i >> 8, i & 0xff], 10);
    for (let low = 0; low < 0x1_0000; low++) {
      made.set([low >> 8, low & 0xff], 20);
      if (keyTag(made) === wanted) break;
    }
    if (keyTag(made) === wanted && made.some((byte, at) => byte !== rdata[at])) keys.push(made);
  }
  return keys;
}

Deno.test("KeyTrap: many keys of one tag, many signatures of it", none, async (t) => {
  const { root, zone, fake, validate } = world();
  const others = collidingKeys(zone.rdata, 60);
  const bad = Array.from({ length: 100 }, (_, i) => {
    const rdata = zone.sign(rrsetsOf(["www.evil. A 192.0.2.1"])[0]).slice();
    rdata[rdata.length - 1 - (i % 60)] ^= 1 + (i >> 6);
    return rdata;
  });
  // The true key is the last of the set, and its signature the last too.
  const set = zone.dnskeys(others);
  const trapped = { ...set, rdatas: [...others, zone.rdata] };
  await t.step("at an answer", async () => {
    fake.set("evil.", Qtype.DNSKEY, {
      answer: [{ ...set, rdatas: [zone.rdata, ...others], signatures: set.signatures }],
    });
    const [rrset] = rrsetsOf(["www.evil. A 192.0.2.1"]);
    const before = fake.ports.checks;
    const { finding } = await validate("www.evil.", Qtype.A, {
      answer: [{ ...rrset, signatures: bad }],
    });
    assert.deepEqual([finding.security, finding.ede], [Security.Bogus, Ede.DnssecBogus]);
    assert.equal(finding.limit, "RRSET_CHECKS_MAX");
    assert.match(finding.reason, /www\.evil A: more than 4 signature checks of an RRset/);
    // Root keys, DS and DNSKEY are three; each is good at the first.
    assert.equal(fake.ports.checks - before, 3 + RRSET_CHECKS_MAX);
  });
  await t.step("at the keys of a zone", async () => {
    fake.ports.cuts.cuts.clear();
    const badKeys = bad.map((rdata) => {
      const made = rdata.slice();
      made.set([0, Qtype.DNSKEY]);
      made[3] = 1;
      return made;
    });
    fake.set("evil.", Qtype.DS, { answer: [root.rrset([zone.ds()])] });
    fake.set("evil.", Qtype.DNSKEY, { answer: [{ ...trapped, signatures: badKeys }] });
    const before = fake.ports.checks;
    const answer = [zone.rrset(["www.evil. A 192.0.2.1"])];
    const { finding } = await validate("www.evil.", Qtype.A, { answer });
    assert.equal(finding.security, Security.Bogus);
    assert(fake.ports.checks - before <= 2 + 2 * RRSET_CHECKS_MAX, `${fake.ports.checks - before}`);
    // Once more costs nothing: the cut is remembered.
    const after = fake.ports.checks;
    await validate("www.evil.", Qtype.A, { answer });
    assert.equal(fake.ports.checks, after);
  });
});

Deno.test("a signature covers so many bytes, however short the message is", none, async () => {
  const { zone, fake, validate, root } = world();
  fake.set("evil.", Qtype.DS, { answer: [root.rrset([zone.ds()])] });
  const label = "a".repeat(60);
  const owner = `${label}.${label}.${label}.${label}.evil.`;
  const lines = (count: number) =>
    Array.from({ length: count }, (_, i) => `${owner} IN A 192.0.${i >> 8}.${i & 255}`);
  // 264 bytes each.
  for (const [count, want] of [[370, null], [390, "SIGNED_BYTES_MAX"]] as const) {
    const { finding } = await validate(owner, Qtype.A, { answer: [zone.rrset(lines(count))] });
    assert.equal(finding.limit, want, finding.reason);
    assert.equal(finding.security, want === null ? Security.Secure : Security.Bogus);
  }
});

Deno.test("HashTrap: many DS records, many keys of one tag", none, async () => {
  const { root, zone, fake, validate } = world();
  const others = collidingKeys(zone.rdata, 60);
  const ds = Array.from({ length: 100 }, (_, i) => zone.ds().slice(0, -4) + `${1000 + i}`);
  fake.set("evil.", Qtype.DS, { answer: [root.rrset(ds)] });
  fake.set("evil.", Qtype.DNSKEY, { answer: [zone.dnskeys(others)] });
  const answer = [zone.rrset(["www.evil. A 192.0.2.1"])];
  const { finding } = await validate("www.evil.", Qtype.A, { answer });
  assert.deepEqual([finding.security, finding.ede], [Security.Bogus, Ede.DnskeyMissing]);
  // Root keys and DS: no signature of keys that nothing vouches for is looked at.
  assert.equal(fake.ports.checks, 2);
});

Deno.test("DS records are tried as far as the bound", none, async (t) => {
  for (const count of [DS_MAX - 1, DS_MAX]) {
    await t.step(`${count} before the true one`, async () => {
      const { root, zone, fake, validate } = world();
      const others = Array.from(
        { length: count },
        (_, i) => `evil. DS ${i} 15 2 ${"00".repeat(32)}`,
      );
      fake.set("evil.", Qtype.DS, { answer: [root.rrset([...others, zone.ds()])] });
      const answer = [zone.rrset(["www.evil. A 192.0.2.1"])];
      const { finding } = await validate("www.evil.", Qtype.A, { answer });
      const isWithin = count < DS_MAX;
      assert.equal(finding.security, isWithin ? Security.Secure : Security.Bogus, finding.reason);
    });
  }
});

Deno.test("DS records that don't count leave the bound to those that do", none, async () => {
  // As many of an unknown digest, or of SHA-1 beside a stronger one; and they may come in any order.
  for (const digestType of [3, 1]) {
    const others = Array.from(
      { length: DS_MAX },
      (_, i) => `evil. DS ${i} 15 ${digestType} ${"00".repeat(20)}`,
    );
    for (const want of [Security.Secure, Security.Bogus]) {
      const { root, zone, fake, validate } = world();
      const wrong = zone.ds().slice(0, -64) + "00".repeat(32);
      const ds = want === Security.Secure ? zone.ds() : wrong;
      fake.set("evil.", Qtype.DS, { answer: [root.rrset([...others, ds])] });
      const answer = [zone.rrset(["www.evil. A 192.0.2.1"])];
      const { finding } = await validate("www.evil.", Qtype.A, { answer });
      assert.equal(finding.security, want, `${digestType}: ${finding.reason}`);
    }
  }
});

Deno.test("keys of one tag are tried as far as the bound", none, async (t) => {
  for (const count of [KEYS_PER_TAG_MAX - 1, KEYS_PER_TAG_MAX]) {
    await t.step(`${count} before the true one`, async () => {
      const { root, zone, fake, validate } = world();
      const others = collidingKeys(zone.rdata, count);
      const set = zone.dnskeys(others);
      fake.set("evil.", Qtype.DS, { answer: [root.rrset([zone.ds()])] });
      fake.set("evil.", Qtype.DNSKEY, {
        answer: [{ ...set, rdatas: [...others, zone.rdata] }],
      });
      const answer = [zone.rrset(["www.evil. A 192.0.2.1"])];
      const { finding } = await validate("www.evil.", Qtype.A, { answer });
      const isWithin = count < KEYS_PER_TAG_MAX;
      assert.equal(finding.security, isWithin ? Security.Secure : Security.Bogus, finding.reason);
    });
  }
});

Deno.test("ANYTrap: many RRsets, each with its signature", none, async (t) => {
  const { zone, fake, validate } = world();
  const sets = (count: number) =>
    Array.from({ length: count }, (_, i) => zone.rrset([`any.evil. TYPE${65_300 + i} \\# 1 00`]));
  await t.step("as many as are taken", async () => {
    const { finding } = await validate("any.evil.", Qtype.ANY, { answer: sets(ANY_RRSETS_MAX) });
    assert.equal(finding.security, Security.Secure, finding.reason);
    assert(fake.ports.checks <= ANSWER_CHECKS_MAX + 3);
  });
  await t.step("one more", async () => {
    const before = fake.ports.checks;
    const answer = sets(ANY_RRSETS_MAX + 1);
    const { finding } = await validate("any.evil.", Qtype.ANY, { answer });
    assert.equal(finding.limit, "ANY_RRSETS_MAX");
    assert.equal(fake.ports.checks, before);
  });
  await t.step("the first bad one ends it", async () => {
    const before = fake.ports.checks;
    const answer = sets(ANY_RRSETS_MAX).map((rrset) => ({ ...rrset, rdatas: [Uint8Array.of(1)] }));
    const { finding } = await validate("any.evil.", Qtype.ANY, { answer });
    assert.equal(finding.security, Security.Bogus);
    assert.equal(fake.ports.checks - before, 1);
  });
});

Deno.test("an authority section of many proofs", none, async () => {
  const { zone, fake, validate } = world();
  const authority: RrSet[] = Array.from(
    { length: 100 },
    (_, i) => zone.rrset([`n${i}.evil. NSEC n${i}x.evil. A RRSIG NSEC`]),
  );
  const before = fake.ports.checks;
  const { finding } = await validate("www.evil.", Qtype.A, { authority });
  assert.equal(finding.limit, "PROOF_RRSETS_MAX");
  assert(fake.ports.checks - before <= ANSWER_CHECKS_MAX + 3);
});

Deno.test("a long name under NSEC3 with iterations (CVE-2023-50868)", none, async (t) => {
  const { zone, fake, validate } = world();
  const name = `${"a.".repeat(120)}evil.`;
  const proof = (iterations: number) =>
    zone.rrset([
      `${"0".repeat(32)}.evil. NSEC3 1 0 ${iterations} - ${"V".repeat(32)} A RRSIG`,
    ]);
  await t.step("more than are followed make it unsigned, and are not followed", async () => {
    const { finding } = await validate(name, Qtype.A, { authority: [proof(51)] });
    assert.equal(finding.security, Security.Insecure);
    assert.match(finding.reason, /more NSEC3 iterations than are followed/);
    assert.equal(finding.ede, Ede.UnsupportedNsec3Iterations, "RFC 9276 §3.2");
  });
  await t.step("an unsigned number of them does not", async () => {
    const forged = { ...proof(51), rdatas: proof(500).rdatas };
    const { finding } = await validate(name, Qtype.A, { authority: [forged] });
    assert.equal(finding.security, Security.Bogus);
  });
  await t.step("as many as are followed use the rounds up", async () => {
    const { finding } = await validate(name, Qtype.A, { authority: [proof(50)] });
    assert.equal(finding.limit, "HASH_ROUNDS_MAX");
    assert.equal(finding.security, Security.Bogus);
  });
  assert(fake.ports.checks < 10);
});

Deno.test("a long way down in one zone", none, async () => {
  const { root, zone, fake } = world();
  // Every name is one between others: each has to be asked about.
  const gap = zone.rrset([`evil. NSEC ${"b.".repeat(120)}evil. NS SOA RRSIG NSEC DNSKEY`]);
  const ports = {
    ...fake.ports,
    cuts: fake.ports.cuts,
    lookUp: async (name: Uint8Array, type: number, attempt: number) => {
      const known = await fake.ports.lookUp(name, type, attempt);
      return known ?? { rcode: Rcode.NoError, answer: [], authority: [gap] };
    },
  };
  const validator = new Validator(ports, new TrustAnchors([root.anchor()]));
  const name = `${"b.".repeat(120)}evil.`;
  const answer = rrsetsOf([`${name} A 192.0.2.1`]);
  const question = { name: wireName(name), type: Qtype.A };
  const { finding } = await validator.validate(
    question,
    { rcode: Rcode.NoError, answer, authority: [] },
    TIMES.nowS,
  );
  assert.equal(finding.security, Security.Bogus);
  assert.match(finding.limit!, /^CHAIN_(LOOKUPS|CHECKS)_MAX$/);
  assert(fake.ports.asked.length <= CHAIN_LOOKUPS_MAX);
  assert(fake.ports.checks <= CHAIN_CHECKS_MAX);
  // What one answer used up is not held against the next.
  for (const cut of fake.ports.cuts.cuts.values()) {
    assert(cut.kind !== "zone" || cut.zone.finding.limit === null);
  }
});
