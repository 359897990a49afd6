import { join } from "node:path/posix";
import type { RaftDisk, RaftFile } from "./raft_log.ts";

/** The folder of a store on a real disk. Files are their owner's alone. */
export function denoRaftDisk(directory: string): RaftDisk {
  const at = (name: string) => join(directory, name);
  return {
    async open(name, mode) {
      const options = { read: true, write: true, mode: 0o600 };
      try {
        const file = await Deno.open(at(name), { ...options, create: mode === "make" });
        if (mode === "make") await syncFolder(directory);
        return new DenoRaftFile(file);
      } catch (error) {
        if (mode === "find" && error instanceof Deno.errors.NotFound) return null;
        if (mode === "make") throw error;
        // On a disk that can't be written it is read, and nothing can be added.
        return new DenoRaftFile(await Deno.open(at(name), { read: true }));
      }
    },
    async rename(from, to) {
      await Deno.rename(at(from), at(to));
      await syncFolder(directory);
    },
    async remove(name) {
      try {
        await Deno.remove(at(name));
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    },
  };
}

/** Names are durable once their folder is. */
async function syncFolder(directory: string): Promise<void> {
  using folder = await Deno.open(directory, { read: true });
  await folder.sync();
}

class DenoRaftFile implements RaftFile {
  readonly #file: Deno.FsFile;

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  async length(): Promise<number> {
    return (await this.#file.stat()).size;
  }

  async read(at: number, length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    await this.#file.seek(at, Deno.SeekMode.Start);
    let count = 0;
    while (count < length) {
      const read = await this.#file.read(bytes.subarray(count));
      if (read === null) break;
      count += read;
    }
    return bytes.subarray(0, count);
  }

  async write(at: number, bytes: Uint8Array): Promise<void> {
    await this.#file.seek(at, Deno.SeekMode.Start);
    for (let count = 0; count < bytes.length;) {
      count += await this.#file.write(bytes.subarray(count));
    }
  }

  async truncate(length: number): Promise<void> {
    await this.#file.truncate(length);
  }

  async sync(): Promise<void> {
    await this.#file.syncData();
  }

  close(): void {
    this.#file.close();
  }
}
