import assert from "node:assert/strict";
import { wireName } from "../../tests/replay/records.ts";
import { encodeBase32hex } from "../bytes/mod.ts";
import { Ede, formatName, Qtype, qtypeName, Rcode } from "../dns/mod.ts";
import { type RrSetResponse } from "./chain.ts";
import { FakeKey, FakeWorld, rrsetsOf, type SignOptions, TIMES } from "./fakes.ts";
import { type RrSet, Security, TrustAnchors, Validator, type Verdict } from "./mod.ts";
import { nsec3Hash } from "./nsec3.ts";
import { SEP_FLAG, ZONE_FLAG } from "./records.ts";

const none = { permissions: "none" } as const;

/** The root, example and sub.example signed, plain.example not; each with its key. */
function world() {
  const root = new FakeKey(".");
  const example = new FakeKey("example.");
  const sub = new FakeKey("sub.example.");
  const fake = new FakeWorld();
  fake.addZone(root, null);
  fake.addZone(example, root);
  fake.addZone(sub, example);
  fake.set("plain.example.", Qtype.DS, {
    authority: [example.rrset(["plain.example. NSEC q.example. NS RRSIG NSEC"])],
  });
  // Names that are no cuts.
  fake.set("www.example.", Qtype.DS, {
    authority: [example.rrset(["www.example. NSEC example. A RRSIG NSEC"])],
  });
  fake.set("www.sub.example.", Qtype.DS, {
    authority: [sub.rrset(["www.sub.example. NSEC sub.example. A RRSIG NSEC"])],
  });
  const anchors = new TrustAnchors([root.anchor()]);
  const validator = new Validator(fake.ports, anchors);
  const validate = (
    name: string,
    type: number,
    response: Partial<RrSetResponse>,
    nowS: number = TIMES.nowS,
  ): Promise<Verdict> =>
    validator.validate(
      { name: wireName(name), type },
      { rcode: Rcode.NoError, answer: [], authority: [], ...response },
      nowS,
    );
  return { fake, root, example, sub, validator, validate };
}

const A = (owner: string) => `${owner} 300 IN A 192.0.2.1`;

const isSecure = ({ finding }: Verdict) =>
  assert.equal(finding.security, Security.Secure, finding.reason);
function isInsecure({ finding }: Verdict, ede: number | null = null) {
  assert.deepEqual([finding.security, finding.ede], [Security.Insecure, ede], finding.reason);
}
function isBogus({ finding }: Verdict, ede: Ede, reason?: RegExp) {
  assert.deepEqual([finding.security, finding.ede], [Security.Bogus, ede], finding.reason);
  if (reason !== undefined) assert.match(finding.reason, reason);
}

Deno.test("Validator goes down from the anchor once, and remembers the way", none, async () => {
  const { fake, sub, validate } = world();
  const answer = [sub.rrset([A("www.sub.example.")])];
  isSecure(await validate("www.sub.example.", Qtype.A, { answer }));
  const asked = fake.ports.asked.length;
  // DS and DNSKEY of two zones, and the root's keys.
  assert.equal(asked, 5);
  assert.equal(fake.ports.checks, 6);
  const verdict = await validate("WWW.sub.EXAMPLE.", Qtype.A, { answer });
  isSecure(verdict);
  assert.equal(fake.ports.asked.length, asked);
  assert.equal(fake.ports.checks, 7);
  assert.deepEqual(verdict.answer.map(({ rrset, ttl }) => [rrset, ttl]), [[answer[0], 300]]);
});

Deno.test("Validator asks again once a cut has expired", none, async () => {
  const { fake, example, validate } = world();
  const late = { expiration: TIMES.nowS + 2 * 86_400 };
  const answer = [example.rrset([A("www.example.")], late)];
  isSecure(await validate("www.example.", Qtype.A, { answer }));
  isSecure(await validate("www.example.", Qtype.A, { answer }, TIMES.nowS + 3_500));
  assert.equal(fake.ports.asked.length, 3);
  isSecure(await validate("www.example.", Qtype.A, { answer }, TIMES.nowS + 3_601));
  assert.equal(fake.ports.asked.length, 6);
});

