import { glyphsOf } from "./text.ts";

/** How cells look; a terminal without colours shows all of them alike. */
export const Style = {
  Plain: 0,
  Bold: 1,
  Dim: 2,
  Selected: 3,
  Red: 4,
  Green: 5,
  Yellow: 6,
  Blue: 7,
  Magenta: 8,
  Cyan: 9,
} as const;
export type Style = typeof Style[keyof typeof Style];

const SGR = ["", "1", "2", "7", "31", "32", "33", "34", "35", "36"] as const;

/** What a terminal can show. */
export interface Abilities {
  readonly colour: boolean;
  readonly unicode: boolean;
}

/** The second column of a wide character. */
const COVERED = "";

/**
 * A picture of the screen in cells. Whatever is put on it is made harmless here, so that nothing
 * else has to think of it: there is no other way to the terminal.
 */
export class Canvas {
  readonly #cells: string[];
  readonly #styles: Uint8Array;

  constructor(readonly width: number, readonly height: number, readonly abilities: Abilities) {
    this.#cells = new Array(width * height).fill(" ");
    this.#styles = new Uint8Array(width * height);
  }

  /** Puts a text on a line, `width` columns of it at most; returns the column behind it. */
  put(x: number, y: number, text: string, style: Style = Style.Plain, width = this.width): number {
    const end = Math.min(x + width, this.width);
    if (y < 0 || y >= this.height || x >= end) return x;
    const { unicode } = this.abilities;
    const glyphs = glyphsOf(text, unicode);
    const needed = glyphs.reduce((sum, glyph) => sum + glyph.width, 0);
    const isCut = needed > end - x;
    const textEnd = isCut ? end - 1 : end;
    let column = x;
    for (const glyph of glyphs) {
      if (column + glyph.width > textEnd) break;
      this.#set(column, y, glyph.text, style);
      if (glyph.width === 2) this.#set(column + 1, y, COVERED, style);
      column += glyph.width;
    }
    if (isCut) this.#set(column++, y, unicode ? "…" : "~", style);
    return column;
  }

  /** Fills a part of a line. */
  fill(x: number, y: number, width: number, style: Style, text = " "): void {
    for (let column = x; column < Math.min(x + width, this.width); column++) {
      this.#set(column, y, text, style);
    }
  }

  #set(x: number, y: number, text: string, style: Style): void {
    const at = y * this.width + x;
    // Half of a wide character is none.
    if (this.#cells[at] === COVERED && text !== COVERED && x > 0) this.#cells[at - 1] = " ";
    if (text !== COVERED && x + 1 < this.width && this.#cells[at + 1] === COVERED) {
      this.#cells[at + 1] = " ";
    }
    this.#cells[at] = text;
    this.#styles[at] = style;
  }

  /** What a terminal needs to show this where it shows `before`; `null`: anything. */
  differenceFrom(before: Canvas | null): string {
    const isSame = before?.width === this.width && before.height === this.height;
    const old = isSame ? before : null;
    const parts: string[] = old === null ? ["\x1b[m\x1b[2J"] : [];
    for (let y = 0; y < this.height; y++) {
      const columns = this.#changed(y, old);
      if (columns !== null) parts.push(this.#line(y, columns));
    }
    return parts.join("");
  }

  /** The first and the last column that differ; `null`: none does. */
  #changed(y: number, old: Canvas | null): readonly [number, number] | null {
    const whole = [0, this.width - 1] as const;
    if (old === null) return whole;
    let [first, last] = [-1, -1];
    for (let x = 0; x < this.width; x++) {
      const at = y * this.width + x;
      if (this.#cells[at] !== old.#cells[at] || this.#styles[at] !== old.#styles[at]) {
        if (first < 0) first = x;
        last = x;
      }
    }
    if (first < 0) return null;
    // Terminals differ on widths: a line with other than ASCII is drawn whole.
    return this.#isAscii(y) && old.#isAscii(y) ? [first, last] : whole;
  }

  #isAscii(y: number): boolean {
    for (let at = y * this.width; at < (y + 1) * this.width; at++) {
      if (!isAscii(this.#cells[at])) return false;
    }
    return true;
  }

  #line(y: number, [first, last]: readonly [number, number]): string {
    let text = `\x1b[${y + 1};${first + 1}H`;
    let style = -1;
    for (let x = first; x <= last; x++) {
      const at = y * this.width + x;
      const cell = this.#cells[at];
      if (cell === COVERED) continue;
      if (this.abilities.colour && this.#styles[at] !== style) {
        style = this.#styles[at];
        text += `\x1b[${style === 0 ? "" : `;${SGR[style]}`}m`;
      }
      if (isAscii(cell)) text += cell;
      else {
        // Blank first, and the next column named: whatever the terminal takes its width for.
        const isWide = x + 1 < this.width && this.#cells[at + 1] === COVERED;
        const here = `\x1b[${y + 1};${x + 1}H`;
        const next = x + (isWide ? 2 : 1);
        const onward = next < this.width ? `\x1b[${y + 1};${next + 1}H` : "";
        text += (isWide ? `  ${here}` : "") + cell + onward;
      }
    }
    return this.abilities.colour ? `${text}\x1b[m` : text;
  }

  /** Its lines as text, for tests. */
  lines(): string[] {
    return Array.from(
      { length: this.height },
      (_, y) => this.#cells.slice(y * this.width, (y + 1) * this.width).join("").trimEnd(),
    );
  }
}

function isAscii(cell: string): boolean {
  return cell.length === 1 && cell <= "~";
}
