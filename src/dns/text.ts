/** The words of presentation form: quoted strings, escapes, tokens (RFC 1035 §5.1). */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Bytes in quotes, as TXT and CAA show theirs; what is no printable ASCII becomes `\DDD`. */
export function formatCharString(bytes: Uint8Array, offset: number, length: number): string {
  let text = '"';
  for (let at = offset; at < offset + length; at++) {
    const byte = bytes[at];
    if (byte < 0x20 || byte >= 0x7f) text += `\\${byte.toString().padStart(3, "0")}`;
    else if (byte === QUOTE || byte === BACKSLASH) text += `\\${String.fromCharCode(byte)}`;
    else text += String.fromCharCode(byte);
  }
  return text + '"';
}

/**
 * Splits a record's text at blanks. Quotes keep blanks and are left out, as are parentheses and
 * comments; escapes stay for `unescape`. Returns `null` when a quote or an escape is not ended.
 */
export function tokenize(text: string): string[] | null {
  const tokens: string[] = [];
  let token: string | null = null;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\\") {
      if (++i === text.length) return null;
      token = (token ?? "") + c + text[i];
    } else if (c === '"') {
      quoted = !quoted;
      token ??= "";
    } else if (quoted || !/[\s();]/.test(c)) {
      token = (token ?? "") + c;
    } else {
      if (token !== null) tokens.push(token);
      token = null;
      while (c === ";" && i + 1 < text.length && text[i + 1] !== "\n") i++;
    }
  }
  if (token !== null) tokens.push(token);
  return quoted ? null : tokens;
}

/** Resolves `\DDD` and `\X`; `null` for a broken escape or a character that is no byte. */
export function unescape(text: string): Uint8Array<ArrayBuffer> | null {
  const bytes: number[] = [];
  for (let i = 0; i < text.length; i++) {
    let byte = text.charCodeAt(i);
    if (byte === BACKSLASH) {
      const next = text.slice(i + 1, i + 4);
      const decimal = /^\d{3}$/.test(next);
      if (!decimal && !/^\D/.test(next)) return null;
      byte = decimal ? Number(next) : text.charCodeAt(i + 1);
      i += decimal ? 3 : 1;
    }
    if (byte > 0xff) return null;
    bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