Deno.test("Validator names what failed, by an extended error", none, async (t) => {
  const { sub, example, validate } = world();
  const www = [A("www.example.")];
  const spoilt = (rrset: RrSet): RrSet => ({
    ...rrset,
    signatures: rrset.signatures.map((rdata) => rdata.with(rdata.length - 1, rdata.at(-1)! ^ 1)),
  });
  const { nowS } = TIMES;
  const rows: readonly (readonly [string, RrSet, Ede, RegExp])[] = [
    [
      "a signature that does not fit",
      spoilt(example.rrset(www)),
      6,
      /www\.example A: .* does not fit/,
    ],
    ["one that has expired", example.rrset(www, { expiration: nowS - 1 }), 7, /expired 2023-11/],
    ["one from the future", example.rrset(www, { inception: nowS + 1 }), 8, /valid from 2023-11/],
    [
      "one that ends before it begins",
      example.rrset(www, { inception: nowS, expiration: nowS - 9 }),
      7,
      /before/,
    ],
    ["one of a key that is not there", example.rrset(www, { tag: 1 }), 9, /no key 1/],
    ["one of an unknown algorithm", example.rrset(www, { algorithm: 250 }), 9, /no key/],
    ["none", rrsetsOf(www)[0], 10, /not signed, and example is/],
    ["one of a zone below", sub.rrset(www), 10, /not signed/],
  ];
  for (const [what, rrset, ede, reason] of rows) {
    await t.step(what, async () => {
      isBogus(await validate("www.example.", Qtype.A, { answer: [rrset] }), ede, reason);
    });
  }
});

Deno.test(
  "Validator keeps an RRset no longer than TTL, original TTL and signature",
  none,
  async (t) => {
    const { example, validate } = world();
    const rows: readonly (readonly [string, SignOptions, number])[] = [
      ["TTL", { originalTtl: 900 }, 300],
      ["original TTL", { originalTtl: 60 }, 60],
      ["life of the signature", { expiration: TIMES.nowS + 7 }, 7],
    ];
    for (const [what, options, ttl] of rows) {
      await t.step(what, async () => {
        const answer = [example.rrset([A("www.example.")], options)];
        const verdict = await validate("www.example.", Qtype.A, { answer });
        isSecure(verdict);
        assert.equal(verdict.answer[0].ttl, ttl);
      });
    }
  },
);

Deno.test("Validator reads times modulo 2^32", none, async () => {
  const { example, root, fake, validate } = world();
  const nowS = 2 ** 32 + 50;
  const options = { inception: 2 ** 32 - 100, expiration: 100 };
  fake.set(".", Qtype.DNSKEY, { answer: [root.dnskeys([], options)] });
  fake.set("example.", Qtype.DNSKEY, { answer: [example.dnskeys([], options)] });
  fake.set("example.", Qtype.DS, { answer: [root.rrset([example.ds()], options)] });
  const answer = [example.rrset([A("www.example.")], options)];
  isSecure(await validate("www.example.", Qtype.A, { answer }, nowS));
  isBogus(await validate("www.example.", Qtype.A, { answer }, nowS + 60), Ede.SignatureExpired);
});

Deno.test("Validator suspects the clock where an anchor's keys fail by time", none, async () => {
  const { example, validate } = world();
  const answer = [example.rrset([A("www.example.")])];
  const verdict = await validate("www.example.", Qtype.A, { answer }, TIMES.inception - 86_400);
  isBogus(verdict, Ede.SignatureNotYetValid, /^\. DNSKEY/);
  assert.equal(verdict.finding.clockSuspect, true);
});

Deno.test("Validator takes what is unsigned below an unsigned delegation", none, async () => {
  const { fake, validate } = world();
  const answer = rrsetsOf([A("www.plain.example.")]);
  isInsecure(await validate("www.plain.example.", Qtype.A, { answer }));
  const { authority } = await validate("no.plain.example.", Qtype.A, {
    rcode: Rcode.NXDomain,
    authority: rrsetsOf(["plain.example. SOA a. b. 1 2 3 4 5"]),
  });
  assert.deepEqual(authority.map(({ security }) => security), [Security.Insecure]);
  // The names below are not asked about.
  assert(fake.ports.asked.every((asked) => !asked.includes("www")));
});

