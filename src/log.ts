/**
 * Structured logs to standard error: readable on a terminal, one JSON line an event otherwise.
 * A line is a constant text with fields; fields never hold secrets. Every isolate writes its own
 * lines whole. @module
 */

export type LogLevel = "info" | "warn" | "error";
/** What a line says beside its text; the names of its own parts are taken. */
export type LogFields = Readonly<Record<string, unknown>> & {
  readonly time?: never;
  readonly level?: never;
  readonly message?: never;
};

/** A line as it is handed on: its fields are plain values, those with parts as JSON. */
export interface LogLine {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, string | number | boolean>>;
}

const COLOUR: Record<LogLevel, string> = {
  info: "\x1b[32m",
  warn: "\x1b[33m",
  error: "\x1b[31m",
};
const RESET = "\x1b[0m";
/** Longest text of one field; a log line is for people, not for packets. */
const FIELD_LENGTH_MAX = 2_000;

const encoder = new TextEncoder();
let terminal: boolean | undefined;
let listener: ((line: LogLine) => void) | null = null;

/** What a field looks like in either form: an error is its message and, if unexpected, its stack. */
function plain(value: unknown): unknown {
  if (value instanceof Error) {
    const expected = value.name === "SvcError";
    const cause = value.cause instanceof Error ? ` (${value.cause.message})` : "";
    return (expected ? value.message : value.stack ?? value.message) + cause;
  }
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string" && value.length > FIELD_LENGTH_MAX) {
    return value.slice(0, FIELD_LENGTH_MAX) + "…";
  }
  return value;
}

function bigintText(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** As JSON, whatever it is: a log line must never be what fails. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value, bigintText) ?? JSON.stringify(String(value));
  } catch {
    return JSON.stringify(String(value)); // It refers to itself.
  }
}

/** Keeps control characters of foreign text from moving the cursor or forging a line. */
function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function readable(level: LogLevel, message: string, fields: LogFields): string {
  const time = new Date().toTimeString().slice(0, 8);
  const rest = Object.entries(fields).map(([key, raw]) => {
    const value = plain(raw);
    if (raw instanceof Error && typeof value === "string") {
      return value.split("\n").map((line) => `\n  ${escapeControls(line)}`).join("");
    }
    const text = typeof value === "string" ? escapeControls(value) : toJson(value);
    return ` ${key}=${/^[\w.:/#@%+-]+$/.test(text) ? text : JSON.stringify(text)}`;
  });
  return `${time} ${COLOUR[level]}${level.padEnd(5)}${RESET} ${message}${rest.join("")}\n`;
}

function oneLine(level: LogLevel, message: string, fields: LogFields): string {
  const entry: Record<string, unknown> = { time: new Date().toISOString(), level, message };
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) entry[key] = plain(value);
  }
  // Field by field: one that can't be shown takes no other with it.
  const parts = Object.entries(entry).map(([key, value]) =>
    `${JSON.stringify(key)}:${toJson(value)}`
  );
  return `{${parts.join(",")}}\n`;
}

function handOn(level: LogLevel, message: string, fields: LogFields): void {
  const plainFields: Record<string, string | number | boolean> = {};
  for (const [key, raw] of Object.entries(fields)) {
    const value = plain(raw);
    if (value === undefined) continue;
    const isPlain = ["string", "number", "boolean"].includes(typeof value);
    plainFields[key] = isPlain ? value as string | number | boolean : toJson(value);
  }
  listener?.({ timeMs: Date.now(), level, message, fields: plainFields });
}

function write(level: LogLevel, message: string, fields: LogFields = {}): void {
  terminal ??= Deno.stderr.isTerminal();
  const bytes = encoder.encode((terminal ? readable : oneLine)(level, message, fields));
  try {
    for (let sent = 0; sent < bytes.length;) sent += Deno.stderr.writeSync(bytes.subarray(sent));
  } catch {
    // Standard error is closed or full: there is no other place to say so, and DNS must go on.
  }
  if (listener !== null) handOn(level, message, fields);
}

/** Has this isolate's lines handed to `to` as well, which must not throw; `null` ends that. */
export function handLogLines(to: ((line: LogLine) => void) | null): void {
  listener = to;
}

/** Says whether somebody is handed this isolate's lines. */
export function areLogLinesHanded(): boolean {
  return listener !== null;
}

/** Hands on a line that another isolate has written, like one of this isolate's own. */
export function relayLogLine(line: LogLine): void {
  listener?.(line);
}

/** Writes a log line; `fields` values are strings, numbers, plain data or errors. */
export const log = {
  info: (message: string, fields?: LogFields): void => write("info", message, fields),
  warn: (message: string, fields?: LogFields): void => write("warn", message, fields),
  error: (message: string, fields?: LogFields): void => write("error", message, fields),
};
