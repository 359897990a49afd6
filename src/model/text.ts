/** Longest text of somebody else's that a message repeats, in UTF-16 units. */
const SHOWN_LENGTH_MAX = 64;

/**
 * What nobody sees, or what changes how the rest is read: controls, format characters (the
 * directions of text among them), halves of pairs, unassigned ones, and fillers without a shape.
 */
const UNSEEN = String.raw`\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800`;
const HOLDS_UNSEEN = new RegExp(`[${UNSEEN}]`, "u");
const EACH_UNSEEN = new RegExp(`[${UNSEEN}]`, "gu");
/** Emoji are made with joiners and selectors; nothing is hidden by these. */
const EMOJI = /\p{RGI_Emoji}/gv;

/** Longest text that is looked through for what nobody sees; every field has a bound below this. */
const LOOKED_LENGTH_MAX = 8_192;

/** Says whether a text holds a character that nobody sees; those that make an emoji do not count. */
export function holdsUnseen(text: string): boolean {
  if (/^[ -~]*$/.test(text)) return false;
  return text.length > LOOKED_LENGTH_MAX || HOLDS_UNSEEN.test(text.replace(EMOJI, ""));
}

/** Somebody's text for a message of ours: cut, and without what nobody sees. */
export function shownText(text: string): string {
  const cut = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
  return cut.replace(EACH_UNSEEN, "\ufffd");
}

/** Why a text is no name, or `null`. */
export function findNameProblem(name: string): string | null {
  if (/^\s*$/u.test(name)) return "it is blank";
  return holdsUnseen(name) ? "it holds a control, direction or invisible character" : null;
}

/**
 * Letters and signs that are taken for Latin ones (Unicode TR39, `confusables.txt`), in lower case
 * and in the order of the Latin ones. A capital is told by its small letter.
 */
const CONFUSABLES: Readonly<Record<string, string>> = {
  a: "аαɑ",
  b: "вβьƅ",
  c: "сϲᴄⲥ",
  d: "ԁɗ",
  e: "еєε℮",
  f: "ғϝ",
  g: "ɡց",
  h: "һнη",
  i: "іιıɩ",
  j: "јϳ",
  k: "кκ",
  l: "1|ӏǀ",
  m: "мμ",
  n: "ոռ",
  o: "0оοօσ",
  p: "рρ",
  q: "ԛզ",
  r: "гᴦ",
  s: "ѕꜱ",
  t: "тτ",
  u: "υսᴜ",
  v: "ѵνᴠ",
  w: "ԝաωᴡ",
  x: "хχ×",
  y: "уγүʏ",
  z: "ᴢζ",
  "-": "‐‑‒–—−",
  "'": "’‘ʼ′",
};

const LOOKS_LIKE: ReadonlyMap<string, string> = new Map(
  Object.entries(CONFUSABLES).flatMap(([latin, others]) =>
    Array.from(others, (other) => [other, latin] as const)
  ),
);

/** Small letters, each by itself: where it stands in a word makes no other of it. */
function folded(text: string): string {
  return Array.from(text, (letter) => letter.toUpperCase().toLowerCase()).join("");
}

function latinised(text: string): string {
  return Array.from(text, (letter) => LOOKS_LIKE.get(letter) ?? letter).join("");
}

/**
 * What a name is told apart by: two names with a key in common are read as one. The first key is
 * about letters whatever their case, the second about a capital I, which is drawn as a small l.
 */
export function nameKeys(name: string): readonly [string, string] {
  const plain = name.normalize("NFKC").replace(/\s+/gu, " ").trim();
  const drawn = latinised(plain.replaceAll("I", "l"));
  return [`a ${latinised(folded(plain)).normalize("NFKC")}`, `b ${drawn}`];
}
