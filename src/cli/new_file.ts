import { messageOf, SvcError } from "../errors.ts";

/** A file to be made. */
export interface NewFile {
  readonly path: string;
  readonly text: string;
  /** Permissions, whatever the mask of the caller is. */
  readonly mode: number;
}

/**
 * Makes files, each whole or not at all, and none of them where one can't be. A file that is there
 * is never touched, unless it `isReplaced`.
 *
 * @throws {SvcError} `conflict`, when one is there; `unavailable`, when one can't be written.
 */
export async function writeNewFiles(files: readonly NewFile[], isReplaced = false): Promise<void> {
  const places: string[] = [];
  for (const { path } of files) {
    if (!isReplaced) await refuseExisting(path);
    places.push(isReplaced ? await writing(path, () => placeOf(path)) : path);
  }
  const drafts: string[] = [];
  const made: string[] = [];
  try {
    for (const [i, file] of files.entries()) {
      drafts.push(await writing(file.path, () => writeDraft(places[i], file)));
    }
    for (const [i, path] of places.entries()) {
      // A link is not made where there is a file; a file is replaced by a change of names.
      await writing(
        path,
        () => isReplaced ? Deno.rename(drafts[i], path) : Deno.link(drafts[i], path),
      );
      made.push(path);
    }
  } catch (error) {
    if (!isReplaced) { for (const path of made) await Deno.remove(path).catch(() => {}); }
    throw error;
  } finally {
    for (const draft of drafts) await Deno.remove(draft).catch(() => {}); // Renamed, or a second name.
  }
}

/**
 * Does what writes there; a failure says where, and how to mend it.
 *
 * @throws {SvcError} `conflict`, `unavailable`.
 */
export async function writing<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    if (cause instanceof Deno.errors.AlreadyExists) throw existing(path);
    const reason = cause instanceof Deno.errors.PermissionDenied
      ? "may not be written: give this user the right to"
      : `can't be written: ${messageOf(cause)}`;
    throw new SvcError("unavailable", `${path}: ${reason}`, { cause });
  }
}

async function refuseExisting(path: string): Promise<void> {
  // What can't be looked at is found when the file is made.
  if (await Deno.lstat(path).catch(() => null) !== null) throw existing(path);
}

function existing(path: string): SvcError {
  return new SvcError("conflict", `${path}: is there already and stays: move it away first`);
}

/** Where a file that is replaced is: behind a link. A device, say, would be no device any more. */
async function placeOf(path: string): Promise<string> {
  if (!await exists(path)) return path;
  const place = await Deno.realPath(path).catch(() => null);
  if (place !== null && (await Deno.stat(place)).isFile) return place;
  throw new SvcError("conflict", `${path}: is there and no file: name another`);
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Writes a file under a name of its own beside its place, durably. */
async function writeDraft(path: string, { text, mode }: NewFile): Promise<string> {
  const draft = `${path}.${crypto.randomUUID()}.new`;
  // Nobody else may read it at any moment.
  using file = await Deno.open(draft, { write: true, createNew: true, mode: 0o600 });
  try {
    const bytes = new TextEncoder().encode(text);
    for (let sent = 0; sent < bytes.length;) sent += await file.write(bytes.subarray(sent));
    await Deno.chmod(draft, mode);
    await file.sync();
  } catch (error) {
    await Deno.remove(draft).catch(() => {});
    throw error;
  }
  return draft;
}
