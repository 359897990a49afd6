import assert from "node:assert/strict";
import { wireName } from "../../tests/replay/records.ts";
import { encodeBase32hex } from "../bytes/mod.ts";
import { formatName, parseQtype, Qtype } from "../dns/mod.ts";
import { deduce, readDenials } from "./aggressive.ts";
import { CutProof, type Denials, Proof } from "./denial.ts";
import { rrsetsOf } from "./fakes.ts";
import { Allowance } from "./limits.ts";
import { nsecCut, nsecNameError, nsecNoCloser, nsecNoData } from "./nsec.ts";
import {
  HashedDenials,
  nsec3Cut,
  nsec3Hash,
  nsec3NameError,
  nsec3NoCloser,
  nsec3NoData,
} from "./nsec3.ts";

const none = { permissions: "none" } as const;
const ZONE = wireName("example.");

/**
 * A zone's names in order, with their types. `*` is a wildcard, `cut` an unsigned delegation, `sec` a
 * signed one, `alias` a CNAME, `moved` a DNAME; `deep.ent` makes `ent` a name between others.
 */
const NAMES: readonly (readonly [string, string])[] = [
  ["example.", "NS SOA RRSIG NSEC DNSKEY"],
  ["a.example.", "A RRSIG NSEC"],
  ["alias.example.", "CNAME RRSIG NSEC"],
  ["cut.example.", "NS RRSIG NSEC"],
  ["deep.ent.example.", "A RRSIG NSEC"],
  ["moved.example.", "DNAME RRSIG NSEC"],
  ["sec.example.", "NS DS RRSIG NSEC"],
  ["*.w.example.", "TXT RRSIG NSEC"],
  ["x.w.example.", "A RRSIG NSEC"],
];

/** The whole zone's NSEC records. */
const NSEC: Denials = readDenials(
  ZONE,
  rrsetsOf(
    NAMES.map(([owner, types], i) => `${owner} NSEC ${NAMES[(i + 1) % NAMES.length][0]} ${types}`),
  ),
);

/** The same by NSEC3, names between others included; opt-out leaves `cut` out. */
function nsec3Of(optOut: boolean): Denials {
  const salt = Uint8Array.of(0xab);
  const names = [...NAMES, ["ent.example.", ""], ["w.example.", ""]] as const;
  const hashed = names.filter(([name]) => !optOut || name !== "cut.example.").map((
    [name, types],
  ) => ({
    hash: encodeBase32hex(nsec3Hash(wireName(name), { salt, iterations: 1 })),
    types: types.replace(" NSEC", ""),
  })).sort((a, b) => a.hash < b.hash ? -1 : 1);
  return readDenials(
    ZONE,
    rrsetsOf(
      hashed.map(({ hash, types }, i) =>
        `${hash}.example. NSEC3 1 ${optOut ? 1 : 0} 1 ab ${
          hashed[(i + 1) % hashed.length].hash
        } ${types}`
      ),
    ),
  );
}

const hashedOf = (denials: Denials) => new HashedDenials(denials, new Allowance("HASH_ROUNDS_MAX"));
const nameOf = (set: Readonly<Record<string, number>>, value: number) =>
  Object.keys(set).find((key) => set[key] === value);

/** Is there neither the name nor a wildcard; by NSEC, NSEC3, and with opt-out. */
const NAME_ERRORS: readonly (readonly [string, boolean, string, string])[] = [
  ["b.example.", true, "Proven", "OptOut"],
  ["x.y.z.example.", true, "Proven", "OptOut"],
  ["b.a.example.", true, "Proven", "OptOut"],
  ["a.example.", false, "Unproven", "Unproven"],
  ["ent.example.", false, "Unproven", "Unproven"],
  // What is below a delegation or a DNAME is elsewhere.
  ["b.cut.example.", false, "Unproven", "OptOut"],
  ["b.sec.example.", false, "Unproven", "Unproven"],
  ["b.moved.example.", false, "Unproven", "Unproven"],
  // A wildcard answers.
  ["b.w.example.", false, "Unproven", "Unproven"],
  ["b.x.w.example.", true, "Proven", "OptOut"],
  ["b.other.", false, "Unproven", "Unproven"],
];

