/** Bytes of a terminal as keys. */

/** A key, or a character that was typed. */
export interface Key {
  /** `up`, `enter`, `ctrl+c`, …, or the character itself. */
  readonly name: string;
  /** A part of a pasted text: it is no command. */
  readonly isPasted: boolean;
}

const SEQUENCES: Readonly<Record<string, string>> = {
  "[A": "up",
  "[B": "down",
  "[C": "right",
  "[D": "left",
  "OA": "up",
  "OB": "down",
  "OC": "right",
  "OD": "left",
  "[H": "home",
  "[F": "end",
  "OH": "home",
  "OF": "end",
  "[1~": "home",
  "[4~": "end",
  "[5~": "pageup",
  "[6~": "pagedown",
  "[Z": "shift+tab",
  "[200~": "paste",
  "[201~": "pasted",
};

const CONTROLS: Readonly<Record<string, string>> = {
  "\r": "enter",
  "\n": "enter",
  "\t": "tab",
  "\x08": "backspace",
  "\x7f": "backspace",
};

/** A whole sequence behind ESC: CSI or SS3 (ECMA-48). */
const SEQUENCE = /^(?:\[[0-?]*[ -/]*[@-~]|O[ -~])/;
/** The beginning of one; the rest may come with the next bytes. */
const BEGUN = /^(?:\[[0-?]*[ -/]*|O)?$/;
/** Longest sequence that is waited for. */
const SEQUENCE_LENGTH_MAX = 32;

/** Reads keys out of bytes as they come, in pieces of any size. */
export class KeyReader {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #isPasting = false;

  /** ESC came and nothing behind it yet: a key of its own, or the beginning of another. */
  get isWaiting(): boolean {
    return this.#rest !== "";
  }

  read(bytes: Uint8Array): Key[] {
    let text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    this.#rest = "";
    const keys: Key[] = [];
    while (text !== "") {
      if (text[0] !== "\x1b") {
        const [one] = text;
        text = text.slice(one.length);
        keys.push(this.#key(CONTROLS[one] ?? controlName(one)));
        continue;
      }
      const behind = text.slice(1);
      const [sequence] = SEQUENCE.exec(behind) ?? [];
      if (sequence === undefined) {
        if (BEGUN.test(behind) && behind.length < SEQUENCE_LENGTH_MAX) {
          this.#rest = text;
          return keys;
        }
        text = behind;
        keys.push(this.#key("escape"));
        continue;
      }
      text = behind.slice(sequence.length);
      const name = SEQUENCES[sequence];
      if (name === "paste" || name === "pasted") this.#isPasting = name === "paste";
      else if (name !== undefined) keys.push(this.#key(name));
    }
    return keys;
  }

  /** Nothing more came: what waits was a key. */
  flush(): Key[] {
    const isEscape = this.#rest !== "";
    this.#rest = "";
    return isEscape ? [this.#key("escape")] : [];
  }

  #key(name: string): Key {
    return { name, isPasted: this.#isPasting };
  }
}

function controlName(one: string): string {
  const code = one.charCodeAt(0);
  return code < 0x20 ? `ctrl+${String.fromCharCode(code + 0x60)}` : one;
}

/** Says whether a key is a character that can stand in a text. */
export function isCharacter({ name }: Key): boolean {
  return [...name].length === 1;
}
