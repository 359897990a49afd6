import type { RaftDisk, RaftFile } from "./raft_log.ts";
import { unavailable } from "./values.ts";

const SPOOL_FILE = "raft.incoming";
/** Most bytes of a state that is taken over. */
export const SPOOL_BYTES_MAX = 1 << 30;

/** Parts that wait on the disk, so that no memory is needed for all of them. */
export class Spool {
  readonly #disk: RaftDisk;
  readonly #file: RaftFile;
  readonly #lengths: number[] = [];
  #end = 0;

  private constructor(disk: RaftDisk, file: RaftFile) {
    this.#disk = disk;
    this.#file = file;
  }

  /** One at a time: it takes the place of the one before. */
  static async open(disk: RaftDisk): Promise<Spool> {
    await disk.remove(SPOOL_FILE);
    const file = await disk.open(SPOOL_FILE, "make");
    if (file === null) throw unavailable(`${SPOOL_FILE}: can't be made`);
    return new Spool(disk, file);
  }

  /** @throws If there is no room for it. */
  async append(part: Uint8Array): Promise<void> {
    if (this.#end + part.length > SPOOL_BYTES_MAX) {
      throw unavailable(`a state of more than ${SPOOL_BYTES_MAX} bytes is not taken over`);
    }
    await this.#file.write(this.#end, part);
    this.#end += part.length;
    this.#lengths.push(part.length);
  }

  async *parts(): AsyncGenerator<Uint8Array> {
    let at = 0;
    for (const length of this.#lengths) {
      yield await this.#file.read(at, length);
      at += length;
    }
  }

  async close(): Promise<void> {
    this.#file.close();
    await this.#disk.remove(SPOOL_FILE).catch(() => {}); // The next one removes it.
  }
}
