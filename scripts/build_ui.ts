/**
 * Builds the dashboard: `ui/` becomes `src/node/ui.assets`, the one file that the service reads it
 * from. A line of JSON tells what is in it; behind it lie the files, gzipped, named after what they
 * hold.
 *
 * @module
 */
import { build, type Message, type Metafile, type Plugin, stop } from "esbuild";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { ICON_NAMES } from "../ui/parts/icon_names.ts";
import { PAGE_PATHS } from "../ui/page_paths.ts";

const ROOT = new URL("../", import.meta.url);
const OUTPUT = new URL("src/node/ui.assets", ROOT);
const UI = new URL("ui/", ROOT).pathname;
const ICONS = new URL("node_modules/lucide-static/icon-nodes.json", ROOT);
const HASH_LENGTH = 16;
const GZIP_LEVEL = 9;

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
};

/** A file of the dashboard before it is packed. */
export interface BuiltFile {
  readonly path: string;
  readonly type: string;
  readonly hash: string;
  readonly gzip: Uint8Array;
}

/** What was built: the files, and which of them the first view loads. */
export interface Built {
  readonly files: readonly BuiltFile[];
  readonly firstView: readonly string[];
  /** What is loaded of one language. */
  readonly locale: readonly string[];
}

function pack(path: string, content: Uint8Array | string): BuiltFile {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, HASH_LENGTH);
  const type = TYPES[path.slice(path.lastIndexOf(".") + 1)];
  return { path, type, hash, gzip: gzipSync(content, { level: GZIP_LEVEL }) };
}

/** A file that is copied, under a name that tells its content. */
function named(name: string, content: string): BuiltFile {
  const file = pack(name, content);
  return { ...file, path: `/assets/${name.replace(/(\.\w+)$/, `-${file.hash.slice(0, 8)}$1`)}` };
}

/** The icons that are used, as the nodes of their pictures. */
async function iconNodes(): Promise<Record<string, unknown>> {
  const all = JSON.parse(await Deno.readTextFile(ICONS));
  return Object.fromEntries(ICON_NAMES.map((name) => {
    if (!Object.hasOwn(all, name)) throw new Error(`${name}: lucide has no such icon`);
    return [name, all[name]];
  }));
}

/** What a chunk loads with it, itself too. */
function loadedWith(entry: string, outputs: Metafile["outputs"]): Set<string> {
  const loaded = new Set<string>();
  const visit = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    for (const { path: next, kind } of outputs[path].imports) {
      if (kind === "import-statement") visit(next);
    }
  };
  visit(entry);
  return loaded;
}

/** Takes types of the service and nothing that runs, whatever a file says. */
const typesOnly: Plugin = {
  name: "types-only",
  setup(context) {
    context.onResolve({ filter: /\/src\// }, ({ path, importer }) => ({
      errors: [{ text: `${importer} takes more than types from ${path}` }],
    }));
  },
};

/** Builds the dashboard in memory. */
export async function buildUi(): Promise<Built> {
  const { outputFiles, metafile } = await build({
    entryPoints: { main: `${UI}main.tsx`, style: `${UI}style.css` },
    absWorkingDir: UI,
    outdir: "/assets",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    define: { ICON_NODES: JSON.stringify(await iconNodes()) },
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "silent",
    plugins: [typesOnly],
  });
  const files = outputFiles.map(({ path, contents }) => pack(path, contents));
  const outputs = Object.fromEntries(
    Object.entries(metafile.outputs).map((
      [path, output],
    ) => [`/${path.replace(/^.*?(?=assets\/)/, "")}`, {
      ...output,
      imports: output.imports.map((one) => ({
        ...one,
        path: `/${one.path.replace(/^.*?(?=assets\/)/, "")}`,
      })),
    }]),
  );
  const entryOf = (source: string) =>
    Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === source)?.[0] ?? "";
  const [main, style] = [entryOf("main.tsx"), entryOf("style.css")];
  const icon = named("icon.svg", await Deno.readTextFile(`${UI}icon.svg`));
  const manifest = named(
    "svc.webmanifest",
    (await Deno.readTextFile(`${UI}svc.webmanifest`)).replaceAll("@ICON@", icon.path),
  );
  // What every page needs is asked for with the shell, not one behind the other.
  const atOnce = loadedWith(main, outputs);
  const overview = loadedWith(entryOf("pages/overview.tsx"), outputs);
  const preload = [...atOnce].filter((path) => path !== main)
    .map((path) => `<link rel="modulepreload" href="${path}">`).join("\n");
  const shell = pack(
    "/index.html",
    (await Deno.readTextFile(`${UI}index.html`))
      .replaceAll("@MAIN@", main).replaceAll("@STYLE@", style).replaceAll("@ICON@", icon.path)
      .replaceAll("@MANIFEST@", manifest.path).replace("@PRELOAD@", preload),
  );
  // The chart loads it when it is drawn, which is in the first view.
  const plot = Object.entries(outputs).filter(([path, { inputs }]) =>
    path.endsWith(".js") && Object.keys(inputs).some((input) => input.includes("/uplot/"))
  ).map(([path]) => path);
  const english = loadedWith(entryOf("text/en.ts"), outputs);
  return {
    files: [shell, icon, manifest, ...files],
    firstView: [...new Set(["/index.html", style, ...atOnce, ...overview, ...plot, ...english])],
    locale: [...english].filter((path) => !atOnce.has(path)),
  };
}

/** Writes the one file; whoever reads it meanwhile gets the old one or the new one. */
async function write({ files }: Built): Promise<number> {
  let offset = 0;
  const rows = files.map(({ path, type, hash, gzip }) => {
    const row = { path, type, hash, offset, length: gzip.length };
    offset += gzip.length;
    return row;
  });
  const index = { shell: "/index.html", pages: PAGE_PATHS, files: rows };
  const parts = [
    new TextEncoder().encode(JSON.stringify(index) + "\n"),
    ...files.map((f) => f.gzip),
  ];
  const unfinished = new URL(`${OUTPUT.href}.${Deno.pid}`);
  await Deno.writeFile(
    unfinished,
    new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer()),
  );
  await Deno.rename(unfinished, OUTPUT);
  return offset;
}

function describe({ text, location }: Message): string {
  return location === null ? text : `ui/${location.file}:${location.line}: ${text}`;
}

if (import.meta.main) {
  try {
    const built = await buildUi();
    await write(built);
    const kib = (paths: readonly string[]) =>
      (built.files.filter(({ path }) => paths.includes(path))
        .reduce((sum, { gzip }) => sum + gzip.length, 0) / 1_024).toFixed(1);
    console.error(
      `dashboard: ${built.files.length} files, ${kib(built.files.map(({ path }) => path))} KiB, ` +
        `first view ${kib(built.firstView)} KiB`,
    );
  } catch (error) {
    const messages = (error as { errors?: Message[] }).errors;
    if (messages === undefined) throw error;
    for (const message of messages) console.error(`dashboard: ${describe(message)}`);
    Deno.exitCode = 1;
  } finally {
    await stop();
  }
}