Deno.test(
  "Validator goes to the zone whose servers have answered, if that is proven",
  none,
  async (t) => {
    const rows: readonly (readonly [string, string | null, string[]])[] = [
      ["no zone", null, ["y.example", "x.y.example", "plain.x.y.example"]],
      ["the zone", "plain.x.y.example.", ["plain.x.y.example"]],
      ["a zone above it", "example.", ["y.example", "x.y.example", "plain.x.y.example"]],
      // Who answers for a name below knows nothing of the zone's place: nobody has signed it.
      ["a name below it", "b.plain.x.y.example.", [
        "b.plain.x.y.example",
        ...["y.example", "x.y.example", "plain.x.y.example"],
      ]],
      ["another zone", "sub.example.", ["y.example", "x.y.example", "plain.x.y.example"]],
    ];
    for (const [what, serverZone, want] of rows) {
      await t.step(what, async () => {
        const { fake, example, validator } = world();
        const gap = [example.rrset(["sub.example. NSEC plain.x.y.example. NS DS RRSIG NSEC"])];
        for (const name of ["y.example.", "x.y.example."]) {
          fake.set(name, Qtype.DS, { authority: gap });
        }
        fake.set("plain.x.y.example.", Qtype.DS, {
          authority: [example.rrset(["plain.x.y.example. NSEC example. NS RRSIG NSEC"])],
        });
        fake.set("b.plain.x.y.example.", Qtype.DS, {});
        const question = { name: wireName("a.b.plain.x.y.example."), type: Qtype.A };
        const answer = rrsetsOf([A("a.b.plain.x.y.example.")]);
        const response = { rcode: Rcode.NoError, answer, authority: [] };
        const zone = serverZone === null ? null : wireName(serverZone);
        isInsecure(await validator.validate(question, response, TIMES.nowS, { zone }));
        const asked = fake.ports.asked.filter((key) => key.endsWith(` ${Qtype.DS}`)).map((key) =>
          formatName(Uint8Array.from(key.slice(0, -3), (c) => c.charCodeAt(0)))
        ).filter((name) => name !== "example");
        assert.deepEqual(asked, want);
      });
    }
  },
);

Deno.test("Validator asks about no zone below one that is known to be unsigned", none, async () => {
  const { fake, validator } = world();
  const ask = (zone: string) => {
    const response = { rcode: Rcode.NoError, answer: rrsetsOf([A(`www.${zone}`)]), authority: [] };
    const question = { name: wireName(`www.${zone}`), type: Qtype.A };
    return validator.validate(question, response, TIMES.nowS, { zone: wireName(zone) });
  };
  isInsecure(await ask("one.plain.example."));
  const asked = fake.ports.asked.length;
  isInsecure(await ask("two.plain.example."));
  assert.deepEqual(fake.ports.asked.slice(asked), []);
});

Deno.test("Validator believes the parent alone that a zone is unsigned", none, async (t) => {
  const rows:
    readonly (readonly [string, (keys: ReturnType<typeof world>) => Partial<RrSetResponse>])[] = [
      ["the child's own NSEC", ({ example }) => ({
        authority: [example.rrset(["sub.example. NSEC t.example. NS SOA RRSIG NSEC DNSKEY"])],
      })],
      ["an NSEC that shows a DS", ({ example }) => ({
        authority: [example.rrset(["sub.example. NSEC t.example. NS DS RRSIG NSEC"])],
      })],
      ["an unsigned NSEC", () => ({
        authority: rrsetsOf(["sub.example. NSEC t.example. NS RRSIG NSEC"]),
      })],
      ["an NSEC expanded from a wildcard", ({ example }) => ({
        authority: [example.rrset(["sub.example. NSEC t.example. NS RRSIG NSEC"], { labels: 1 })],
      })],
      ["nothing", () => ({})],
      ["a DS that is spoilt", ({ example, sub }) => {
        const rrset = example.rrset([sub.ds()]);
        return {
          answer: [{ ...rrset, rdatas: rrset.rdatas.map((rdata) => rdata.with(9, rdata[9] ^ 1)) }],
        };
      }],
      ["a DS from a wildcard", ({ example, sub }) => ({
        answer: [example.rrset([sub.ds()], { labels: 1 })],
      })],
    ];
  for (const [what, response] of rows) {
    await t.step(what, async () => {
      const keys = world();
      keys.fake.set("sub.example.", Qtype.DS, response(keys));
      // Neither does it make what is signed there secure.
      const signed = [keys.sub.rrset([A("www.sub.example.")])];
      for (const answer of [rrsetsOf([A("www.sub.example.")]), signed]) {
        const { finding } = await keys.validate("www.sub.example.", Qtype.A, { answer });
        assert.equal(finding.security, Security.Bogus, finding.reason);
      }
    });
  }
});

