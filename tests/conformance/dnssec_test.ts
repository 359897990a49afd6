// Goal: answers of real name servers over zones signed by real tools are proven, in every algorithm,
// and no answer is in which a single bit differs. Method: BIND signs zones drawn from one seed, NSD
// serves them, and questions are drawn from the same seed; BIND's own validator is asked beside.

import assert from "node:assert/strict";
import { formatName, nameKey, Qtype, qtypeName } from "../../src/dns/mod.ts";
import {
  type ChainPorts,
  type Cut,
  parseTrustAnchors,
  type Question,
  type RrSet,
  type RrSetResponse,
  Security,
  TrustAnchors,
  type ValidatedRrSet,
  Validator,
  type Verdict,
  verifySignature,
} from "../../src/dnssec/mod.ts";
import { hasProgram, PERMISSIONS } from "../e2e/harness.ts";
import { anchorsOfBind, askDelv } from "./delv.ts";
import { Prng, seedFromEnv } from "../prng.ts";
import {
  ALGORITHMS,
  drawQuestion,
  mutateRrSet,
  SignedZones,
  signZones,
  zonesOf,
} from "./signed_zones.ts";

const TOOLS = ["dnssec-keygen", "dnssec-signzone", "nsd", "delv"].map(hasProgram).every(Boolean);
const OPTIONS = { permissions: PERMISSIONS, ignore: !TOOLS } as const;

/** Questions to the zones of an algorithm, and bits changed in each answer. */
const QUESTIONS = 250;
const MUTATIONS = 2;
/** Questions that BIND's validator is asked, each a program of its own. */
const COMPARED = 60;

const show = ({ name, type }: Question) => `${formatName(name)} ${qtypeName(type)}`;

class Bench {
  readonly #cuts = new Map<string, Cut>();
  readonly validator: Validator;
  readonly nowS = Math.floor(Date.now() / 1000);

  constructor(readonly zones: SignedZones, anchorText: string) {
    const { anchors, problems } = parseTrustAnchors(anchorText);
    assert.deepEqual(problems, []);
    const ports: ChainPorts = {
      lookUp: (name, type) => zones.ask(name, type),
      check: (check) => Promise.resolve(verifySignature(check)),
      cuts: {
        get: (name) => this.#cuts.get(nameKey(name)),
        set: (name, cut) => void this.#cuts.set(nameKey(name), cut),
      },
    };
    this.validator = new Validator(ports, new TrustAnchors(anchors));
  }

  async ask(
    question: Question,
  ): Promise<{ readonly response: RrSetResponse; readonly verdict: Verdict }> {
    const response = await this.zones.ask(question.name, question.type);
    return { response, verdict: await this.validate(question, response) };
  }

  validate(question: Question, response: RrSetResponse): Promise<Verdict> {
    return this.validator.validate(question, response, this.nowS);
  }
}

/** What may come of a question: an unsigned zone, and what opt-out leaves open, are not secure. */
function allowed(verdict: Verdict, question: Question): boolean {
  const { security } = verdict.finding;
  const text = formatName(question.name).toLowerCase();
  const isNear = (zone: string) => text === zone || text.endsWith(`.${zone}`);
  // Aliases lead there, too.
  const isOut = verdict.answer.some(({ rrset }) => /^out\./i.test(formatName(rrset.owner)));
  // DS of the anchored zone is its parent's, of which nothing is known.
  if (text === "test" && question.type === Qtype.DS) return security === Security.Insecure;
  if (isNear("plain.test") || isNear("optout.test") || isOut) return security <= Security.Insecure;
  return security === Security.Secure;
}

/** The response with one bit of a record changed that has a part in the answer. */
function mutate(
  prng: Prng,
  response: RrSetResponse,
  parts: readonly ValidatedRrSet[],
): { readonly response: RrSetResponse; readonly changed: RrSet } | null {
  const { rrset } = prng.pick(parts);
  const changed = mutateRrSet(prng, rrset);
  if (changed === null) return null;
  const replace = (sets: readonly RrSet[]) => sets.map((set) => set === rrset ? changed : set);
  const { rcode, answer, authority } = response;
  return { response: { rcode, answer: replace(answer), authority: replace(authority) }, changed };
}

