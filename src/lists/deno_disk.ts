import type { Disk, DiskFile, DiskStat } from "./ports.ts";

const CHUNK_BYTES = 256 * 1024;

/** The disk of this machine. */
export const denoDisk: Disk = {
  makeDirectory: (path) => Deno.mkdir(path, { recursive: true, mode: 0o700 }),

  async names(path): Promise<string[]> {
    const names: string[] = [];
    for await (const entry of Deno.readDir(path)) names.push(entry.name);
    return names.sort();
  },

  async stat(path): Promise<DiskStat> {
    const stat = await Deno.stat(path);
    return { isFile: stat.isFile, sizeBytes: stat.size };
  },

  realPath: (path) => Deno.realPath(path),

  async *chunks(path): AsyncGenerator<Uint8Array> {
    using file = await Deno.open(path, { read: true });
    const chunk = new Uint8Array(CHUNK_BYTES);
    for (;;) {
      const lengthBytes = await file.read(chunk);
      if (lengthBytes === null) return;
      yield chunk.subarray(0, lengthBytes);
    }
  },

  async create(path): Promise<DiskFile> {
    const file = await Deno.open(path, { write: true, create: true, truncate: true, mode: 0o600 });
    return {
      async write(bytes): Promise<void> {
        for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
      },
      sync: () => file.sync(),
      close: () => file.close(),
    };
  },

  rename: (from, to) => Deno.rename(from, to),
  remove: (path) => Deno.remove(path),

  async syncDirectory(path): Promise<void> {
    using directory = await Deno.open(path, { read: true });
    await directory.sync();
  },
};
