import { messageOf, SvcError } from "../errors.ts";
import { type DownloadLimits, fetchJson, type HttpGet } from "../http/mod.ts";
import { VERSION } from "../version.ts";
import { Release } from "./release.ts";
import { compareVersions } from "./versions.ts";

/** A person waits for it, within the time of a request. */
const LIMITS: DownloadLimits = {
  headTimeoutMs: 8_000,
  idleTimeoutMs: 5_000,
  totalTimeoutMs: 15_000,
  bytesMax: 1024 * 1024,
};
/** What came of asking. */
export interface UpdateCheck {
  readonly current: string;
  /** `null`: nobody was asked. */
  readonly latest: string | null;
  readonly newer: boolean;
  /** Where people read of it. */
  readonly url: string | null;
}

/**
 * Fetches what the release service says of the latest release.
 *
 * @throws {SvcError} `unavailable`, where it does not answer or says no version.
 */
export async function fetchRelease(url: URL, get: HttpGet): Promise<Release> {
  const signal = AbortSignal.timeout(LIMITS.totalTimeoutMs);
  let json: unknown;
  try {
    json = await fetchJson(get, url, LIMITS, signal);
  } catch (error) {
    throw new SvcError("unavailable", `update.url: ${messageOf(error)}`, { cause: error });
  }
  const parsed = Release.safeParse(json);
  const version = parsed.success ? parsed.data.version.replace(/^v/, "") : "";
  if (!parsed.success || compareVersions(version, version) === null) {
    throw new SvcError("unavailable", `update.url: ${url.host} names no version such as 1.2.3`);
  }
  return { ...parsed.data, version };
}

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
  const release = await fetchRelease(new URL(url), get);
  const page = release.url ?? "";
  return {
    current,
    latest: release.version,
    newer: isNewer(release, current),
    // Shown as a link, so nothing but a web address will do.
    url: /^https?:\/\//.test(page) && URL.canParse(page) ? page : null,
  };
}

/** Says whether a release is newer than a version. */
export function isNewer({ version }: Pick<Release, "version">, current: string = VERSION): boolean {
  const order = compareVersions(version, current);
  return order !== null && order > 0;
}
