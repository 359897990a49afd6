/** A step into the file: the key of a table or the index of an array. */
export type KeyPath = readonly (string | number)[];

/**
 * An `error` stops the service; a `check` is left to `svc check-config`: the service can go on. A
 * `note` is said and no more: it may well be meant.
 */
export type Severity = "error" | "check" | "note";

/** One thing that is wrong with a configuration file, and how to mend it. */
export interface Problem {
  readonly file: string;
  /** Counts from 1; 0 is the file as a whole. */
  readonly line: number;
  /** As written, such as `upstream[1].address`; empty where no key is meant. */
  readonly key: string;
  readonly message: string;
  readonly severity: Severity;
}

/** `file:line: key: message`, one line. */
export function formatProblem({ file, line, key, message }: Problem): string {
  const place = line === 0 ? file : `${file}:${line}`;
  return [place, key, message].filter((part) => part !== "").join(": ");
}

/** `upstream[1].address`; a key that TOML would quote is quoted. */
export function formatKeyPath(path: KeyPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else {
      const key = /^[A-Za-z0-9_-]{1,64}$/.test(step) ? step : quote(step);
      text += text === "" ? key : `.${key}`;
    }
  }
  return text;
}

/** Longest piece of the file that a message repeats. */
const QUOTED_LENGTH_MAX = 80;

/** A value of the file within a message: on one line, without control characters, not too long. */
export function quote(text: string): string {
  const cut = text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}…` : text;
  // JSON leaves the controls above ASCII alone, and a terminal acts on some of them.
  return JSON.stringify(cut).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
