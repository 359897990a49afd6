import { createHash } from "node:crypto";
import { dirname } from "node:path/posix";

/** What a file, a folder or a link is, as far as installing looks at it. */
export interface Found {
  readonly kind: "file" | "folder" | "link";
  /** Permission bits alone. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAtMs: number;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A file that is being written piece by piece; it is removed unless it is finished. */
export interface Sink extends AsyncDisposable {
  write(chunk: Uint8Array): Promise<void>;
  /** Makes it durable, under its name. */
  finish(): Promise<void>;
}

/** The machine that is installed on. Paths are absolute; links are not followed. */
export interface Host {
  /** `null`: there is nothing. */
  look(path: string): Promise<Found | null>;
  /** `null`: there is no such file. */
  readText(path: string): Promise<string | null>;
  names(folder: string): Promise<string[]>;
  /** Where a link leads, as it is written. */
  readLink(path: string): Promise<string>;
  /** A file as a whole, durable, or as it was before. */
  write(path: string, content: string | { readonly copyOf: string }, mode: number): Promise<void>;
  /** A new file, in the place of one that may be there. */
  create(path: string, mode: number): Promise<Sink>;
  rename(from: string, to: string): Promise<void>;
  /** Whether a file has the same content as one that is to be copied there. */
  isCopy(path: string, source: string): Promise<boolean>;
  makeFolder(path: string, mode: number): Promise<void>;
  makeLink(path: string, target: string): Promise<void>;
  setMode(path: string, mode: number): Promise<void>;
  setOwner(path: string, owner: Owner): Promise<void>;
  /** With all that is in it. */
  remove(path: string): Promise<void>;
  /** Runs a program to its end; one that is missing has the code 127. */
  run(
    program: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<Ended>;
}

/** What a shell says of a program that is not there. */
const CODE_MISSING = 127;
const PERMISSION_BITS = 0o7777;

/** This machine, or what lies below a folder in its place. */
export class DenoHost implements Host {
  readonly #root: string;

  constructor(root = "") {
    this.#root = root;
  }

  async look(path: string): Promise<Found | null> {
    const info = await orNull(Deno.lstat(this.#root + path));
    if (info === null) return null;
    return {
      kind: info.isSymlink ? "link" : info.isDirectory ? "folder" : "file",
      mode: (info.mode ?? 0) & PERMISSION_BITS,
      uid: info.uid ?? 0,
      gid: info.gid ?? 0,
      modifiedAtMs: info.mtime?.getTime() ?? 0,
    };
  }

  async readText(path: string): Promise<string | null> {
    return await orNull(Deno.readTextFile(this.#root + path));
  }

  async names(folder: string): Promise<string[]> {
    return (await Array.fromAsync(Deno.readDir(this.#root + folder))).map(({ name }) => name);
  }

  async readLink(path: string): Promise<string> {
    return await Deno.readLink(this.#root + path);
  }

  async write(
    path: string,
    content: string | { readonly copyOf: string },
    mode: number,
  ): Promise<void> {
    // Always the same: what a run that broke off has left is written over by the next.
    const unfinished = `${path}.new`;
    {
      await using sink = await this.create(unfinished, mode);
      if (typeof content === "string") await sink.write(new TextEncoder().encode(content));
      else {
        using source = await Deno.open(content.copyOf);
        for await (const chunk of source.readable) await sink.write(chunk);
      }
      await sink.finish();
    }
    await this.rename(unfinished, path);
  }

  async create(path: string, mode: number): Promise<Sink> {
    const place = this.#root + path;
    await orNull(Deno.remove(place, { recursive: true }));
    const file = await Deno.open(place, { write: true, createNew: true, mode });
    let isFinished = false;
    return {
      write: async (chunk) => {
        for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
      },
      finish: async () => {
        await file.sync();
        await Deno.chmod(place, mode);
        isFinished = true;
      },
      [Symbol.asyncDispose]: async () => {
        file.close();
        if (!isFinished) await orNull(Deno.remove(place));
      },
    };
  }

  async rename(from: string, to: string): Promise<void> {
    await Deno.rename(this.#root + from, this.#root + to);
    // The name, too, is to be there after a power cut.
    using folder = await Deno.open(dirname(this.#root + to));
    await folder.sync();
  }

  async isCopy(path: string, source: string): Promise<boolean> {
    const [sum, other] = await Promise.all([orNull(sumOf(this.#root + path)), sumOf(source)]);
    return sum === other;
  }

  async makeFolder(path: string, mode: number): Promise<void> {
    await Deno.mkdir(this.#root + path, { recursive: true, mode });
  }

  async makeLink(path: string, target: string): Promise<void> {
    await Deno.symlink(target, this.#root + path);
  }

  async setMode(path: string, mode: number): Promise<void> {
    await Deno.chmod(this.#root + path, mode);
  }

  async setOwner(path: string, { uid, gid }: Owner): Promise<void> {
    await Deno.chown(this.#root + path, uid, gid);
  }

  async remove(path: string): Promise<void> {
    await orNull(Deno.remove(this.#root + path, { recursive: true }));
  }

  async run(
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Ended> {
    const command = new Deno.Command(program, { args: [...args], env: { ...env }, stdin: "null" });
    try {
      const { code, stdout, stderr } = await command.output();
      const decoder = new TextDecoder();
      return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      return { code: CODE_MISSING, stdout: "", stderr: `${program} is not there` };
    }
  }
}

async function sumOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  using file = await Deno.open(path);
  for await (const chunk of file.readable) hash.update(chunk);
  return hash.digest("hex");
}

async function orNull<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
