import { type Canvas, Style } from "./canvas.ts";
import { isCharacter, type Key } from "./keys.ts";
import { tailOf } from "./text.ts";
import { type Area, Cursor, type Dialog, type Ui } from "./ui.ts";

/** Longest text that is typed: that of the API for a name. */
const INPUT_LENGTH_MAX = 255;
/** Narrower screens have no room for frames. */
export const FRAMES_WIDTH_MIN = 60;

/** Draws a box for `rows` lines in the middle; returns what is inside. */
function box(canvas: Canvas, area: Area, title: string, rows: number): Area {
  const hasFrame = canvas.width >= FRAMES_WIDTH_MIN;
  const edge = hasFrame ? 1 : 0;
  const width = hasFrame ? Math.min(area.width - 4, 76) : area.width;
  const height = Math.min(rows + 1 + 2 * edge, area.height);
  const x = area.x + Math.floor((area.width - width) / 2);
  const y = area.y + Math.floor((area.height - height) / 2);
  for (let row = 0; row < height; row++) canvas.fill(x, y + row, width, Style.Plain);
  if (hasFrame) frame(canvas, { x, y, width, height });
  canvas.put(x + 2 * edge, y + edge, title, Style.Bold, width - 4 * edge);
  return {
    x: x + 2 * edge,
    y: y + edge + 1,
    width: width - 4 * edge,
    height: height - 1 - 2 * edge,
  };
}

function frame(canvas: Canvas, { x, y, width, height }: Area): void {
  const [h, v, ...corners] = canvas.abilities.unicode ? "─│┌┐└┘" : "-|++++";
  for (const row of [y, y + height - 1]) canvas.fill(x, row, width, Style.Dim, h);
  for (let row = y + 1; row < y + height - 1; row++) {
    for (const column of [x, x + width - 1]) canvas.fill(column, row, 1, Style.Dim, v);
  }
  const ends = [[x, y], [x + width - 1, y], [x, y + height - 1], [x + width - 1, y + height - 1]];
  for (const [i, [column, row]] of ends.entries()) {
    canvas.fill(column, row, 1, Style.Dim, corners[i]);
  }
}

/** A row of a list, marked where it is the chosen one. */
export function putRow(canvas: Canvas, area: Area, y: number, text: string, isChosen: boolean) {
  const style = isChosen ? Style.Selected : Style.Plain;
  if (isChosen) canvas.fill(area.x, y, area.width, style);
  canvas.put(area.x, y, `${isChosen ? ">" : " "} ${text}`, style, area.width);
}

export interface Choice {
  readonly label: string;
  readonly run: (ui: Ui) => void;
}

/** One of several things to do. */
export class Menu implements Dialog {
  readonly #cursor = new Cursor();
  #height = 1;

  constructor(readonly title: string, readonly choices: readonly Choice[]) {}

