import { SvcError } from "../errors.ts";
import type { Host } from "./host.ts";

/** The one that runs and the one before it, which may still be ending. */
const EXTRACTIONS_MAX = 2;
const EXTRACTION = /^svc-[0-9a-f]{64}$/;

/**
 * Has a file of the program extract what it carries into a folder, where all may read it; returns
 * what it says of its version.
 *
 * @throws {SvcError} If the program does not start on this machine.
 */
export async function extract(host: Host, file: string, folder: string): Promise<string> {
  const env = { SVC_CACHE_DIR: folder, SVC_FOR_ALL: "1" };
  const { code, stdout, stderr } = await host.run(file, ["version"], env);
  if (code === 0 && stdout.startsWith("svc ")) return stdout;
  const said = (stderr.trim() || stdout.trim()).split("\n", 1)[0];
  throw new SvcError("unavailable", `${file} does not start: ${said || `code ${code}`}`);
}

/** Removes what former programs carried, but for the newest: nobody runs it any more. */
export async function removeOldExtractions(host: Host, folder: string): Promise<void> {
  const found: { readonly path: string; readonly modifiedAtMs: number }[] = [];
  for (const name of await host.names(folder)) {
    const path = `${folder}/${name}`;
    const info = EXTRACTION.test(name) ? await host.look(path) : null;
    if (info?.kind === "folder") found.push({ path, modifiedAtMs: info.modifiedAtMs });
  }
  found.sort((a, b) => b.modifiedAtMs - a.modifiedAtMs);
  for (const { path } of found.slice(EXTRACTIONS_MAX)) await host.remove(path);
}
