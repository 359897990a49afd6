/** Draws from 0 (included) to 1 (excluded), as `Math.random` does. */
export type Chance = () => number;

/** A file being written. */
export interface DiskFile {
  /** Writes all of `bytes`. */
  write(bytes: Uint8Array): Promise<void>;
  /** Returns once what was written would outlast a loss of power. */
  sync(): Promise<void>;
  close(): void;
}

export interface DiskStat {
  readonly isFile: boolean;
  readonly sizeBytes: number;
}

/** The file system, as far as lists need it. What is absent throws `Deno.errors.NotFound`. */
export interface Disk {
  /** Makes the directory with its parents, for the owner alone; one that is there stays as it is. */
  makeDirectory(path: string): Promise<void>;
  names(path: string): Promise<string[]>;
  stat(path: string): Promise<DiskStat>;
  /** The path with every symbolic link followed. */
  realPath(path: string): Promise<string>;
  /** Reads the file in pieces; a piece is the caller's until it asks for the next. */
  chunks(path: string): AsyncIterable<Uint8Array>;
  /** Makes the file, or empties the one that is there; for the owner alone. */
  create(path: string): Promise<DiskFile>;
  /** Replaces `to` in one step. */
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes the renames in this directory outlast a loss of power. */
  syncDirectory(path: string): Promise<void>;
}
