import { createHash } from "node:crypto";
import * as z from "zod";
import { invariant, messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Disk, DiskFile } from "./ports.ts";
import { LIST_BYTES_MAX } from "./source.ts";
import { TextCheck } from "./text_check.ts";

/** A kept text: where it came from and what its file holds. */
const Copy = z.object({
  /** Of a copy of a file that was given by path, its place; empty for one found without an entry. */
  url: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.int().min(0).max(LIST_BYTES_MAX),
  /** When the text was fetched or confirmed last. */
  fetchedAtMs: z.int(),
  etag: z.string().optional(),
  lastModified: z.string().optional(),
  /** Since when the server sends so much less that it is not believed yet. */
  shrunkAtMs: z.int().optional(),
});
export type Copy = Readonly<z.infer<typeof Copy>>;

/** Each list's copies: the file is one of them, the first but for a write that was interrupted. */
const Index = z.strictObject({
  version: z.literal(1),
  lists: z.record(z.string(), z.array(Copy).min(1).max(2)),
});

const INDEX_NAME = "index.json";
const INDEX_BYTES_MAX = 64 * 1024 * 1024;
const TEXT_SUFFIX = ".txt";
/** What a name ends in until the file behind it is whole. */
const PART_SUFFIX = ".part";
const COPY_SUFFIX = ".copy";
const ID = /^[a-z][a-z0-9_]{0,79}$/;

/** A kept text. */
export interface KeptText {
  /** A buffer of its own, which may be transferred. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of the bytes, in hexadecimal. */
  readonly sha256: string;
}

/** A text on its way to the disk; it takes the list's place when it is committed. */
export interface NewText {
  write(bytes: Uint8Array): Promise<void>;
  /** Throws the text away unless it was committed. */
  discard(): Promise<void>;
}

class PartFile implements NewText {
  #open = true;
  #committed = false;
  constructor(readonly disk: Disk, readonly path: string, readonly file: DiskFile) {}

  write(bytes: Uint8Array): Promise<void> {
    return this.file.write(bytes);
  }

  /** Makes the text durable under the name it has now. */
  async finish(): Promise<void> {
    await this.file.sync();
    this.#open = false;
    this.file.close();
  }

  async moveTo(path: string): Promise<void> {
    await this.disk.rename(this.path, path);
    this.#committed = true;
  }