Deno.test("a name error is proven where neither name nor wildcard is there", none, async (t) => {
  for (const [text, byNsec, byNsec3, byOptOut] of NAME_ERRORS) {
    await t.step(text, () => {
      const name = wireName(text);
      assert.equal(nsecNameError(NSEC, name) !== null, byNsec);
      const { proof } = nsec3NameError(hashedOf(nsec3Of(false)), name);
      assert.equal(nameOf(Proof, proof), byNsec3);
      const optOut = nsec3NameError(hashedOf(nsec3Of(true)), name);
      assert.equal(nameOf(Proof, optOut.proof), byOptOut);
    });
  }
});

const NO_DATA: readonly (readonly [string, string, boolean, string, string])[] = [
  ["a.example.", "AAAA", true, "Proven", "Proven"],
  ["a.example.", "A", false, "Unproven", "Unproven"],
  ["a.example.", "ANY", false, "Unproven", "Unproven"],
  ["alias.example.", "A", false, "Unproven", "Unproven"],
  ["ent.example.", "A", true, "Proven", "Proven"],
  // A delegation's parent speaks of DS, and of nothing else.
  ["cut.example.", "DS", true, "Proven", "OptOut"],
  ["cut.example.", "A", false, "Unproven", "OptOut"],
  ["sec.example.", "DS", false, "Unproven", "Unproven"],
  ["sec.example.", "A", false, "Unproven", "Unproven"],
  // The apex is the child's side, which has no say about DS.
  ["example.", "DS", false, "Unproven", "Unproven"],
  ["example.", "A", true, "Proven", "Proven"],
  ["b.w.example.", "A", true, "Proven", "OptOut"],
  ["b.w.example.", "TXT", false, "Unproven", "Unproven"],
  ["b.x.w.example.", "A", false, "Unproven", "OptOut"],
  ["b.example.", "A", false, "Unproven", "OptOut"],
];

Deno.test(
  "no data is proven where the name, or a wildcard, is without the type",
  none,
  async (t) => {
    for (const [text, typeName, byNsec, byNsec3, byOptOut] of NO_DATA) {
      await t.step(`${text} ${typeName}`, () => {
        const name = wireName(text);
        const type = parseQtype(typeName)!;
        assert.equal(nsecNoData(NSEC, name, type) !== null, byNsec);
        const { proof } = nsec3NoData(hashedOf(nsec3Of(false)), name, type);
        assert.equal(nameOf(Proof, proof), byNsec3);
        const optOut = nsec3NoData(hashedOf(nsec3Of(true)), name, type);
        assert.equal(nameOf(Proof, optOut.proof), byOptOut);
      });
    }
  },
);

Deno.test("a wildcard's answer needs the proof that nothing is closer", none, async (t) => {
  // Labels of the wildcard's parent: 2 is w.example.
  const rows: readonly (readonly [string, number, boolean, boolean])[] = [
    ["b.w.example.", 2, true, true],
    ["c.b.w.example.", 2, true, true],
    ["x.w.example.", 2, false, false],
    ["b.x.w.example.", 2, false, false],
    ["deep.ent.example.", 1, false, false],
    ["ent.example.", 1, false, false],
    ["b.example.", 1, true, true],
    // NSEC shows that the closest encloser is another.
    ["b.w.example.", 1, false, false],
  ];
  for (const [text, labels, byNsec, byNsec3] of rows) {
    await t.step(`${text} from *.${formatName(wireName(text))} at ${labels}`, () => {
      const name = wireName(text);
      assert.equal(nsecNoCloser(NSEC, name, labels) !== null, byNsec);
      const { proof } = nsec3NoCloser(hashedOf(nsec3Of(false)), name, labels);
      assert.equal(proof === Proof.Proven, byNsec3);
    });
  }
});