Deno.test("Validator wants the keys that DS or anchor name", none, async (t) => {
  const rows: readonly (readonly [
    string,
    (keys: ReturnType<typeof world>) => void,
    Ede,
  ])[] = [
    ["another key", ({ fake }) =>
      fake.set("example.", Qtype.DNSKEY, {
        answer: [new FakeKey("example.").dnskeys()],
      }), Ede.DnskeyMissing],
    ["another key, with the right one beside it unsigned for", ({ fake, example }) => {
      fake.set("example.", Qtype.DNSKEY, {
        answer: [new FakeKey("example.").dnskeys([example.rdata])],
      });
    }, Ede.DnskeyMissing],
    ["no DNSKEY", ({ fake }) => fake.set("example.", Qtype.DNSKEY, {}), Ede.DnskeyMissing],
    ["unsigned keys", ({ fake, example }) =>
      fake.set("example.", Qtype.DNSKEY, {
        answer: [{ ...example.dnskeys(), signatures: [] }],
      }), Ede.RrsigsMissing],
    ["a key that is none of a zone", ({ fake, root }) => {
      fake.addZone(new FakeKey("example.", SEP_FLAG), root);
    }, Ede.NoZoneKeyBitSet],
    ["a revoked key", ({ fake, root }) => {
      fake.addZone(new FakeKey("example.", ZONE_FLAG | 0x80 | SEP_FLAG), root);
    }, Ede.DnskeyMissing],
    ["a key of 3 bytes beside (CVE-2025-8677)", ({ fake, example }) => {
      fake.set("example.", Qtype.DNSKEY, {
        answer: [{ ...example.dnskeys(), rdatas: [Uint8Array.of(1, 1, 3)] }],
      });
    }, Ede.DnskeyMissing],
  ];
  for (const [what, spoil, ede] of rows) {
    await t.step(what, async () => {
      const keys = world();
      spoil(keys);
      const answer = [keys.example.rrset([A("www.example.")])];
      isBogus(await keys.validate("www.example.", Qtype.A, { answer }), ede);
    });
  }
});

Deno.test("Validator passes malformed keys over", none, async () => {
  const { fake, example, validate } = world();
  const malformed = [Uint8Array.of(), Uint8Array.of(1, 1, 3), Uint8Array.of(1, 1, 3, 15, 7)];
  fake.set("example.", Qtype.DNSKEY, { answer: [example.dnskeys(malformed)] });
  const answer = [example.rrset([A("www.example.")])];
  isSecure(await validate("www.example.", Qtype.A, { answer }));
});

Deno.test(
  "Validator takes a zone of unknown algorithms or digests for unsigned",
  none,
  async (t) => {
    const rows: readonly (readonly [string, (key: FakeKey) => string[], number | null])[] = [
      ["algorithm", () => ["example. DS 1 253 2 00ff"], Ede.UnsupportedDnskeyAlgorithm],
      ["digest", (key) => [key.ds(3)], Ede.UnsupportedDsDigestType],
      ["both known beside them", (key) => [key.ds(3), "example. DS 1 253 2 00ff", key.ds()], null],
    ];
    for (const [what, ds, ede] of rows) {
      await t.step(what, async () => {
        const { fake, root, example, validate } = world();
        fake.set("example.", Qtype.DS, { answer: [root.rrset(ds(example))] });
        const answer = [example.rrset([A("www.example.")])];
        const verdict = await validate("www.example.", Qtype.A, { answer });
        if (ede === null) isSecure(verdict);
        else isInsecure(verdict, ede);
      });
    }
  },
);

