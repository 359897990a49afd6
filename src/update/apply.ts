import { createHash } from "node:crypto";
import { dirname } from "node:path/posix";
import { messageOf, SvcError } from "../errors.ts";
import { download, type DownloadLimits, type HttpGet } from "../http/mod.ts";
import { extract, handOverSteps, type Host, REPLACED, runSteps } from "../install/mod.ts";
import { isNewer } from "./check.ts";
import { checkSignature, type Release, type ReleaseFile } from "./release.ts";

/** A file of some 43 MiB, over whatever line there is. */
const LIMITS: Omit<DownloadLimits, "bytesMax"> = {
  headTimeoutMs: 15_000,
  idleTimeoutMs: 30_000,
  pace: { bytesMin: 64 * 1024, timeMs: 60_000 },
  totalTimeoutMs: 3_600_000,
};

export interface ApplyOptions {
  readonly release: Release;
  /** Where it was read: its files are named from there. */
  readonly from: URL;
  readonly get: HttpGet;
  readonly host: Host;
  /** The file that is replaced; it lies in a folder of its own. */
  readonly program: string;
  readonly target: string;
  /** The version of the program that runs. */
  readonly current: string;
  readonly keys: readonly string[];
  readonly tell: (line: string) => void;
}

/**
 * Puts a release in the place of the program, and has running services go on with it. Until the file
 * is whole, is what was signed and has started once, nothing is changed; the change is one rename.
 *
 * @throws {SvcError} With what keeps it from being applied; the program is as it was then.
 */
export async function applyRelease(options: ApplyOptions): Promise<void> {
  const { release, host, program, target, current, keys, tell } = options;
  const { version, files } = release;
  // Whoever holds an old release, signed as it is, can't bring its faults back by it.
  if (!isNewer(release, current)) {
    throw new SvcError("conflict", `update.url: ${version} is no newer than ${current}`);
  }
  const file = files.find((one) => one.target === target);
  if (file === undefined) {
    const place = "update.url: the release service";
    throw new SvcError("not_found", `${place} names no file of ${version} for ${target}`);
  }
  await checkSignature(version, file, keys);
  const folder = dirname(program);
  const unfinished = `${program}.new`;
  try {
    tell(`downloading svc ${version}, ${Math.ceil(file.size / 1024 / 1024)} MiB`);
    await fetchFile(options, file, unfinished);
    const started = await extract(host, unfinished, folder);
    if (!started.startsWith(`svc ${version} `)) {
      throw new SvcError("invalid", `the file says it is ${started.trim()}, not svc ${version}`);
    }
    await host.write(`${folder}/${REPLACED}`, "", 0o600);
    await host.rename(unfinished, program);
  } catch (error) {
    await host.remove(unfinished).catch(() => {}); // The first error is the one that counts.
    if (error instanceof SvcError) throw error;
    throw new SvcError("unavailable", `${folder}: ${messageOf(error)}: nothing was changed`, {
      cause: error,
    });
  }
  tell(`${program} is svc ${version}`);
  await finishApplying(host, folder, tell);
}

/** Has services that still run a former program go on with the one that is in its place. */
export async function finishApplying(
  host: Host,
  folder: string,
  tell: (line: string) => void,
): Promise<void> {
  await runSteps(handOverSteps(host, folder), false, tell);
}

/** Downloads a file as its release has it, byte for byte. */
async function fetchFile(
  { from, get, host }: ApplyOptions,
  { url, size, sha256 }: ReleaseFile,
  path: string,
): Promise<void> {
  const place = URL.parse(url, from);
  if (place === null || (place.protocol !== from.protocol && place.protocol !== "https:")) {
    throw new SvcError("invalid", "update.url: the release names a file at no https address");
  }
  const hash = createHash("sha256");
  let bytes = 0;
  await using sink = await host.create(path, 0o755);
  const onChunk = async (chunk: Uint8Array) => {
    hash.update(chunk);
    bytes += chunk.length;
    await sink.write(chunk);
  };
  const limits = { ...LIMITS, bytesMax: size };
  const { signal } = new AbortController(); // Time is bounded by the limits.
  try {
    await download(get, { url: place, validators: {}, signal, limits, onChunk });
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    throw new SvcError("unavailable", `${place.host}: ${error.message}: nothing was changed`);
  }
  if (bytes !== size || hash.digest("hex") !== sha256) {
    throw new SvcError(
      "invalid",
      `${place.host}: the file is not the one that was signed (${bytes} of ${size} bytes came): ` +
        "nothing was changed",
    );
  }
  await sink.finish();
}
