import assert from "node:assert/strict";
import { Prng, seedFromEnv } from "../../tests/prng.ts";
import { findNameProblem, holdsUnseen, nameKeys, shownText } from "./text.ts";

const none = { permissions: "none" } as const;

/** Says whether two names have a key in common. */
function readAlike(a: string, b: string): boolean {
  return nameKeys(a).some((key) => nameKeys(b).includes(key));
}

const NAMES: readonly (readonly [string, string, boolean])[] = [
  ["admin", "Admin", true],
  ["admin", "аdmin", true], // Cyrillic а.
  ["admin", "АDМІN", true], // Cyrillic capitals but for D and N.
  ["admin", "ａｄｍｉｎ", true], // Full width.
  ["admin", "𝐚𝐝𝐦𝐢𝐧", true], // Mathematical bold.
  ["admin", "αdmin", true], // Greek alpha.
  ["Alice", "AIice", true], // A capital I for the l.
  ["alice", "a1ice", true],
  ["Bob", "ВоЬ", true], // Cyrillic.
  ["нет", "НЕТ", true],
  ["ΟΔΟΣ", "οδος", true],
  ["Straße", "STRASSE", true],
  ["Kids 2", "Kids\u00a02", true],
  ["guest-net", "guest‑net", true],
  ["ﬁle", "file", true],
  ["Ian", "lan", true],
  ["LAN", "Ian", false],
  ["kim", "klm", false],
  ["ann", "anna", false],
  ["Bücher", "Bucher", false],
  ["Kids", "Guests", false],
  ["corn", "com", false],
  ["房间", "房問", false],
];

Deno.test("nameKeys() of names that read alike have one in common", none, async (t) => {
  for (const [a, b, alike] of NAMES) {
    await t.step(`${a} ${b}`, () => {
      assert.equal(readAlike(a, b), alike);
      assert.equal(readAlike(b, a), alike);
    });
  }
});

Deno.test("nameKeys() are the same for what only differs in case, form or width", none, () => {
  const prng = new Prng(seedFromEnv());
  const letters = [..."aZiIlLßéÅſσςΣяЖіᾳŒ0 1-_'"];
  for (let round = 0; round < 2_000; round++) {
    const name = Array.from({ length: 1 + prng.int(8) }, () => prng.pick(letters)).join("");
    const variants = [
      name.normalize("NFD"),
      name.normalize("NFKC"),
      name.normalize("NFC").toUpperCase(),
      ` ${name} `,
    ];
    for (const variant of variants) assert.ok(readAlike(name, variant), `${name} ${variant}`);
  }
});

const UNSEEN = ["\u0000", "\u001b", "\u007f", "\u009b", "\u200b", "\u200d", "\u200e", "\u202e"]
  .concat("\u2066", "\u2028", "\ufeff", "\u00ad", "\u034f", "\u115f", "\u3164", "\ufe0f")
  .concat("\ud800", "\u{e0041}", "\u2800", "\ue000");

Deno.test("a name with a character that nobody sees is none", none, async (t) => {
  for (const unseen of UNSEEN) {
    await t.step(JSON.stringify(unseen), () => {
      for (const text of [unseen, `a${unseen}`, `${unseen}a`, `a${unseen}b`]) {
        assert.ok(holdsUnseen(text));
        assert.match(findNameProblem(text) ?? "", /invisible|blank/);
        assert.doesNotMatch(shownText(text), new RegExp(unseen, "u"));
      }
    });
  }
  for (
    const name of ["a", "Bücher 2", "家", "👨‍👩‍👧", "❤️ TV", "🇩🇪", "नमस्ते", "naïve", "x".repeat(128)]
  ) {
    assert.equal(findNameProblem(name), null, name);
  }
  assert.equal(findNameProblem(" \u3000"), "it is blank");
});

Deno.test("shownText() cuts what is long", none, () => {
  assert.equal(shownText("a".repeat(64)), "a".repeat(64));
  assert.equal(shownText("a".repeat(9_999)), "a".repeat(64) + "…");
  assert.equal(shownText("a\u202eb\nc"), "a\ufffdb\ufffdc");
});
