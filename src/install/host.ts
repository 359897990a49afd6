import { createHash } from "node:crypto";

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
    const place = this.#root + path;
    // Always the same: what a run that broke off has left is written over by the next.
    const unfinished = `${place}.new`;
    try {
      await orNull(Deno.remove(unfinished, { recursive: true }));
      if (typeof content === "string") await Deno.writeTextFile(unfinished, content, { mode });
      else await Deno.copyFile(content.copyOf, unfinished);
      await Deno.chmod(unfinished, mode);
      using file = await Deno.open(unfinished, { read: true });
      await file.sync();
      await Deno.rename(unfinished, place);
    } catch (error) {
      await orNull(Deno.remove(unfinished)).catch(() => null); // The first error is the one that counts.
      throw error;
    }
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
