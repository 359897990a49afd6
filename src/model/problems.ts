import type { z } from "zod";
import { shownText } from "./text.ts";

/** One thing that is wrong with what was sent, in a sentence of ours. */
export interface SpecProblem {
  /** From the value: `lists[2].list`; empty for the whole of it. */
  readonly path: string;
  readonly message: string;
}

/** At least one. */
export type SpecProblems = readonly [SpecProblem, ...SpecProblem[]];

/** Most problems that are told of one value. */
export const PROBLEMS_MAX = 100;

export type Parsed<S> =
  | { readonly ok: true; readonly value: S }
  | { readonly ok: false; readonly problems: SpecProblems };

/** Holds a value against a schema; finds all that is wrong with it. */
export function parseWith<S extends z.ZodType>(schema: S, json: unknown): Parsed<z.output<S>> {
  const result = schema.safeParse(json, { error: sentenceOf });
  if (result.success) return { ok: true, value: result.data };
  return { ok: false, problems: problemsOf(result.error) };
}

/** The first problem with its place ahead, and how many more there are; `whole` names the value. */
export function describeProblems([first, ...more]: SpecProblems, whole: string): string {
  const text = `${first.path === "" ? whole : first.path}: ${first.message}`;
  return more.length === 0 ? text : `${text} (and ${more.length} more)`;
}

function problemsOf({ issues }: z.ZodError): SpecProblems {
  const found = new Map<string, SpecProblem>();
  const add = (kind: string, path: readonly PropertyKey[], message: string) => {
    // Of several bounds of one kind the last is the schema's own.
    if (found.size < PROBLEMS_MAX) {
      found.set(`${kind} ${formatPath(path)}`, { path: formatPath(path), message });
    }
  };
  for (const issue of issues) {
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys.slice(0, PROBLEMS_MAX)) {
        add(issue.code, [...issue.path, key], "there is no such field");
      }
    } else add(issue.code, issue.path, issue.message);
  }
  const [first, ...more] = found.values();
  return [first, ...more];
}

/** `lists[2].list`; what somebody made up is shown as far as it is harmless. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += (text === "" ? "" : ".") + shownText(String(part));
  }
  return text;
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

/** What is wrong, where the schema has no words of its own for it. */
function sentenceOf(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type": {
      if (issue.input === undefined) return "it is missing";
      const kind = KINDS[String(issue.expected)];
      return kind === undefined ? "it is of the wrong kind" : `it is not ${kind}`;
    }
    case "too_small":
      return tooSmall(String(issue.origin), Number(issue.minimum));
    case "too_big":
      return tooBig(String(issue.origin), Number(issue.maximum));
    case "invalid_format":
      return issue.format === "datetime"
        ? "it is no time such as 2026-01-02T03:04:05Z"
        : "it is not of the form that is asked for";
    case "invalid_value":
      return `it is none of ${(issue.values as readonly unknown[]).join(", ")}`;
    case "not_multiple_of":
      return `it is no multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return "there is no such field";
    case "invalid_key":
      return "it holds a name that may not be there";
    case "invalid_element":
      return "it holds an entry that may not be there";
    case "invalid_union":
      return "it is of none of the forms that are taken";
    default:
      return "it is not a value that is taken";
  }
}

function counted(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`;
  return `${count} ${noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
}

function tooSmall(origin: string, minimum: number): string {
  if (origin === "string") {
    return minimum === 1 ? "it is empty" : `it has fewer than ${counted(minimum, "character")}`;
  }
  if (origin === "array") {
    return minimum === 1
      ? "it is empty: give at least one"
      : `it has fewer than ${counted(minimum, "entry")}`;
  }
  return `it is less than ${minimum}`;
}

function tooBig(origin: string, maximum: number): string {
  if (origin === "string") return `it has more than ${counted(maximum, "character")}`;
  if (origin === "array") return `it has more than ${counted(maximum, "entry")}`;
  return `it is more than ${maximum}`;
}