  async discard(): Promise<void> {
    if (this.#open) this.file.close();
    this.#open = false;
    if (!this.#committed) await this.disk.remove(this.path);
  }
}

/**
 * The texts on disk: a file a list and one index. The process may end between any two steps:
 *
 * 1. the new text is written under another name and made durable;
 * 2. the index names both the copy at hand and the new one, and is made durable;
 * 3. the new text takes the file's name;
 * 4. the next index names the new copy alone.
 *
 * So the file is always one that the index names, and its hash says which.
 */
export class KeptLists {
  /** The copy that each file holds. */
  readonly #copies = new Map<string, Copy>();
  /** Copies that a file may hold instead after a loss of power. */
  readonly #others = new Map<string, Copy>();
  /** Lists whose file turned out to be none of its copies. */
  readonly #damaged = new Set<string>();

  private constructor(readonly directory: string, readonly disk: Disk) {}

  /** Makes the directory if need be, clears what an interrupted write left, reads the index. */
  static async open(directory: string, disk: Disk): Promise<KeptLists> {
    await disk.makeDirectory(directory);
    const kept = new KeptLists(directory, disk);
    const names = await disk.names(directory);
    for (const name of names) {
      if (!name.endsWith(PART_SUFFIX)) continue;
      try {
        await disk.remove(`${directory}/${name}`);
      } catch (error) {
        // It is only in the way of space: the texts beside it can still be read.
        log.warn("left-over file cannot be removed", { directory, name, error });
      }
    }
    if (names.includes(INDEX_NAME)) await kept.#readIndex(new Set(names));
    for (const id of names.map(idOfName)) {
      if (id !== null && !kept.#copies.has(id)) await kept.#adopt(id);
    }
    return kept;
  }

  /** What is kept of a list, or `undefined` if nothing is or its file is damaged. */
  copyOf(id: string): Copy | undefined {
    return this.#damaged.has(id) ? undefined : this.#copies.get(id);
  }

  isDamaged(id: string): boolean {
    return this.#damaged.has(id);
  }

  /** The text, whole and as it was fetched, or `null`. */
  async read(id: string): Promise<KeptText | null> {
    const copy = this.copyOf(id);
    if (copy === undefined) return null;
    try {
      const bytes = await readWhole(this.disk, this.#pathOf(id), LIST_BYTES_MAX);
      if (sha256Hex(bytes) === copy.sha256) return { bytes, sha256: copy.sha256 };
      this.#markDamaged(id, "the text does not match its hash");
    } catch (error) {
      this.#markDamaged(id, error);
    }
    return null;
  }

  /** Reads the file through, by way of `look`, and says whether it holds what it should. */
  async verify(id: string, look?: (chunk: Uint8Array) => void): Promise<boolean> {
    const copy = this.copyOf(id);
    if (copy === undefined) return false;
    try {
      const { sha256 } = await hashText(this.disk, this.#pathOf(id), look);
      if (sha256 === copy.sha256) return true;
      this.#markDamaged(id, "the text does not match its hash");
    } catch (error) {
      this.#markDamaged(id, error);
    }
    return false;
  }

  /** The hash of the text, if that is whole. */
  async hashOf(id: string): Promise<string | null> {
    return await this.verify(id) ? this.copyOf(id)?.sha256 ?? null : null;
  }

  /** What to say of a text that could not be had from `place`: why, and what is in force instead. */
  failureMessage(id: string, place: string, error: unknown): string {
    const copy = this.copyOf(id);
    const message = `${place}: ${messageOf(error)}`;
    if (copy === undefined) return message;
    if (copy.fetchedAtMs === 0) return `${message}; the text on disk stays in use`;
    return `${message}; the text of ${new Date(copy.fetchedAtMs).toISOString()} stays in use`;
  }

  /** Starts a new text for the list; one at a time of a download, and one of a copied file. */
  async begin(id: string, from: "download" | "file" = "download"): Promise<NewText> {
    const path = `${this.#pathOf(id)}${from === "file" ? COPY_SUFFIX : ""}${PART_SUFFIX}`;
    return new PartFile(this.disk, path, await this.disk.create(path));
  }

  /**
   * Puts the new text in the list's place. If this throws, the list has the one text or the other,
   * and `copyOf` says which.
   */
  async commit(id: string, text: NewText, copy: Copy): Promise<void> {
    invariant(text instanceof PartFile, "a committed text comes from begin()");
    await text.finish();
    const former = this.copyOf(id);
    // First in the index, then in its place: a text without its entry would count as damaged.
    this.#others.set(id, copy);
    try {
      await this.#writeIndex();
      await text.moveTo(this.#pathOf(id));
    } catch (error) {
      if (former === undefined) this.#others.delete(id);
      throw error;
    }
    this.#copies.set(id, copy);
    this.#damaged.delete(id);
    if (former === undefined) this.#others.delete(id);
    else this.#others.set(id, former);
    // Until then the former text may come back with the power.
    await this.disk.syncDirectory(this.directory);
    this.#others.delete(id);
  }

  /** Notes something new about the copy at hand; the text stays. */
  async annotate(id: string, copy: Copy): Promise<void> {
    const former = this.#copies.get(id);
    invariant(former?.sha256 === copy.sha256, "an annotated copy has the text of the one at hand");
    this.#copies.set(id, copy);
    await this.#writeIndex();
  }

  /** Removes every list but those in `ids`. */
  async removeExcept(ids: ReadonlySet<string>): Promise<void> {
    const entries = [...this.#copies.keys()].filter((id) => !ids.has(id));
    for (const id of entries) {
      this.#copies.delete(id);
      this.#others.delete(id);
      this.#damaged.delete(id);
    }
    // The index first: an entry without a file would count as damaged and be logged.
    if (entries.length > 0) await this.#writeIndex();
    for (const name of await this.disk.names(this.directory)) {
      const id = idOfName(name);
      if (id === null || ids.has(id)) continue;
      await this.disk.remove(`${this.directory}/${name}`);
      log.info("list removed from disk", { list: id });
    }
  }

  #pathOf(id: string): string {
    invariant(ID.test(id), "a list's ID is a plain file name");
    return `${this.directory}/${id}${TEXT_SUFFIX}`;
  }

  #markDamaged(id: string, error: unknown): void {
    this.#damaged.add(id);
    log.warn("kept list is damaged and will be fetched anew", { list: id, error });
  }

  async #readIndex(names: ReadonlySet<string>): Promise<void> {
    let index: z.infer<typeof Index>;
    try {
      const bytes = await readWhole(this.disk, `${this.directory}/${INDEX_NAME}`, INDEX_BYTES_MAX);
      index = Index.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
    } catch (error) {
      // The texts are still there: they are taken as they are and fetched anew.
      log.warn("index of the kept lists cannot be read", { directory: this.directory, error });
      return;
    }
    for (const [id, copies] of Object.entries(index.lists)) {
      // Without a file, it is a first text whose write was interrupted.
      if (!names.has(id + TEXT_SUFFIX) || !ID.test(id)) continue;
      this.#copies.set(id, copies[0]);
      if (copies.length > 1) await this.#settle(id, copies);
    }
  }

  /** Finds out which copy the file holds, where a write was interrupted. */
  async #settle(id: string, copies: readonly Copy[]): Promise<void> {
    try {
      const { sha256 } = await hashText(this.disk, this.#pathOf(id));
      const copy = copies.find((one) => one.sha256 === sha256);
      if (copy !== undefined) this.#copies.set(id, copy);
      else this.#markDamaged(id, "the text matches neither hash");
    } catch (error) {
      this.#markDamaged(id, error);
    }
  }

  /** Takes a file that the index does not know: an old text filters better than none. */
  async #adopt(id: string): Promise<void> {
    try {
      const { sha256, sizeBytes } = await hashText(this.disk, this.#pathOf(id));
      this.#copies.set(id, { url: "", sha256, sizeBytes, fetchedAtMs: 0 });
      log.warn("list on disk has no entry in the index and is used as it is", { list: id });
    } catch (error) {
      log.warn("list on disk has no entry in the index and cannot be read", { list: id, error });
    }
  }

  async #writeIndex(): Promise<void> {
    const lists: Record<string, Copy[]> = {};
    for (const id of new Set([...this.#copies.keys(), ...this.#others.keys()])) {
      const copies = [this.#copies.get(id), this.#others.get(id)];
      lists[id] = copies.filter((copy) => copy !== undefined);
    }
    const text = JSON.stringify({ version: 1, lists } satisfies z.infer<typeof Index>, null, 1);
    await writeWhole(this.disk, this.directory, INDEX_NAME, text + "\n");
  }
}

/** Puts a text in a file's place in one step; it outlasts a loss of power. */
export async function writeWhole(
  disk: Disk,
  directory: string,
  name: string,
  text: string,
): Promise<void> {
  const path = `${directory}/${name}`;
  const part = new PartFile(disk, path + PART_SUFFIX, await disk.create(path + PART_SUFFIX));
  try {
    await part.write(new TextEncoder().encode(text));
    await part.finish();
    await part.moveTo(path);
    await disk.syncDirectory(directory);
  } finally {
    await part.discard();
  }
}

/** Hashes and checks the text of a file without holding it; `look` sees each piece. */
export async function hashText(
  disk: Disk,
  path: string,
  look: (chunk: Uint8Array) => void = () => undefined,
): Promise<{ sha256: string; sizeBytes: number }> {
  const hash = createHash("sha256");
  const check = new TextCheck();
  for await (const chunk of disk.chunks(path)) {
    hash.update(chunk);
    check.add(chunk);
    look(chunk);
    if (check.sizeBytes > LIST_BYTES_MAX) throw tooLarge(LIST_BYTES_MAX);
  }
  check.finish();
  return { sha256: hash.digest("hex"), sizeBytes: check.sizeBytes };
}

/** Reads a file of at most `bytesMax` into a buffer of its own. @throws {SvcError} If it has more. */
export async function readWhole(
  disk: Disk,
  path: string,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const { sizeBytes } = await disk.stat(path);
  if (sizeBytes > bytesMax) throw tooLarge(bytesMax);
  const bytes = new Uint8Array(sizeBytes);
  let lengthBytes = 0;
  for await (const chunk of disk.chunks(path)) {
    // The operator may be writing the file right now.
    if (lengthBytes + chunk.length > sizeBytes) {
      throw new SvcError("unavailable", "the file grew while it was read");
    }
    bytes.set(chunk, lengthBytes);
    lengthBytes += chunk.length;
  }
  return lengthBytes === sizeBytes ? bytes : bytes.slice(0, lengthBytes);
}

export function sha256Hex(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function tooLarge(bytesMax: number): SvcError {
  return new SvcError("invalid", `it is larger than ${bytesMax} bytes`);
}

function idOfName(name: string): string | null {
  const id = name.endsWith(TEXT_SUFFIX) ? name.slice(0, -TEXT_SUFFIX.length) : "";
  return ID.test(id) ? id : null;
}
