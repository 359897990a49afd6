import * as z from "zod";
import { SvcError } from "../errors.ts";

const VERSION_LENGTH_MAX = 64;
const URL_LENGTH_MAX = 2_048;
/** Largest file that a release may have; today's have 43 MiB. */
export const FILE_BYTES_MAX = 256 * 1024 * 1024;

const ReleaseFile = z.object({
  /** Deno's name of it. */
  target: z.string().max(64),
  /** Where it is, from where the release was read. */
  url: z.string().max(URL_LENGTH_MAX),
  size: z.int().min(1).max(FILE_BYTES_MAX),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Ed25519, in base64, of `signedText`. */
  signature: z.string().length(88),
});
export type ReleaseFile = z.infer<typeof ReleaseFile>;

const version = z.string().max(VERSION_LENGTH_MAX);

/** What a release service says of the latest release: its own form, or that of code hosts. */
export const Release = z.union([
  z.object({
    version,
    url: z.string().optional(),
    files: z.array(ReleaseFile).max(32).default([]),
  }),
  z.object({ tag_name: version, html_url: z.string().optional() })
    .transform(({ tag_name, html_url }) => ({
      version: tag_name,
      url: html_url,
      files: [] as ReleaseFile[],
    })),
]);
export type Release = z.infer<typeof Release>;

/**
 * What a signature is about: everything that decides what will run. A signature of another version or
 * another machine's file fits no other.
 */
export function signedText(
  version: string,
  { target, size, sha256 }: Pick<ReleaseFile, "target" | "size" | "sha256">,
): Uint8Array<ArrayBuffer> {
  const lines = ["svc release", version, target, String(size), sha256];
  return new TextEncoder().encode(lines.join("\n") + "\n");
}

/**
 * Holds a file's signature against the keys: raw Ed25519 public ones, in base64.
 *
 * @throws {SvcError} `forbidden`, unless one of them has made it.
 */
export async function checkSignature(
  version: string,
  file: ReleaseFile,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) {
    throw new SvcError(
      "forbidden",
      "this program was built without the key of a release: download a release, and install that",
    );
  }
  const text = signedText(version, file);
  const signature = fromBase64(file.signature);
  for (const key of keys) {
    const imported = await crypto.subtle.importKey("raw", fromBase64(key), "Ed25519", false, [
      "verify",
    ]);
    if (await crypto.subtle.verify("Ed25519", imported, signature, text)) return;
  }
  throw new SvcError(
    "forbidden",
    `update.url: the signature of ${version} for ${file.target} is of none of this program's keys: ` +
      "it is not installed",
  );
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.fromBase64(text);
  } catch {
    return new Uint8Array(0);
  }
}
