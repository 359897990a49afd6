import { createHash } from "node:crypto";
import type { Clock } from "../clock/mod.ts";
import { rethrowInvariant } from "../errors.ts";
import { log } from "../log.ts";
import type { Histories, History } from "./histories.ts";
import { hashText, type KeptLists, type KeptText, readWhole, sha256Hex } from "./kept_lists.ts";
import { findLocalList } from "./local_path.ts";
import type { Disk } from "./ports.ts";
import { checkRules, RuleCount } from "./rule_count.ts";
import { LIST_BYTES_MAX, type ListSource, placeOf } from "./source.ts";
import { TextCheck } from "./text_check.ts";

interface LocalListsOptions {
  /** The only directory that lists are read from by path; an absolute path. */
  readonly localListsDirectory: string;
  readonly clock: Clock;
}

/** How to get what is asked of a list: its text, or the hash alone. */
interface Look<T> {
  /** @throws {SvcError} If the file holds no list. */
  readonly file: (path: string) => Promise<T>;
  readonly kept: () => Promise<T | null>;
  readonly hashOf: (value: T) => string;
}

/**
 * Lists by path. The file is what counts; a copy of the last one that held a list is kept for when
 * it does not: edited to nothing, say, or on a disk that is not there yet.
 */
export class LocalLists {
  readonly #kept: KeptLists;
  readonly #histories: Histories;
  readonly #disk: Disk;
  readonly #options: LocalListsOptions;

  constructor(kept: KeptLists, histories: Histories, disk: Disk, options: LocalListsOptions) {
    this.#kept = kept;
    this.#histories = histories;
    this.#disk = disk;
    this.#options = options;
  }

  read(source: ListSource, history: History): Promise<KeptText | null> {
    return this.#look(source, history, {
      file: async (path) => {
        const bytes = await readWhole(this.#disk, path, LIST_BYTES_MAX);
        const [check, rules] = [new TextCheck(), new RuleCount()];
        check.add(bytes);
        check.finish();
        rules.add(bytes);
        checkRules(history, rules, true);
        return { bytes, sha256: sha256Hex(bytes) };
      },
      kept: () => this.#kept.read(source.id),
      hashOf: ({ sha256 }) => sha256,
    });
  }

  /** The hash of the list's text, without holding that. */
  hash(source: ListSource, history: History): Promise<string | null> {
    return this.#look(source, history, {
      file: async (path) => {
        const rules = new RuleCount();
        const { sha256 } = await hashText(this.#disk, path, (chunk) => rules.add(chunk));
        checkRules(history, rules, true);
        return sha256;
      },
      kept: () => this.#kept.hashOf(source.id),
      hashOf: (sha256) => sha256,
    });
  }

  /** Looks at a list and settles its status; `null` where there is nothing to look at. */
  async #look<T>(source: ListSource, history: History, look: Look<T>): Promise<T | null> {
    const path = source.path ?? "";
    history.localSha256 = null; // Until it is read: a text that comes back is an updated one.
    try {
      const found = await findLocalList(this.#disk, this.#options.localListsDirectory, path);
      if (found.kind === "elsewhere") {
        this.#histories.settle(source, history, "skipped", found.message);
        return null;
      }
      const value = await look.file(found.path);
      history.localSha256 = look.hashOf(value);
      this.#histories.settle(source, history, "ok", null);
      await this.#copy(source, found.path, look.hashOf(value));
      return value;
    } catch (error) {
      rethrowInvariant(error);
      const value = await look.kept();
      history.localSha256 = value === null ? null : look.hashOf(value);
      const message = this.#kept.failureMessage(source.id, path, error);
      this.#histories.settle(source, history, "failed", message);
      return value;
    }
  }

  async #copy(source: ListSource, path: string, sha256: string): Promise<void> {
    const { id } = source;
    const url = placeOf(source);
    const former = this.#kept.copyOf(id);
    if (former?.sha256 === sha256 && former.url === url) return;
    try {
      const text = await this.#kept.begin(id, "file");
      try {
        const hash = createHash("sha256");
        let sizeBytes = 0;
        for await (const chunk of this.#disk.chunks(path)) {
          hash.update(chunk);
          sizeBytes += chunk.length;
          if (sizeBytes > LIST_BYTES_MAX) break;
          await text.write(chunk);
        }
        // The user may be writing it right now: the next look sees another text.
        if (hash.digest("hex") !== sha256) return;
        const fetchedAtMs = this.#options.clock.nowMs();
        await this.#kept.commit(id, text, { url, sha256, sizeBytes, fetchedAtMs });
      } finally {
        await text.discard();
      }
    } catch (error) {
      rethrowInvariant(error);
      // The file itself is in force.
      log.warn("list by path cannot be copied", { list: id, name: source.name, error });
    }
  }
}
