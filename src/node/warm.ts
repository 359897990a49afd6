import { join } from "node:path/posix";
import { messageOf } from "../errors.ts";
import { log } from "../log.ts";
import { VERSION } from "../version.ts";
import type { ProgramPlaces } from "./places.ts";

/**
 * All that a service loads, by URL: the runtime reads what literal imports name before the first line
 * of a program runs, and stage 1 is to begin with less.
 */
const SERVING = [
  new URL("./mod.ts", import.meta.url),
  new URL("../isolate/workers.ts", import.meta.url),
  new URL("../transport/listen_encrypted.ts", import.meta.url),
  new URL("../transport/exchange_encrypted.ts", import.meta.url),
  new URL("../transport/exchange_quic.ts", import.meta.url),
  new URL("../transport/oblivious.ts", import.meta.url),
];
/** Files and folders of a program that are looked at: far more than there are. */
const ENTRIES_MAX = 10_000;

/**
 * Has the runtime keep what it makes of the modules of a service, unless it has done so already:
 * once the process is shut in it keeps nothing, and would make it anew at each start. Where nothing
 * can be kept, nothing is.
 */
export async function warmCaches({ modules: program, caches, file }: ProgramPlaces): Promise<void> {
  if (caches === null) return;
  // What was extracted from a file stays as it is.
  const newest = file === null ? newestOf(program) : 0;
  const state = `${VERSION} ${Deno.version.deno} ${newest}\n`;
  const mark = join(caches, `svc-${encodeURIComponent(program)}`);
  try {
    if (Deno.readTextFileSync(mark) === state) return;
  } catch {
    // There is none yet.
  }
  try {
    Deno.mkdirSync(caches, { recursive: true });
    Deno.writeTextFileSync(mark, "");
  } catch {
    return; // As somebody's who keeps nothing here.
  }
  try {
    await Promise.all(SERVING.map(({ href }) => import(href)));
    Deno.writeTextFileSync(mark, state);
  } catch (error) {
    log.warn("the runtime's caches can't be filled: starts are slower", {
      error: messageOf(error),
    });
  }
}

/** When a file of the program was last changed, in milliseconds since 1970. */
function newestOf(program: string): number {
  let newest = 0;
  const folders = [join(program, "src")];
  for (let looked = 0; folders.length > 0 && looked < ENTRIES_MAX;) {
    const folder = folders.pop()!;
    for (const { name, isDirectory } of Deno.readDirSync(folder)) {
      const path = join(folder, name);
      looked++;
      if (isDirectory) folders.push(path);
      else newest = Math.max(newest, Deno.statSync(path).mtime?.getTime() ?? 0);
    }
  }
  return newest;
}
