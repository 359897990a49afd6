import type { UiFile, UiFiles } from "../api/mod.ts";
import { log } from "../log.ts";

/** Made by `scripts/build_ui.ts`: a line of JSON, and the gzipped files behind it. */
const FILE = new URL("./ui.assets", import.meta.url);
const LINE_FEED = 0x0a;

/** The line before the files; `offset` counts from its end. */
interface Index {
  readonly shell: string;
  readonly digests: UiFiles["digests"];
  readonly pages: readonly string[];
  readonly files: readonly {
    readonly path: string;
    readonly type: string;
    readonly hash: string;
    readonly offset: number;
    readonly length: number;
  }[];
}

/** Reads the dashboard; `null`, with a warning in the log, where there is none or it can't be read. */
export async function openUiFiles(file: URL = FILE): Promise<UiFiles | null> {
  try {
    return readUiFiles(await Deno.readFile(file));
  } catch (error) {
    log.warn("no dashboard: it was not built, or can't be read: scripts/build_ui makes it", {
      error,
    });
    return null;
  }
}

/** Takes the built file apart; its files are views of `bytes`. */
export function readUiFiles(bytes: Uint8Array<ArrayBuffer>): UiFiles {
  const end = bytes.indexOf(LINE_FEED);
  const index: Index = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const body = bytes.subarray(end + 1);
  const files = new Map(
    index.files.map(({ path, type, hash, offset, length }): [string, UiFile] => [
      path,
      { type, hash, gzip: body.subarray(offset, offset + length) },
    ]),
  );
  const shell = files.get(index.shell);
  if (shell === undefined) throw new Error(`${index.shell}: it is not among the files`);
  const pages = index.pages.map((page) => new RegExp(`^${page.replace(/:\w+/g, "[^/]+")}/?$`));
  return {
    shell,
    digests: index.digests,
    asset: (path) => files.get(path),
    hasPage: (path) => pages.some((page) => page.test(path)),
  };
}