Deno.test("Validator ignores SHA-1 where a stronger digest vouches", none, async () => {
  const { fake, root, example, validate } = world();
  const answer = [example.rrset([A("www.example.")])];
  const other = new FakeKey("example.");
  fake.set("example.", Qtype.DS, { answer: [root.rrset([example.ds(1), other.ds(2)])] });
  isBogus(await validate("www.example.", Qtype.A, { answer }), Ede.DnskeyMissing);
  fake.ports.cuts.cuts.clear();
  fake.set("example.", Qtype.DS, { answer: [root.rrset([example.ds(1)])] });
  isSecure(await validate("www.example.", Qtype.A, { answer }));
});

Deno.test("Validator asks once more, elsewhere, for what is not to be believed", none, async () => {
  const { fake, example, sub, validator } = world();
  /** An alias of a wildcard, at a name that is there. */
  const wildcard = example.rrset(["*.example. CNAME www.example."]);
  const replayed = { ...wildcard, owner: wireName("sub.example.") };
  for (
    const [zone, key, first] of [
      ["example", example, []],
      ["sub.example", sub, [replayed]],
    ] as const
  ) {
    const attempts: number[] = [];
    const ports = {
      ...fake.ports,
      lookUp: (name: Uint8Array, type: number, attempt: number) => {
        const isDs = type === Qtype.DS && formatName(name) === zone;
        if (isDs) attempts.push(attempt);
        if (isDs && attempt === 0) {
          return Promise.resolve({ rcode: 0, answer: first, authority: [] });
        }
        return fake.ports.lookUp(name, type, attempt);
      },
      cuts: fake.ports.cuts,
    };
    const second = new Validator(ports, validator.anchors);
    const answer = [key.rrset([A(`www.${zone}.`)])];
    const question = { name: wireName(`www.${zone}.`), type: Qtype.A };
    isSecure(await second.validate(question, { rcode: 0, answer, authority: [] }, TIMES.nowS));
    assert.deepEqual(attempts, [0, 1], zone);
  }
});

Deno.test(
  "Validator can't tell where records are not to be had, and does not remember that",
  none,
  async () => {
    const { fake, example, validate } = world();
    const keys = fake.responses.get("\x07example\0 48")!;
    fake.responses.delete("\x07example\0 48");
    const answer = [example.rrset([A("www.example.")])];
    const { finding } = await validate("www.example.", Qtype.A, { answer });
    assert.deepEqual([finding.security, finding.ede], [Security.Indeterminate, 5]);
    assert.match(finding.reason, /example DNSKEY: no answer/);
    fake.responses.set("\x07example\0 48", keys);
    isSecure(await validate("www.example.", Qtype.A, { answer }));
  },
);

Deno.test("Validator heeds the closest anchor, positive or negative", none, async (t) => {
  const { fake, root, example, sub, validate, validator } = world();
  const signed = [sub.rrset([A("www.sub.example.")])];
  const forged = rrsetsOf([A("www.sub.example.")]);
  const byExample = [example.rrset([A("www.sub.example.")])];
  const ask = (answer: readonly RrSet[]) => validate("www.sub.example.", Qtype.A, { answer });
  const use = (anchors: readonly FakeKey[], negative: readonly string[] = []) => {
    fake.ports.cuts.cuts.clear();
    validator.anchors = new TrustAnchors(
      anchors.map((key) => key.anchor()),
      negative.map(wireName),
    );
  };
  await t.step("a name below a negative one is unsigned", async () => {
    use([root], ["example."]);
    isInsecure(await ask(forged));
    isInsecure(await ask(signed));
  });
  await t.step("a positive one below a negative one", async () => {
    use([root, sub], ["example."]);
    isSecure(await ask(signed));
    isBogus(await ask(forged), Ede.RrsigsMissing);
  });
  await t.step("an unsigned zone above an anchored one does not sign for it", async () => {
    use([sub]);
    isBogus(await ask(byExample), Ede.RrsigsMissing);
    isSecure(await ask(signed));
  });
  await t.step("no anchor above", async () => {
    use([]);
    isInsecure(await ask(forged));
  });
});

