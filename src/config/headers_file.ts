/** Headers of one file, and the length of a value: what servers take. */
const HEADERS_MAX = 32;
const VALUE_LENGTH_MAX = 8_192;
/** Those that belong to the connection and the body. */
const OWN_HEADERS: readonly string[] = [
  ...["connection", "content-encoding", "content-length", "content-type", "host", "te", "trailer"],
  ...["transfer-encoding", "upgrade"],
];

/** Headers by their names in lower case, or why there are none; that tells no value. */
export type ParsedHeaders =
  | { readonly kind: "headers"; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: "problem"; readonly line: number; readonly message: string };

/** Reads a file of request headers: `Name: value`, one a line; `#` begins a comment line. */
export function parseHeaders(text: string): ParsedHeaders {
  const headers: Record<string, string> = {};
  for (const [i, raw] of text.replace(/^\uFEFF/, "").split("\n").entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const problem = (message: string) => ({ kind: "problem", line: i + 1, message }) as const;
    // The name ends at the first colon; without one, what stands there may be a secret.
    const found = /^([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*)$/.exec(line);
    if (found === null) return problem('is no header: write one such as "Authorization: Bearer …"');
    const [name, value] = [found[1].toLowerCase(), found[2]];
    if (OWN_HEADERS.includes(name)) return problem(`${name} is set by the service: take it out`);
    if (Object.hasOwn(headers, name)) return problem(`${name} is there twice: keep one`);
    if (!/^[\x20-\x7e\t]+$/.test(value)) {
      return problem(`${name} has a value that is not ASCII text`);
    }
    if (value.length > VALUE_LENGTH_MAX) {
      return problem(`${name} is longer than ${VALUE_LENGTH_MAX} characters`);
    }
    headers[name] = value;
    if (Object.keys(headers).length > HEADERS_MAX) {
      return problem(`is one more than the ${HEADERS_MAX} headers that are sent`);
    }
  }
  return { kind: "headers", headers };
}
