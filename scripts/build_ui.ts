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
import { PAGE_PATHS, type PagePath } from "../ui/page_paths.ts";
import { LANGUAGES } from "../ui/languages.ts";

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
  /** Of what the shell has inside, SHA-256 in base64. */
  readonly digests: { readonly script: string; readonly style: string };
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

type Shape = readonly [string, Readonly<Record<string, string>>];

/** The icons that are used, each as one path: a page has hundreds of them, and nodes cost time. */
async function iconPaths(): Promise<Record<string, string>> {
  const all: Record<string, readonly Shape[]> = JSON.parse(await Deno.readTextFile(ICONS));
  return Object.fromEntries(ICON_NAMES.map((name) => {
    if (!Object.hasOwn(all, name)) throw new Error(`${name}: lucide has no such icon`);
    return [name, all[name].map(pathOf).join("")];
  }));
}

/** The shape as data of a path, as SVG 2 §10 defines each. */
function pathOf([tag, attributes]: Shape): string {
  const [x, y, width, height, rx, cx, cy, r, x1, y1, x2, y2] = [
    ...["x", "y", "width", "height", "rx", "cx", "cy", "r", "x1", "y1", "x2", "y2"],
  ].map((name) => Number(attributes[name] ?? 0));
  const arc = (to: string) => `a${rx} ${rx} 0 0 1 ${to}`;
  switch (tag) {
    case "path":
      return attributes.d.replace(/^m/, "M0 0m"); // Not from where the last shape ended.
    case "circle": {
      const dot = attributes.fill === undefined ? "" : `M${cx} ${cy}h.01`; // Only dots are filled.
      return `M${cx - r} ${cy}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z${dot}`;
    }
    case "line":
      return `M${x1} ${y1}L${x2} ${y2}`;
    case "rect":
      return `M${x + rx} ${y}h${width - 2 * rx}${arc(`${rx} ${rx}`)}v${height - 2 * rx}` +
        `${arc(`${-rx} ${rx}`)}h${2 * rx - width}${arc(`${-rx} ${-rx}`)}v${2 * rx - height}` +
        `${arc(`${rx} ${-rx}`)}z`;
  }
  throw new Error(`${tag}: a shape that icons had none of so far`);
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

/** What terminal and page have in common: it asks nobody and loads nothing. */
const SHARED = /\/src\/client\/(remedy|far_clock)\.ts$/;

/**
 * Pictures of style sheets: `url("icon:ban/blocked.svg")` is the icon in that colour of the light theme,
 * `url("icon:ban/blocked-dark.svg")` in that of the dark one.
 */
function iconsOf(paths: Readonly<Record<string, string>>): Plugin {
  return {
    name: "icons",
    setup(context) {
      context.onResolve({ filter: /^icon:/ }, ({ path }) => ({ path, namespace: "icon" }));
      context.onLoad({ filter: /.*/, namespace: "icon" }, async ({ path }) => {
        const [, icon, token, dark] = /^icon:([\w-]+)\/(\w+)(-dark)?\.svg$/.exec(path) ?? [];
        const tokens = await Deno.readTextFile(`${UI}styles/tokens.css`);
        const [light, other] = tokens.matchAll(new RegExp(`--${token}: (#\\w+);`, "g"));
        const colour = (dark === undefined ? light : other)?.[1];
        if (paths[icon] === undefined || colour === undefined) {
          return { errors: [{ text: `${path}: no such icon, or no such colour in tokens.css` }] };
        }
        return { contents: svgOf(paths[icon], colour), loader: "dataurl" };
      });
    },
  };
}

/** An icon as a file; the page's own are drawn by `.icon`. */
function svgOf(path: string, colour: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" ` +
    `stroke="${colour}" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">` +
    `<path d="${path}"/></svg>`;
}

/** Takes types of the service and nothing that runs but what is shared, whatever a file says. */
const typesOnly: Plugin = {
  name: "types-only",
  setup(context) {
    context.onResolve({ filter: /\/src\// }, ({ path, importer }) =>
      SHARED.test(path) ? null : {
        errors: [{ text: `${importer} takes more than types from ${path}` }],
      });
  },
};

/**
 * Has every page load `main.tsx`, which is there already: so what both use comes with that, in one
 * file, where else each combination of pages that share a module would have a file of its own.
 */
const pagesTakeMain: Plugin = {
  name: "pages-take-main",
  setup(context) {
    context.onLoad({ filter: /\/ui\/(pages\/\w+\.tsx|text\/\w\w\.ts)$/ }, async ({ path }) => ({
      contents: `${await Deno.readTextFile(path)}\nimport "${UI}main.tsx";`,
      loader: path.endsWith("x") ? "tsx" : "ts",
    }));
  },
};

const COMMON = {
  absWorkingDir: UI,
  bundle: true,
  minify: true,
  write: false,
  target: "es2022",
  legalComments: "none",
  logLevel: "silent",
} as const;

/** What lies inside the shell: text that no policy but its own digest lets run. */
interface Inline {
  readonly text: string;
  readonly sha256: string;
}

async function inline(source: string, define: Readonly<Record<string, string>>): Promise<Inline> {
  const { outputFiles: [{ text }] } = await build({
    ...COMMON,
    entryPoints: [UI + source],
    define,
    format: "iife",
  });
  if (/<\/(script|style)/i.test(text)) throw new Error(`${source}: it would end its element`);
  return { text, sha256: createHash("sha256").update(text).digest("base64") };
}

/** The source of each page, as `pages.ts` loads it. */
async function pageSources(): Promise<Map<PagePath, string>> {
  const text = await Deno.readTextFile(`${UI}pages.ts`);
  const loads = text.matchAll(/"(\/[^"]*)": \{[^}]*import\("\.\/(pages\/\w+\.tsx)"\)/g);
  const found = new Map(Array.from(loads, ([, page, source]) => [page, source]));
  return new Map(PAGE_PATHS.map((page) => {
    const source = found.get(page);
    if (source === undefined) throw new Error(`pages.ts: ${page}: no import of its source there`);
    return [page, source];
  }));
}

/** Builds the dashboard in memory. */
export async function buildUi(): Promise<Built> {
  const icons = await iconPaths();
  const { outputFiles, metafile } = await build({
    ...COMMON,
    entryPoints: { main: `${UI}main.tsx`, style: `${UI}style.css` },
    outdir: "/assets",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    define: { ICON_PATHS: JSON.stringify(JSON.stringify(icons)) },
    splitting: true,
    metafile: true,
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [typesOnly, pagesTakeMain, iconsOf(icons)],
  });
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
  const holderOf = (source: string) =>
    Object.entries(outputs).find(([, { inputs }]) => Object.hasOwn(inputs, source))?.[0] ?? "";
  // The entry itself does no more than load the file that has it.
  const main = holderOf("main.tsx");
  const styles = entryOf("style.css");
  const files = outputFiles.map(({ path, contents }) => pack(path, contents))
    .filter(({ path }) => path !== entryOf("main.tsx"));
  const icon = named("icon.svg", await Deno.readTextFile(`${UI}icon.svg`));
  const manifest = named(
    "svc.webmanifest",
    (await Deno.readTextFile(`${UI}svc.webmanifest`)).replaceAll("@ICON@", icon.path),
  );
  const atOnce = loadedWith(main, outputs);
  const behind = (source: string) =>
    [...loadedWith(entryOf(source), outputs)].filter((path) => path !== main);
  const pages = Object.fromEntries(
    Array.from(await pageSources(), ([page, source]) => [page, behind(source)]),
  );
  const languages = Object.fromEntries(
    Object.keys(LANGUAGES).map((language) => [language, behind(`text/${language}.ts`)]),
  );
  const script = await inline("first.ts", {
    FILES: JSON.stringify(JSON.stringify({ languages, pages })),
  });
  const style = await inline("first.css", {});
  const parts: Readonly<Record<string, string>> = {
    SCRIPT: `<script>${script.text}</script>`,
    STYLE: `<style>${style.text}</style>`,
    MAIN: main,
    STYLES: styles,
    ICON: icon.path,
    MANIFEST: manifest.path,
    SHIELD: icons.shield,
  };
  const html = await Deno.readTextFile(`${UI}index.html`);
  const shell = pack("/index.html", html.replace(/@([A-Z]+)@/g, (_, name) => parts[name]));
  const plot = holderOf(Object.keys(metafile.inputs).find((input) => input.includes("/uplot/"))!);
  const firstView = ["/index.html", styles, plot, ...pages["/"], ...languages.en, ...atOnce];
  return {
    files: [shell, icon, manifest, ...files],
    digests: { script: script.sha256, style: style.sha256 },
    firstView: [...new Set(firstView)],
    locale: languages.en,
  };
}

/** Writes the one file; whoever reads it meanwhile gets the old one or the new one. */
async function write({ files, digests }: Built): Promise<number> {
  let offset = 0;
  const rows = files.map(({ path, type, hash, gzip }) => {
    const row = { path, type, hash, offset, length: gzip.length };
    offset += gzip.length;
    return row;
  });
  const index = { shell: "/index.html", digests, pages: PAGE_PATHS, files: rows };
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
