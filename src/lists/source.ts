import { createHash } from "node:crypto";
import { invariant } from "../errors.ts";
import type { DownloadLimits } from "../http/mod.ts";

/** Most bytes of one list, as downloaded, unpacked or read from a path. */
export const LIST_BYTES_MAX = 256 * 1024 * 1024;

/** How long the download of a list may take. */
export const DOWNLOAD_LIMITS: DownloadLimits = {
  headTimeoutMs: 15_000,
  idleTimeoutMs: 20_000,
  pace: { bytesMin: 30 * 10 * 1024, timeMs: 30_000 }, // 10 KiB/s.
  totalTimeoutMs: 300_000,
  bytesMax: LIST_BYTES_MAX,
};

/** Most bytes of a text that is checked as a whole. */
export const CHECKED_BYTES_MAX = 16 * 1024 * 1024;

/** Bytes of a name's SHA-256 that make an ID. */
const ID_BYTES = 8;

/** A list to keep: its ID, and exactly one of `url` and `path`. */
export interface ListSource {
  /** Names the file on disk: lower-case letters, digits and `_`. */
  readonly id: string;
  readonly name: string;
  /** `https:`, or `http:` on a loopback host. */
  readonly url?: string;
  /** Inside the directory of local lists; a relative path starts there. */
  readonly path?: string;
  /** What it names is let through, not blocked. */
  readonly allows?: boolean;
  /**
   * Throws for a whole text that is not what it should be: of what is downloaded and is no list.
   * Such a text has `CHECKED_BYTES_MAX` bytes at most.
   */
  readonly check?: (text: string) => void;
}

export type ListState = "ok" | "pending" | "failed" | "skipped";

/** What this node has of a list, as the API shows it. */
export interface ListStatus {
  readonly state: ListState;
  /** What is wrong and, where someone can mend it, how. */
  readonly message: string | null;
  /** In force; 0 until the compiler has counted. */
  readonly rules: number;
  /** Lines left out as no rule of ours; of a list without a text, those of the one refused last. */
  readonly unsupported: number;
  /** When the text was last fetched, confirmed or read. */
  readonly refreshed_at: string | null;
  /** How far the download under way is; `null` where there is none. */
  readonly downloading: ListDownload | null;
}

/** A download under way; what else a status says is of the text in force. */
export interface ListDownload {
  /** Received so far, as on the wire. */
  readonly bytes: number;
  /** Of all of it; `null` where the server does not say. */
  readonly total_bytes: number | null;
  readonly started_at: string;
}

/** The URL or the path: what a list's history is about. */
export function placeOf({ id, url, path }: ListSource): string {
  invariant((url === undefined) !== (path === undefined), `the list ${id} has one of url and path`);
  return url !== undefined ? `url ${url}` : `path ${path}`;
}

/** The ID of a list of the config file: the same on every start and member, from its name alone. */
export function configListId(name: string): string {
  return `li_cfg_${idDigits(name)}`;
}

/** The ID under which a new node has a recommended list: the same on every node. */
export function recommendedListId(id: string): string {
  return `li_${idDigits(`recommended ${id}`)}`;
}

function idDigits(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex").slice(0, 2 * ID_BYTES);
}