  draw(canvas: Canvas, area: Area): void {
    const inside = box(canvas, area, this.title, this.choices.length);
    this.#height = Math.max(1, inside.height);
    const top = this.#cursor.top(this.choices.length, this.#height);
    for (const [i, { label }] of this.choices.slice(top, top + this.#height).entries()) {
      putRow(canvas, inside, inside.y + i, label, top + i === this.#cursor.index);
    }
  }

  onKey(key: Key, ui: Ui): "stays" | "closes" {
    if (key.name === "escape" || key.name === "q") return "closes";
    if (key.name !== "enter") {
      this.#cursor.move(key, this.choices.length, this.#height);
      return "stays";
    }
    const choice = this.choices.at(this.#cursor.index);
    ui.close(); // What is chosen may open another.
    choice?.run(ui);
    return "stays";
  }
}

/** A line to type. */
export class Input implements Dialog {
  #text: string;

  constructor(
    readonly title: string,
    text: string,
    /** Returns what is wrong with it, or nothing. */
    readonly onDone: (text: string, ui: Ui) => string | null,
    readonly hint = "Enter: done   Esc: leave",
  ) {
    this.#text = text;
  }

  #problem = "";

  draw(canvas: Canvas, area: Area): void {
    const inside = box(canvas, area, this.title, 2);
    // The end is what is being typed: before it "> ", behind it "_", and nothing is cut.
    const shown = tailOf(this.#text, inside.width - 3, canvas.abilities.unicode);
    canvas.put(inside.x, inside.y, `> ${shown}_`, Style.Plain, inside.width);
    const below = this.#problem === "" ? this.hint : this.#problem;
    const style = this.#problem === "" ? Style.Dim : Style.Red;
    canvas.put(inside.x, inside.y + 1, below, style, inside.width);
  }

  onKey(key: Key, ui: Ui): "stays" | "closes" {
    const { name } = key;
    if (name === "escape") return "closes";
    if (name === "enter" && !key.isPasted) {
      this.#problem = this.onDone(this.#text, ui) ?? "";
      return this.#problem === "" ? "closes" : "stays";
    }
    if (name === "backspace") this.#text = [...this.#text].slice(0, -1).join("");
    else if (name === "ctrl+u") this.#text = "";
    else if (isCharacter(key) && this.#text.length < INPUT_LENGTH_MAX) this.#text += name;
    return "stays";
  }
}

/** Lines to read. */
export class Reader implements Dialog {
  readonly #cursor = new Cursor();
  #lines: readonly string[];
  #height = 1;

  constructor(readonly title: string, lines: readonly string[]) {
    this.#lines = lines;
  }

  set lines(lines: readonly string[]) {
    this.#lines = lines;
  }

  draw(canvas: Canvas, area: Area): void {
    const inside = box(canvas, area, this.title, this.#lines.length);
    this.#height = Math.max(1, inside.height);
    const last = Math.max(0, this.#lines.length - this.#height);
    this.#cursor.index = Math.min(this.#cursor.index, last);
    for (const [i, line] of this.#lines.slice(this.#cursor.index).entries()) {
      if (i < this.#height) canvas.put(inside.x, inside.y + i, line, Style.Plain, inside.width);
    }
  }

  onKey(key: Key): "stays" | "closes" {
    if (["escape", "enter", "q", "?"].includes(key.name)) return "closes";
    this.#cursor.move(key, this.#lines.length, this.#height);
    return "stays";
  }
}

export interface Field {
  readonly label: string;
  readonly options: readonly string[];
  index: number;
}

/** Several choices made at once. */
export class Form implements Dialog {
  #row = 0;

  constructor(
    readonly title: string,
    readonly fields: readonly Field[],
    readonly onDone: (indexes: readonly number[], ui: Ui) => void,
  ) {}

  draw(canvas: Canvas, area: Area): void {
    const inside = box(canvas, area, this.title, this.fields.length + 1);
    for (const [i, { label, options, index }] of this.fields.entries()) {
      const text = `${label.padEnd(9)} < ${options[index]} >`;
      putRow(canvas, inside, inside.y + i, text, i === this.#row);
    }
    const hint = "Left, Right: change   Enter: do it   Esc: leave";
    canvas.put(inside.x, inside.y + this.fields.length, hint, Style.Dim, inside.width);
  }

  onKey({ name }: Key, ui: Ui): "stays" | "closes" {
    const field = this.fields[this.#row];
    const turn = (step: number) => {
      field.index = (field.index + step + field.options.length) % field.options.length;
    };
    if (name === "escape" || name === "q") return "closes";
    if (name === "enter") {
      this.onDone(this.fields.map(({ index }) => index), ui);
      return "closes";
    }
    if (name === "down" || name === "j" || name === "tab") {
      this.#row = (this.#row + 1) % this.fields.length;
    } else if (name === "up" || name === "k" || name === "shift+tab") {
      this.#row = (this.#row + this.fields.length - 1) % this.fields.length;
    } else if (name === "right" || name === "l" || name === " ") turn(1);
    else if (name === "left" || name === "h") turn(-1);
    return "stays";
  }
}
