import { z } from "zod";
import type { UpdateCheck } from "../api/mod.ts";
import { SvcError } from "../errors.ts";
import { type DownloadLimits, fetchJson, type HttpGet } from "../http/mod.ts";
import { VERSION } from "../version.ts";

/** A person waits for it, within the time of a request. */
const LIMITS: DownloadLimits = {
  headTimeoutMs: 8_000,
  idleTimeoutMs: 5_000,
  totalTimeoutMs: 15_000,
  bytesMax: 1024 * 1024,
};
const VERSION_LENGTH_MAX = 64;

/** What a release service says of the latest release: its own form, or that of code hosts. */
const Release = z.union([
  z.object({ version: z.string().max(VERSION_LENGTH_MAX), url: z.string().optional() }),
  z.object({ tag_name: z.string().max(VERSION_LENGTH_MAX), html_url: z.string().optional() })
    .transform(({ tag_name, html_url }) => ({ version: tag_name, url: html_url })),
]);

/**
 * Asks the release service at `url` for the latest release; without one there is nothing to ask.
 *
 * @throws {SvcError} `unavailable`, where it does not answer or says no version.
 */
export async function checkUpdate(
  url: string | null,
  get: HttpGet,
  current: string = VERSION,
): Promise<UpdateCheck> {
  if (url === null) return { current, latest: null, newer: false, url: null };
  const asked = new URL(url);
  const signal = AbortSignal.timeout(LIMITS.totalTimeoutMs);
  let json: unknown;
  try {
    json = await fetchJson(get, asked, LIMITS, signal);
  } catch (error) {
    const { message } = error as Error;
    throw new SvcError("unavailable", `update.url: ${message}`, { cause: error });
  }
  const release = Release.safeParse(json);
  const latest = release.success ? release.data.version.replace(/^v/, "") : "";
  const order = compareVersions(latest, current);
  if (!release.success || order === null) {
    throw new SvcError("unavailable", `update.url: ${asked.host} names no version such as 1.2.3`);
  }
  const page = release.data.url ?? "";
  return {
    current,
    latest,
    newer: order > 0,
    // Shown as a link, so nothing but a web address will do.
    url: /^https?:\/\//.test(page) && URL.canParse(page) ? page : null,
  };
}

const SEMVER = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

/** Negative, 0 or positive, as `a` is older than `b`, or not; `null` for what is no version. */
export function compareVersions(a: string, b: string): number | null {
  const [left, right] = [SEMVER.exec(a), SEMVER.exec(b)];
  if (left === null || right === null) return null;
  for (let i = 1; i <= 3; i++) {
    if (left[i] !== right[i]) return Number(left[i]) - Number(right[i]);
  }
  return comparePrereleases(left[4], right[4]);
}

/** Semantic Versioning 2.0.0 §11: field by field; numbers first, and a release after all of its. */
function comparePrereleases(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [left, right] = [a.split("."), b.split(".")];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const [one, other] = [left[i], right[i]];
    if (one === other) continue;
    const [isNumber, isOtherNumber] = [/^\d+$/.test(one), /^\d+$/.test(other)];
    if (isNumber && isOtherNumber) return Number(one) - Number(other);
    if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return left.length - right.length;
}
