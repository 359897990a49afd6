import { createHash } from "node:crypto";

/** Most bytes of one list, as downloaded, unpacked or read from a path. */
export const LIST_BYTES_MAX = 256 * 1024 * 1024;

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
  /** 0 until the compiler has counted. */
  readonly rules: number;
  /** Lines left out as no rule of ours. */
  readonly unsupported: number;
  /** When the text was last fetched, confirmed or read. */
  readonly refreshed_at: string | null;
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
