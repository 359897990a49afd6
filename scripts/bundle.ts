/**
 * Makes few files of a program's many. The runtime keeps some 40 KiB for each module that it loads,
 * and the text of all of them in each isolate; a start reads them one by one.
 *
 * @module
 */
import { build, type Message, type Plugin, stop } from "esbuild";
import { dirname, relative } from "node:path/posix";
import { ADD_ONS, BuildError, type Program } from "./program.ts";

/** Stands in the bundled text for the URL of the program's folder. */
const FOLDER = "PROGRAM_FOLDER_URL";

/**
 * Bundles the modules of `program`, with the packages they import, into `folder`. Who has a URL
 * (`main.ts`, the workers) keeps its path, as `.js`; what several of them share lies in `chunks`.
 * Names stay, for traces of errors.
 *
 * @throws {BuildError} For what can't be bundled.
 */
export async function bundle(
  { directory, workers }: Pick<Program, "directory" | "workers">,
  folder: string,
): Promise<void> {
  try {
    const { outputFiles, metafile, warnings } = await build({
      absWorkingDir: directory,
      outdir: folder,
      outbase: directory,
      entryPoints: ["main.ts", ...workers],
      entryNames: "[dir]/[name]",
      chunkNames: "chunks/[name]-[hash]",
      external: [...ADD_ONS],
      plugins: [keepPlaces(directory)],
      bundle: true,
      splitting: true,
      write: false,
      metafile: true,
      format: "esm",
      platform: "node",
      conditions: ["deno"],
      target: "esnext",
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: "none",
      logLevel: "silent",
    });
    if (warnings.length > 0) throw new BuildError(warnings.map(textOf).join("\n"));
    for (const { imports } of Object.values(metafile.outputs)) {
      for (const { path, kind } of imports) {
        if (kind !== "require-call") continue;
        throw new BuildError(`a package requires ${path} while it runs: a bundle has no require`);
      }
    }
    for (const { path, text } of outputFiles) {
      const up = relative(dirname(path), folder);
      await Deno.mkdir(dirname(path), { recursive: true });
      const url = `new URL("${up === "" ? "./" : `${up}/`}",import.meta.url)`;
      await Deno.writeTextFile(path, text.replaceAll(FOLDER, url));
    }
  } catch (error) {
    const { errors } = error as { errors?: readonly Message[] };
    throw errors === undefined ? error : new BuildError(errors.map(textOf).join("\n"));
  } finally {
    await stop();
  }
}

/** Files are found where they lie in the program, whichever file the code has come to. */
function keepPlaces(directory: string): Plugin {
  return {
    name: "keep-places",
    setup: ({ onLoad }) => {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const place = JSON.stringify(relative(directory, path));
        const contents = (await Deno.readTextFile(path))
          .replace(/(new URL\("[^"]+)\.ts", import\.meta\.url\)/g, '$1.js", import.meta.url)')
          .replaceAll("import.meta.url", `new URL(${place}, ${FOLDER}).href`);
        return { contents, loader: "ts" };
      });
    },
  };
}

function textOf({ text, location }: Message): string {
  return location === null ? text : `${location.file}:${location.line}: ${text}`;
}