Deno.test(
  "answers over zones signed by BIND are proven, and none with a bit changed",
  OPTIONS,
  async (t) => {
    const prng = new Prng(seedFromEnv());
    for (const algorithm of ALGORITHMS) {
      await t.step(algorithm, async () => {
        const specs = zonesOf(prng, algorithm);
        const directory = await signZones(specs, algorithm);
        try {
          const anchors = await Deno.readTextFile(`${directory}/dsset-test.`);
          await using served = await SignedZones.serve(directory, specs.map(({ name }) => name));
          const bench = new Bench(served, anchors);
          const counts = { secure: 0, insecure: 0, mutated: 0 };
          for (let i = 0; i < QUESTIONS; i++) {
            const question = drawQuestion(prng, specs);
            const { response, verdict } = await bench.ask(question);
            const { security, reason } = verdict.finding;
            assert(allowed(verdict, question), `${show(question)}: ${security} ${reason}`);
            if (security !== Security.Secure) counts.insecure++;
            else {
              counts.secure++;
              const parts = [...verdict.answer, ...verdict.authority].filter(({ rrset }) =>
                rrset.signatures.length > 0
              );
              for (let j = 0; j < MUTATIONS; j++) {
                const mutated = mutate(prng, response, parts);
                if (mutated === null) continue;
                counts.mutated++;
                const { finding, authority } = await bench.validate(question, mutated.response);
                // An SOA of another name than the zone's proves nothing, and is not passed on.
                const isLeftOut = mutated.changed.type === Qtype.SOA &&
                  authority.every(({ rrset }) => rrset !== mutated.changed);
                const text = `${show(question)}, a bit changed: ${finding.reason}`;
                assert(finding.security >= Security.Indeterminate || isLeftOut, text);
              }
            }
          }
          assert(
            counts.secure > QUESTIONS / 3 && counts.insecure > 5 && counts.mutated > QUESTIONS / 4,
          );
        } finally {
          await Deno.remove(directory, { recursive: true });
        }
      });
    }
  },
);

Deno.test(
  "the verdicts are those of BIND's validator, over zones with spoilt records too",
  OPTIONS,
  async () => {
    const prng = new Prng(seedFromEnv());
    const specs = zonesOf(prng, "ECDSAP256SHA256");
    const directory = await signZones(specs, "ECDSAP256SHA256");
    try {
      for (const { name, denial } of specs) {
        const file = `${directory}/${name}signed`;
        if (denial !== null && name !== "test.") await spoil(prng, file);
      }
      const anchors = await Deno.readTextFile(`${directory}/dsset-test.`);
      await Deno.writeTextFile(`${directory}/anchors`, anchorsOfBind(anchors));
      await using served = await SignedZones.serve(directory, specs.map(({ name }) => name));
      const bench = new Bench(served, anchors);
      const different: string[] = [];
      const seen = new Set<string>();
      for (let i = 0; i < COMPARED; i++) {
        const question = drawQuestion(prng, specs);
        const { verdict } = await bench.ask(question);
        const words = ["secure", "insecure", "indeterminate", "bogus"];
        const got = words[verdict.finding.security];
        // It says nothing of what an alias leads to where that is an absence, and takes an alias in
        // answer to a question for NSEC for an error.
        const isAlias = verdict.answer.some(({ rrset }) => rrset.type !== question.type);
        if (isAlias || question.type === Qtype.NSEC) continue;
        // DS of the anchored zone is asked of a root that is not there.
        if (question.type === Qtype.DS && /^test$/i.test(formatName(question.name))) continue;
        const want = await askDelv(served.port, `${directory}/anchors`, question);
        // It calls proven what opt-out leaves open; RFC 5155 §9.2 does not.
        const isOptOut = want === "secure" && /: opt-out/.test(verdict.finding.reason);
        seen.add(want);
        if (got === want || isOptOut) continue;
        different.push(`${show(question)}: ${got}, BIND ${want}: ${verdict.finding.reason}`);
      }
      assert.deepEqual(different, []);
      assert(seen.size > 1, [...seen].join());
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
);

/** Changes a letter in every fourth signature, but for those of the keys. */
async function spoil(prng: Prng, file: string): Promise<void> {
  const text = await Deno.readTextFile(file);
  const spoilt = text.replaceAll(
    /(RRSIG\s+(?!DNSKEY)[^;]*?\(\n[^)]*?)([A-Za-z0-9+/])([A-Za-z0-9+/]{8}[=]* \))/g,
    (whole, before, letter, after) =>
      prng.chance(0.25) ? `${before}${letter === "A" ? "B" : "A"}${after}` : whole,
  );
  assert.notEqual(spoilt, text);
  await Deno.writeTextFile(file, spoilt);
}
