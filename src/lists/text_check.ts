import { SvcError } from "../errors.ts";

/** How much of the beginning tells text from everything else. */
const HEAD_BYTES = 64 * 1024;
/** Part of the head that may be no text: old lists have comments in Latin-1. */
const ODD_RATIO_MAX = 0.01;
/** Most blanks before the first tag of a page. */
const TAG_SEARCH_LENGTH = 4096;

/** A tag, a comment or a declaration: no list begins with one. */
const PAGE_START = /^[\s\uFEFF]*<(?:!--|!doctype|\?xml|[a-z][a-z0-9]*[\s/>])/i;

const [TAB, LF, FF, CR, SPACE, DELETE] = [0x09, 0x0a, 0x0c, 0x0d, 0x20, 0x7f];

/**
 * Tells text from what servers send in its place: a page, a program. Takes it piece by piece and
 * keeps no more than its head.
 */
export class TextCheck {
  readonly #head = new Uint8Array(HEAD_BYTES);
  #headBytes = 0;
  #headChecked = false;
  #sizeBytes = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** @throws {SvcError} As soon as it is clear that this is no text. */
  add(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#sizeBytes += chunk.length;
    if (this.#headBytes < HEAD_BYTES) {
      const part = chunk.subarray(0, HEAD_BYTES - this.#headBytes);
      this.#head.set(part, this.#headBytes);
      this.#headBytes += part.length;
      if (this.#headBytes === HEAD_BYTES) this.#checkHead();
    }
  }

  /** @throws {SvcError} If what was added is no text. */
  finish(): void {
    if (!this.#headChecked) this.#checkHead();
  }

  #checkHead(): void {
    this.#headChecked = true;
    const head = this.#head.subarray(0, this.#headBytes);
    // `stream` leaves a character cut at the end of the head alone.
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(head, { stream: true });
    if (PAGE_START.test(text.slice(0, TAG_SEARCH_LENGTH))) {
      throw new SvcError("invalid", "it is an HTML page, not a list");
    }
    const [first, second] = [head.at(0), head.at(1)];
    if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
      throw new SvcError("invalid", "it is in UTF-16: save it as UTF-8"); // By its byte order mark.
    }
    if (head.includes(0)) throw new SvcError("invalid", "it is binary, not text");
    let odd = 0;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      const control = code < SPACE && code !== TAB && code !== LF && code !== CR && code !== FF;
      if (control || code === DELETE || code === 0xfffd) odd++;
    }
    if (odd > head.length * ODD_RATIO_MAX) {
      throw new SvcError("invalid", "it is binary, not text");
    }
  }
}
