import { LINE_LENGTH_MAX, parseRule, type Rule } from "./parse_rule.ts";

const NEWLINE = 0x0a;
/** What is cut from the front of a text. */
const BOM = [0xef, 0xbb, 0xbf] as const;
/** Bytes that a line grows by at most: `@@|` and `^` around the name of a hosts line, or its end. */
const GROWTH_BYTES_MAX = 8;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/**
 * The text of a list whose names are let through: each rule that would block becomes an exception.
 * Exceptions and what is no rule stay as they are; a rule that answers something is left out.
 */
export function allowingText(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  let out = new Uint8Array(bytes.length + 64);
  let length = 0;
  const isMarked = BOM.every((byte, i) => bytes[i] === byte);
  for (let at = isMarked ? BOM.length : 0; at < bytes.length;) {
    const found = bytes.indexOf(NEWLINE, at);
    const end = found < 0 ? bytes.length : found;
    // Of a line that is too long so much is enough to count it. Text in shared memory can't be decoded
    // where it stands.
    const line = bytes.slice(at, Math.min(end, at + LINE_LENGTH_MAX + 1));
    const lines = line.length > LINE_LENGTH_MAX
      ? line
      : encoder.encode(allowingLine(decoder.decode(line)));
    if (length + lines.length + GROWTH_BYTES_MAX > out.length) {
      const larger = new Uint8Array(2 * out.length + lines.length);
      larger.set(out.subarray(0, length));
      out = larger;
    }
    out.set(lines, length);
    length += lines.length;
    out[length++] = NEWLINE;
    at = end + 1;
  }
  return out.subarray(0, length);
}

function allowingLine(line: string): string {
  const parsed = parseRule(line);
  if (parsed.kind === "skipped") return line;
  return parsed.rules.flatMap((rule) => allowing(rule) ?? []).join("\n");
}

/** A rule that lets through what the given one blocks; `null`: it does not block. */
function allowing({ kind, form, name, exception, badfilter, text }: Rule): string | null {
  if (exception || badfilter) return text;
  if (kind === "rewrite") return null;
  return form === "hosts" ? `@@|${name}^` : `@@${text}`;
}
