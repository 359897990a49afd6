// Goal: patterns of real lists cover the names that they cover for another reader of the same syntax.
// Method: verdicts of npm @adguard/tsurlfilter 2.2.23 (DnsEngine), as a digest: the package is under
// GPL-3.0 and no part of this project. It is asked about names that people ask for, and about names
// near to the patterns. What is read otherwise here, and why, is in DIFFERENCES.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { question, sourceBits } from "../../tests/filter_reference.ts";
import { nearNames } from "../../tests/near_names.ts";
import { compile } from "./compile.ts";
import { Matcher, NO_RULE } from "./matcher.ts";

const LISTS = new URL("../../../shared/lists/", import.meta.url);
const ABSENT = await Deno.stat(LISTS).then(() => false, () => true);
if (ABSENT) console.warn("skipped: real lists are in ../shared/lists");
const OPTIONS = { ignore: ABSENT, permissions: { read: [LISTS] } };
const SEED = 0x5eed;
const ASKED = ["umbrella-top-100k.names.gz", "cloudflare-top-100k.names.gz"];

interface Verdicts {
  readonly names: number;
  readonly blocked: number;
  readonly allowed: number;
  /** SHA-256 of a line for each name that a rule decides about: the name, a blank, the verdict. */
  readonly sha256: string;
}

/** The other reader's; without the verdicts of rules with modifiers that are not read here. */
const THEIRS: Readonly<Record<string, { readonly asked: Verdicts; readonly near: Verdicts }>> = {
  "adguard-sdn-2019.adguard.gz": {
    asked: {
      names: 185_750,
      blocked: 5_963,
      allowed: 6,
      sha256: "a44a950e36fa0ca55f0a74266999b7fcf9c21285a282aeaaf07e656bf8f83450",
    },
    near: {
      names: 3_636,
      blocked: 1_070,
      allowed: 3,
      sha256: "685dbc2e94ed5bf258f77e9cfed2fc7fbf6eccf00de79ef11f4c35bd23e22a9b",
    },
  },
  "dandelion-agh-compilation.adguard.gz": {
    asked: {
      names: 185_750,
      blocked: 5_704,
      allowed: 117,
      sha256: "2f17f228f336147a7347e031be8f624c556cc122b039a186c7b5491919d21c8c",
    },
    near: {
      names: 6_694,
      blocked: 2_000,
      allowed: 42,
      sha256: "9b3bcc75921bb9926bb45ad291f58b701ee0efcadf957d32bb91a8c0f790daa5",
    },
  },
};

/** A rule that is read otherwise, a name, both verdicts, and why. */
const DIFFERENCES = [
  ["||ads.example", "ads.example.net", "blocked", "pass", "it reads as `||ads.example^`"],
  ["ads.example.", "x.ads.example.net", "blocked", "pass", "it is a name with a dot at its end"],
  ["ads", "x.ads.example", "blocked", "pass", "a plain name is that name alone"],
  ["_banner.", "a_banner.example", "blocked", "pass", "it is of a URL: no host has such a name"],
  ["/sub.", "sub.example", "blocked", "pass", "it is of a URL"],
  [
    "://ads.example",
    "ads.example",
    "blocked",
    "pass",
    "it begins a URL, and may be any path of it",
  ],
  ["://192.0.2.", "192.0.2.x.example", "blocked", "pass", "octets are about addresses, as `|10.*`"],
  ["10.*", "ns10.example", "blocked", "pass", "octets are about addresses, as `|10.*`"],
  ["a*", "xa.example", "blocked", "pass", "it is about too many names"],
  ["||ads.example^$~media", "ads.example", "blocked", "pass", "its modifier is not read"],
  ["/(?=ads)/", "ads.example", "blocked", "pass", "looking around takes no bounded time"],
  ["/x[[:digit:]]/", "x1.example", "pass", "blocked", "classes have names, as in Pi-hole"],
  ["x.example^", "-x.example", "pass", "blocked", "a name is what is asked for, a host's or not"],
] as const;

function matcherOf(bytes: Uint8Array): Matcher {
  return new Matcher(compile({ seed: SEED, sources: [{ bytes }] }).rules);
}

function verdictOn(matcher: Matcher, name: string): "blocked" | "allowed" | "pass" {
  const { packet, hashed } = question(name, SEED);
  const ref = matcher.match(packet, hashed, sourceBits([0], 1));
  return ref === NO_RULE ? "pass" : matcher.isBlock(ref) ? "blocked" : "allowed";
}

function verdictsOn(matcher: Matcher, names: readonly string[]): Verdicts {
  const counts = { blocked: 0, allowed: 0 };
  const hash = createHash("sha256");
  for (const name of names) {
    const verdict = verdictOn(matcher, name);
    if (verdict === "pass") continue;
    counts[verdict]++;
    hash.update(`${name} ${verdict}\n`);
  }
  return { names: names.length, ...counts, sha256: hash.digest("hex") };
}

async function linesOf(file: string): Promise<string[]> {
  const bytes = gunzipSync(await Deno.readFile(new URL(file, LISTS)));
  return new TextDecoder().decode(bytes).split(/\r?\n/);
}

Deno.test("Matcher gives another reader's verdicts about real lists", OPTIONS, async (t) => {
  const asked = new Set((await Promise.all(ASKED.map(linesOf))).flat().filter((name) => name));
  for (const [file, theirs] of Object.entries(THEIRS)) {
    await t.step(file, async () => {
      const lines = await linesOf(file);
      const matcher = matcherOf(new TextEncoder().encode(lines.join("\n")));
      assert.deepEqual(verdictsOn(matcher, [...asked]), theirs.asked);
      assert.deepEqual(verdictsOn(matcher, nearNames(lines)), theirs.near);
    });
  }
});

Deno.test("Matcher reads few lines otherwise than another reader", { permissions: "none" }, () => {
  for (const [rule, name, theirs, ours, why] of DIFFERENCES) {
    assert.notEqual(theirs, ours);
    const matcher = matcherOf(new TextEncoder().encode(rule));
    assert.equal(verdictOn(matcher, name), ours, `${rule} and ${name}: ${why}`);
  }
});
