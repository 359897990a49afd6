import { parseConfig, type Problem } from "../config/mod.ts";

/** What the part of `svc.toml` is called in problems of it. */
const FILE = "svc.toml";
const DIRECTORY = "/etc/svc";

export type TomlValue = string | number | boolean | readonly string[];

/** A part of the file that is made line by line. What is not sure is there as a comment. */
export class Fragment {
  readonly #lines: string[] = [];

  constructor(from: string) {
    this.#lines.push(`# Taken from ${oneLine(from)}: put it into svc.toml, then svc check-config.`);
  }

  comment(...lines: readonly string[]): void {
    for (const line of lines) this.#lines.push(`# ${oneLine(line)}`.trimEnd());
  }

  /** A table, or, where its values are left out, nothing. */
  table(
    name: string,
    values: Readonly<Record<string, TomlValue | null>>,
    { isComment = false, note = null }: { isComment?: boolean; note?: string | null } = {},
  ): void {
    const rows = Object.entries(values).filter(([, value]) => value !== null);
    if (rows.length === 0) return;
    const mark = isComment ? "#" : "";
    this.#lines.push("");
    if (note !== null) this.comment(note);
    this.#lines.push(mark + name);
    for (const [key, value] of rows) this.#lines.push(`${mark}${key} = ${toml(value!)}`);
  }

  get text(): string {
    return `${this.#lines.join("\n")}\n`;
  }
}

/** What is wrong with a text as a part of the file; notes are nothing wrong. */
export function problemsOf(text: string): readonly Problem[] {
  return parseConfig(text, { file: FILE, directory: DIRECTORY }).problems
    .filter(({ severity }) => severity !== "note");
}

/** Why an upstream can't be asked here, for these names or, with none, for every name; or `null`. */
export function upstreamProblem(address: string, domains: readonly string[]): string | null {
  const names = domains.length === 0 ? "" : `domains = ${toml(domains)}\n`;
  const [problem] = problemsOf(`[[upstream]]\naddress = ${toml(address)}\n${names}`)
    .filter(({ severity }) => severity === "error");
  return problem === undefined ? null : problem.message;
}

function toml(value: TomlValue): string {
  if (typeof value === "string") return JSON.stringify(oneLine(value));
  if (typeof value === "object") return `[${value.map(toml).join(", ")}]`;
  return String(value);
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ");
}