Deno.test("Validator follows aliases over zones, each proven by itself", none, async (t) => {
  const { fake, example, sub, validate } = world();
  const cname = example.rrset(["a.example. CNAME www.sub.example."]);
  const dname = example.rrset(["old.example. DNAME sub.example."]);
  const [synthesized] = rrsetsOf(["www.old.example. CNAME www.sub.example."]);
  const [wrong] = rrsetsOf(["www.old.example. CNAME evil.sub.example."]);
  const www = sub.rrset([A("www.sub.example.")]);
  fake.set("www.old.example.", Qtype.DS, { answer: [dname] });
  fake.set("old.example.", Qtype.DS, {
    authority: [example.rrset(["old.example. NSEC sub.example. DNAME RRSIG NSEC"])],
  });
  const secureA = async (name: string, answer: RrSet[]) =>
    await validate(name, Qtype.A, { answer });
  await t.step("CNAME", async () => {
    const verdict = await secureA("a.example.", [www, cname]);
    isSecure(verdict);
    const names = verdict.answer.map(({ rrset }) =>
      `${formatName(rrset.owner)} ${qtypeName(rrset.type)}`
    );
    assert.deepEqual(names, ["a.example CNAME", "www.sub.example A"], "in the order of the chain");
  });
  await t.step("CNAME to what is unsigned in a signed zone", async () => {
    isBogus(await secureA("a.example.", [cname, ...rrsetsOf([A("www.sub.example.")])]), 10);
  });
  await t.step("CNAME to what is unsigned in an unsigned zone", async () => {
    const out = example.rrset(["a.example. CNAME www.plain.example."]);
    isInsecure(await secureA("a.example.", [out, ...rrsetsOf([A("www.plain.example.")])]));
  });
  await t.step("DNAME, with the CNAME that it stands for, or without", async () => {
    isSecure(await secureA("www.old.example.", [dname, synthesized, www]));
    isSecure(await secureA("www.old.example.", [dname, www]));
  });
  await t.step("a question for the CNAME that a DNAME stands for", async () => {
    const answer = [dname, synthesized];
    const verdict = await validate("www.old.example.", Qtype.CNAME, { answer });
    isSecure(verdict);
    assert.deepEqual(verdict.answer.map(({ rrset }) => rrset), answer);
    const { finding } = await validate("www.old.example.", Qtype.CNAME, { answer: [dname, wrong] });
    assert.equal(finding.security, Security.Bogus);
  });
  await t.step("DNAME, with a CNAME that it does not stand for", async () => {
    isBogus(await secureA("www.old.example.", [dname, wrong, www]), Ede.RrsigsMissing);
  });
  await t.step("DNAME to a name that is too long", async () => {
    const label = "x".repeat(63);
    const long = example.rrset([
      `old.example. DNAME ${[label, label, label, "y".repeat(55)].join(".")}.`,
    ]);
    const verdict = await validate("www.www.www.old.example.", Qtype.A, {
      answer: [long],
      rcode: Rcode.YXDomain,
    });
    isSecure(verdict);
    assert.equal(verdict.rcode, Rcode.YXDomain);
  });
  await t.step("a wildcard's CNAME, with the proof that nothing is closer", async () => {
    const wildcard = example.rrset(["*.example. CNAME www.sub.example."]);
    const alias = { ...wildcard, owner: wireName("x.example.") };
    const authority = [example.rrset(["www.example. NSEC example. A RRSIG NSEC"])];
    fake.set("x.example.", Qtype.DS, { answer: [alias], authority });
    isSecure(await validate("x.example.", Qtype.A, { answer: [alias, www], authority }));
    isBogus(await validate("x.example.", Qtype.A, { answer: [alias, www] }), Ede.NsecMissing);
  });
  await t.step("a loop", async () => {
    const loop = example.rrset(["a.example. CNAME a.example."]);
    const before = fake.ports.checks;
    assert.equal((await secureA("a.example.", [loop])).finding.limit, "ALIASES_MAX");
    assert.equal(fake.ports.checks, before);
  });
});

