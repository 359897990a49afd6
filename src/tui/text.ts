/** Text of anybody's as glyphs of a terminal: nothing in it acts, and each has a known width. */

/** One character as it is shown, with the marks on it. */
export interface Glyph {
  readonly text: string;
  /** Columns that it takes. */
  readonly width: 1 | 2;
}

/** Marks on one character: with more, a name would paint over the lines above it. */
const MARKS_MAX = 2;

const CONTROL = /\p{Cc}/u;
const MARK = /[\p{Mn}\p{Me}]/u;
const VARIATION = /\p{Variation_Selector}/u;
/** Turns the direction of what follows, joins, or shows nothing at all. */
const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/u;
/** UAX #11: wide by the script or as an emoji; the rest are symbols and full-width forms. */
const WIDE = new RegExp(
  "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Bopomofo}" +
    "\\p{Script=Yi}\\p{Script=Tangut}\\p{Script=Nushu}\\p{Emoji_Presentation}" +
    "\\u3000-\\u303e\\u3099-\\u30ff\\u3190-\\u33ff\\ufe30-\\ufe6f\\uff01-\\uff60\\uffe0-\\uffe6]",
  "u",
);
const HALF_WIDTH = /[\uff61-\uffdc]/u;

const REPLACEMENT: Glyph = { text: "\ufffd", width: 1 };

function asciiGlyphs(text: string): Glyph[] {
  return Array.from(text, (one) => ({ text: one, width: 1 as const }));
}

/** A text as glyphs; without `unicode` all of them are ASCII. */
export function glyphsOf(text: string, unicode: boolean): Glyph[] {
  const glyphs: Glyph[] = [];
  let marks = 0;
  for (const one of text.normalize("NFC")) {
    const code = one.codePointAt(0)!;
    if (code >= 0x20 && code < 0x7f) {
      glyphs.push({ text: one, width: 1 });
      marks = 0;
    } else if (CONTROL.test(one)) {
      glyphs.push(...asciiGlyphs(`\\${String(code).padStart(3, "0")}`));
      marks = MARKS_MAX; // No letter to stand on.
    } else if (VARIATION.test(one)) {
      continue; // It would change the width of what stands before it.
    } else if (!unicode) {
      if (!MARK.test(one)) glyphs.push({ text: "?", width: 1 });
    } else if (MARK.test(one)) {
      const base = glyphs.at(-1);
      if (base === undefined || marks++ >= MARKS_MAX) continue;
      glyphs[glyphs.length - 1] = { ...base, text: base.text + one };
    } else if (UNSEEN.test(one)) {
      glyphs.push(REPLACEMENT);
      marks = MARKS_MAX;
    } else {
      glyphs.push({ text: one, width: WIDE.test(one) && !HALF_WIDTH.test(one) ? 2 : 1 });
      marks = 0;
    }
  }
  return glyphs;
}

/** A text with nothing in it that a terminal would act on. */
export function visible(text: string, unicode = true): string {
  return glyphsOf(text, unicode).map((glyph) => glyph.text).join("");
}

/** The end of a text, as much as so many columns take. */
export function tailOf(text: string, columns: number, unicode: boolean): string {
  const glyphs = glyphsOf(text, unicode);
  let first = glyphs.length;
  for (let left = columns; first > 0 && glyphs[first - 1].width <= left; first--) {
    left -= glyphs[first - 1].width;
  }
  return glyphs.slice(first).map((glyph) => glyph.text).join("");
}

/** A number with its thousands apart. */
export function counted(number: number): string {
  return number.toLocaleString("en-US");
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? "-" : `${Math.round((part / whole) * 100)} %`;
}

export function milliseconds(ms: number | null): string {
  if (ms === null) return "-";
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** What is left of a time, as `59:03` or `1:00:00`. */
export function countDown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const two = (number: number) => String(number).padStart(2, "0");
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** How long ago, in one unit. */
export function ago(ms: number): string {
  const units = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"]] as const;
  for (const [unitMs, unit] of units) {
    if (ms >= unitMs) return `${Math.floor(ms / unitMs)} ${unit}`;
  }
  return "now";
}

/** Local time of day; with the day where that is another one. */
export function clockTime(time: string, now: Date): string {
  const then = new Date(time);
  const text = then.toTimeString().slice(0, 5);
  return then.toDateString() === now.toDateString() ? text : `${then.toDateString()} ${text}`;
}

const BARS = { unicode: " ▁▂▃▄▅▆▇█", ascii: " .:-=+*#@" };

/** Values as bars, the highest at full height; what is not 0 is seen. */
export function sparkline(values: readonly number[], width: number, unicode: boolean): string {
  const bars = unicode ? BARS.unicode : BARS.ascii;
  const shown = values.slice(-width);
  const most = Math.max(...shown, 1);
  return shown.map((value) => bars[value === 0 ? 0 : Math.max(1, Math.round((value / most) * 8))])
    .join("");
}