Deno.test("an absent DS tells a delegation from a name within the zone", none, async (t) => {
  const rows: readonly (readonly [string, string, string, string])[] = [
    ["cut.example.", "Delegation", "Delegation", "OptOut"],
    ["a.example.", "NoCut", "NoCut", "NoCut"],
    ["ent.example.", "NoCut", "NoCut", "NoCut"],
    ["b.example.", "Absent", "Absent", "OptOut"],
    ["b.b.example.", "Absent", "Absent", "OptOut"],
    ["sec.example.", "Unproven", "Unproven", "Unproven"],
    ["b.sec.example.", "Unproven", "Unproven", "Unproven"],
    ["example.", "Unproven", "Unproven", "Unproven"],
  ];
  for (const [text, byNsec, byNsec3, byOptOut] of rows) {
    await t.step(text, () => {
      const name = wireName(text);
      assert.equal(nameOf(CutProof, nsecCut(NSEC, name)), byNsec);
      assert.equal(nameOf(CutProof, nsec3Cut(hashedOf(nsec3Of(false)), name)), byNsec3);
      assert.equal(nameOf(CutProof, nsec3Cut(hashedOf(nsec3Of(true)), name)), byOptOut);
    });
  }
});

Deno.test(
  "readDenials() leaves out NSEC3 that is not of the zone, or not known",
  none,
  async (t) => {
    const hash = "0".repeat(32);
    const rows: readonly (readonly [string, string, number])[] = [
      ["one of the zone", `${hash}.example. NSEC3 1 0 0 - ${hash} A`, 1],
      ["at the apex of a zone below", `${hash}.${hash}.example. NSEC3 1 0 0 - ${hash} A`, 0],
      ["another hash", `${hash}.example. NSEC3 2 0 0 - ${hash} A`, 0],
      ["another flag", `${hash}.example. NSEC3 1 2 0 - ${hash} A`, 0],
      ["no hash in the name", `www.example. NSEC3 1 0 0 - ${hash} A`, 0],
      ["a short hash", `${hash}.example. NSEC3 1 0 0 - ${"0".repeat(16)} A`, 0],
    ];
    for (const [what, line, count] of rows) {
      await t.step(what, () => {
        assert.equal(readDenials(ZONE, rrsetsOf([line])).nsec3s.length, count);
      });
    }
  },
);

Deno.test("deduce() answers from gaps, but for opt-out", none, async (t) => {
  const rows: readonly (readonly [string, string, string | null])[] = [
    ["b.example.", "A", "name_error"],
    ["a.example.", "AAAA", "no_data"],
    ["a.example.", "A", null],
    ["b.w.example.", "A", "no_data"],
    ["b.w.example.", "TXT", "wildcard *.w.example"],
    ["b.cut.example.", "A", null],
    ["cut.example.", "A", null],
    ["cut.example.", "DS", "no_data"],
    ["example.", "DS", null],
  ];
  for (const [text, typeName, want] of rows) {
    await t.step(`${text} ${typeName}`, () => {
      const question = { name: wireName(text), type: parseQtype(typeName)! };
      for (const denials of [NSEC, nsec3Of(false)]) {
        const found = deduce(denials, question);
        const got = found?.kind === "wildcard"
          ? `wildcard ${formatName(found.wildcard)}`
          : found?.kind;
        assert.equal(got ?? null, want);
        assert(found === null || found.used.length > 0);
      }
      const found = deduce(nsec3Of(true), question);
      const isExact = want === "no_data" && text === "a.example.";
      assert.equal(found?.kind ?? null, isExact ? want : null, "with opt-out");
    });
  }
});

Deno.test("one NSEC covers a zone of one name", none, () => {
  const alone = readDenials(ZONE, rrsetsOf(["example. NSEC example. NS SOA RRSIG NSEC DNSKEY"]));
  assert(nsecNameError(alone, wireName("a.example.")) !== null);
  assert(nsecNoData(alone, ZONE, Qtype.A) !== null);
  assert.equal(nsecNameError(alone, wireName("a.other.")), null);
});