Deno.test("Validator passes on what has a part in the answer, and nothing else", none, async () => {
  const { example, validate } = world();
  const [evil] = rrsetsOf([A("evil.example.")]);
  const www = example.rrset([A("www.example.")]);
  const [ns] = rrsetsOf(["example. NS evil.example."]);
  const verdict = await validate("www.example.", Qtype.A, { answer: [evil, www], authority: [ns] });
  isSecure(verdict);
  assert.deepEqual(verdict.answer.map(({ rrset }) => rrset), [www]);
  assert.deepEqual(verdict.authority, []);
});

Deno.test("Validator says what code is proven", none, async (t) => {
  const { example, validate } = world();
  const soa = example.rrset(["example. SOA a.example. b.example. 1 2 3 4 5"]);
  const gap = example.rrset(["example. NSEC b.ent.example. NS SOA RRSIG NSEC DNSKEY"]);
  const ask = (rcode: number, name: string, type: number = Qtype.A) =>
    validate(name, type, { rcode, authority: [soa, gap] });
  await t.step("NXDOMAIN", async () => {
    const verdict = await ask(Rcode.NXDomain, "a.example.");
    isSecure(verdict);
    assert.equal(verdict.rcode, Rcode.NXDomain);
    assert.deepEqual(verdict.authority.map(({ rrset }) => rrset), [soa, gap]);
  });
  await t.step("NXDOMAIN said of a name between others", async () => {
    const verdict = await ask(Rcode.NXDomain, "ent.example.");
    isSecure(verdict);
    assert.equal(verdict.rcode, Rcode.NoError);
  });
  await t.step("no data said of a name that is not there", async () => {
    isBogus(await ask(Rcode.NoError, "a.example."), Ede.NsecMissing);
  });
  await t.step("no data of a type that is there", async () => {
    isBogus(await ask(Rcode.NoError, "example.", Qtype.NS), Ede.NsecMissing);
  });
  await t.step("another code", async () => {
    isBogus(await ask(Rcode.NotImp, "a.example."), Ede.DnssecBogus);
  });
  await t.step("a spoilt SOA", async () => {
    const bad = { ...soa, rdatas: [soa.rdatas[0].with(20, 9)] };
    const verdict = await validate("a.example.", Qtype.A, {
      rcode: Rcode.NXDomain,
      authority: [bad, gap],
    });
    isBogus(verdict, Ede.DnssecBogus);
  });
});

/** Base32hex of a hash with a number added to its last byte. */
function hashText(name: string, added = 0): string {
  const hash = nsec3Hash(wireName(name), { salt: new Uint8Array(0), iterations: 0 });
  hash[19] += added;
  return encodeBase32hex(hash);
}

Deno.test("Validator makes no NOERROR of the NXDOMAIN that opt-out leaves open", none, async () => {
  const { example, validate } = world();
  const nsec3 = (from: string, to: string) =>
    example.rrset([`${from}.example. NSEC3 1 1 0 - ${to} NS SOA RRSIG DNSKEY`]);
  const around = (name: string) => nsec3(hashText(name, -1), hashText(name, 1));
  const encloser = nsec3(hashText("example."), hashText("example.", 1));
  const closer = around("gone.example.");
  const wildcard = around("*.example.");
  const rcode = Rcode.NXDomain;
  const whole = { rcode, authority: [encloser, closer, wildcard] };
  const verdict = await validate("gone.example.", Qtype.A, whole);
  isInsecure(verdict);
  assert.equal(verdict.rcode, Rcode.NXDomain);
  // Without the wildcard nothing is proven of NXDOMAIN, but then neither is of NOERROR.
  const half = await validate("gone.example.", Qtype.A, { rcode, authority: [encloser, closer] });
  isInsecure(half);
  assert.equal(half.rcode, Rcode.NXDomain);
});
