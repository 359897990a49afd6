import { isAbsolute, join, relative } from "node:path";
import type { Disk } from "./ports.ts";

/** A list given by path: where its file is, or that it is nowhere it may be read from. */
export type LocalList =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "elsewhere"; readonly message: string };

/**
 * Finds the file of a list by path. It has to be in `directory` once every symbolic link is
 * followed; a relative path starts there. The message of one elsewhere says how to mend it.
 *
 * @throws What the disk throws for a file that is not there.
 */
export async function findLocalList(
  disk: Disk,
  directory: string,
  path: string,
): Promise<LocalList> {
  const elsewhere = (fact: string): LocalList => ({
    kind: "elsewhere",
    message: `${path}: ${fact}; put the file in ${directory} ([filter] local_lists_dir)`,
  });
  // Of a path that does not even look right, not so much as its existence is told.
  const asked = isAbsolute(path) ? join(path) : join(directory, path);
  const root = await disk.realPath(directory).catch((error: unknown) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (root === null) return elsewhere("the directory of local lists does not exist");
  if (!isInside(directory, asked) && !isInside(root, asked)) {
    return elsewhere("lists are only read from the directory of local lists");
  }
  const real = await disk.realPath(asked);
  if (!isInside(root, real)) return elsewhere("a link leads out of the directory of local lists");
  const stat = await disk.stat(real);
  return stat.isFile ? { kind: "file", path: real } : elsewhere("this is not a file");
}

function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== "" && way !== ".." && !way.startsWith("../") && !isAbsolute(way);
}
