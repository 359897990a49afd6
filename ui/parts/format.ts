/** Numbers, times and texts as people of the page's language write them. */
import { nodeClock } from "../data/clock.ts";
import { language, t } from "../text/mod.ts";

const made = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>();

/** The page's language as it is written where the reader lives. */
function locale(): string {
  return navigator.languages.find((one) => one.split("-")[0] === language.value) ?? language.value;
}

/** Formatters cost more to make than to use. */
function cached<T extends Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>(
  key: string,
  make: (of: string) => T,
): T {
  const full = `${language.value} ${key}`;
  let one = made.get(full);
  if (one === undefined) made.set(full, one = make(locale()));
  return one as T;
}

export function number(value: number, digits = 0, least = 0): string {
  const options = { maximumFractionDigits: digits, minimumFractionDigits: least };
  return cached(`n${digits} ${least}`, (l) => new Intl.NumberFormat(l, options)).format(value);
}

export function compact(value: number): string {
  const options = { notation: "compact", maximumFractionDigits: 1 } as const;
  return value < 100_000
    ? number(value)
    : cached("c", (l) => new Intl.NumberFormat(l, options)).format(value);
}

export function percent(part: number, whole: number, digits = 1): string {
  const options = { style: "percent", maximumFractionDigits: digits } as const;
  return cached(`p${digits}`, (l) => new Intl.NumberFormat(l, options))
    .format(whole === 0 ? 0 : part / whole);
}

/** Milliseconds as a reader takes them in: no more digits than tell something. */
export function milliseconds(value: number): string {
  return `${number(value, value < 1 ? 2 : value < 10 ? 1 : 0)} ms`;
}

const TIME = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { day: "numeric", month: "short" } as const;

function dated(key: string, options: Intl.DateTimeFormatOptions, date: Date): string {
  return cached(key, (l) => new Intl.DateTimeFormat(l, { hourCycle: "h23", ...options })).format(
    date,
  );
}

/** What `Intl` would write in each of the languages, without the time that it takes to begin. */
export function clock(date: Date): string {
  return `${hourAndMinute(date)}:${two(date.getSeconds())}`;
}

function hourAndMinute(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

function isSameDay(a: Date, b: Date): boolean {
  return a.toDateString() === b.toDateString();
}

/** A moment to the minute; with its day where that is not today. */
export function moment(date: Date, now = nodeClock.now()): string {
  return isSameDay(date, now) ? hourAndMinute(date) : dated("d", { ...DAY, ...TIME }, date);
}

/** A moment under a chart: its day, or its time of day. */
export function tick(date: Date, isLong: boolean): string {
  return isLong ? dated("td", DAY, date) : hourAndMinute(date);
}

export function fullTime(date: Date): string {
  return dated("f", { dateStyle: "medium", timeStyle: "medium" }, date);
}

export function day(date: Date): string {
  return dated("day", { weekday: "short", ...DAY }, date);
}

/** A day of the week in short, from Monday (0). */
export function weekday(index: number, width: "short" | "long" = "short"): string {
  return dated(
    `w${width}`,
    { weekday: width, timeZone: "UTC" },
    new Date(Date.UTC(2024, 0, 1 + index)),
  );
}

const STEPS = [[60, "minute", 1], [3_600, "hour", 60], [86_400, "day", 3_600]] as const;

/** How long ago, up to a day; a date from there on. */
export function ago(date: Date, nowMs = nodeClock.nowMs): string {
  const seconds = Math.round((nowMs - date.getTime()) / 1_000);
  if (seconds < 45) return t.common.now;
  if (seconds >= 86_400) return moment(date, new Date(nowMs));
  const [, unit] = STEPS.find(([below]) => seconds < below * 60) ?? STEPS[1];
  const size = unit === "minute" ? 60 : 3_600;
  const options = { numeric: "always", style: "short" } as const;
  return cached("r", (l) => new Intl.RelativeTimeFormat(l, options))
    .format(-Math.max(1, Math.round(seconds / size)), unit);
}

/** What is left of a time, as a clock that runs down. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (h >= 24) return t.common.days(Math.round(h / 24));
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Words of the page's own within a sentence. */
export function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** Characters that would not show, or would show others elsewhere, as what they are. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u200b\ufeff]/gu,
    (found) => `\\u{${found.codePointAt(0)!.toString(16).toUpperCase()}}`,
  );
}

/** What an upstream is called by people: its name or address without the scheme. */
export function upstreamName(address: string): string {
  return address.replace(/^\w+:\/\//, "").replace(/\/dns-query$/, "").replace(/^.*#/, "");
}
