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
  if (!isReplaced) { for (const { path } of files) await refuseExisting(path); }
  const drafts: string[] = [];
  const made: string[] = [];
  try {
    for (const file of files) drafts.push(await at(file.path, () => writeDraft(file)));
    for (const [i, { path }] of files.entries()) {
      // A link is not made where there is a file; a file is replaced by a change of names.
      await at(path, () => isReplaced ? Deno.rename(drafts[i], path) : Deno.link(drafts[i], path));
      made.push(path);
    }
  } catch (error) {
    if (!isReplaced) { for (const path of made) await Deno.remove(path).catch(() => {}); }
    throw error;
  } finally {
    for (const draft of drafts) await Deno.remove(draft).catch(() => {}); // Renamed, or a second name.
  }
}

async function at<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
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

/** Writes a file under a name of its own beside its place, durably. */
async function writeDraft({ path, text, mode }: NewFile): Promise<string> {
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
