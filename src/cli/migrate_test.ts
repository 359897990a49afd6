import assert from "node:assert/strict";
import { harmless } from "./harmless.ts";
import { formatMigrated } from "./migrate.ts";
import { typedPassword } from "./password.ts";

const none = { permissions: "none" } as const;

Deno.test("formatMigrated() lines up what became of each thing, and counts it", none, () => {
  const text = formatMigrated({
    done: false,
    source: "Pi-hole v6.4.1",
    counts: { added: 1, there_already: 0, adapted: 0, not_possible: 1 },
    items: [
      { type: "rule", name: "||ads.example^", outcome: "added", detail: null },
      {
        type: "safe_search",
        name: "evil\u202e\x1b[2J",
        outcome: "not_possible",
        detail: "why\nnot",
      },
    ],
    fragment: "",
  });
  assert.deepEqual(text.split("\n"), [
    "added         rule         ||ads.example^",
    "not possible  safe search  evil��[2J       why�not",
    "Pi-hole v6.4.1: 1 added, 0 there already, 0 adapted, 1 not possible",
    "nothing was changed",
  ]);
});

Deno.test(
  "harmless() lets nothing through that a terminal acts on or that turns text round",
  none,
  () => {
    for (
      const mark of [
        "\x00",
        "\x1b",
        "\x7f",
        "\x9b",
        "\u202e",
        "\u2066",
        "\u061c",
        "\u200f",
        "\u2028",
      ]
    ) {
      assert.equal(harmless(`a${mark}b`), "a�b", JSON.stringify(mark));
    }
    assert.equal(harmless("Küche, 厨房, מטבח 👩‍🍳"), "Küche, 厨房, מטבח 👩‍🍳");
  },
);

Deno.test("typedPassword() reads one line, unseen, as it is typed and mended", none, async (t) => {
  const type = async (...pieces: readonly string[]) => {
    const raw: boolean[] = [];
    const left = pieces.map((piece) => new TextEncoder().encode(piece));
    const read = (into: Uint8Array) => {
      const next = left.shift();
      if (next !== undefined) into.set(next);
      return Promise.resolve(next?.length ?? null);
    };
    try {
      return await typedPassword({ read, setRaw: (isRaw) => raw.push(isRaw) });
    } finally {
      assert.deepEqual(raw, [true, false], "the terminal is as it was");
    }
  };
  const rows: readonly (readonly [string, readonly string[], string])[] = [
    ["a line", ["secret\r"], "secret"],
    ["letter by letter", ["s", "é", "\n", "more"], "sé"],
    ["a mended letter", ["sé\x7f\x7ft\r"], "t"],
    ["a line taken back", ["wrong\x15right\r"], "right"],
    ["an end", ["secret", "\x04"], "secret"],
    ["nothing more", ["secret"], "secret"],
    ["nothing", [], ""],
  ];
  for (const [name, pieces, want] of rows) {
    await t.step(name, async () => assert.equal(await type(...pieces), want));
  }
  await t.step("an interrupt", () => assert.rejects(type("sec", "\x03"), /no password was given/));
  await t.step(
    "no end",
    () => assert.rejects(type(...Array(9).fill("x".repeat(200))), /longer than 1024/),
  );
});
