/**
 * What the program consists of, for those scripts that build it.
 *
 * @module
 */

import { dirname, join } from "node:path/posix";

/** Deno's names of the targets, with npm's of the same platform. */
export const TARGETS = {
  "x86_64-unknown-linux-gnu": {
    platform: "linux-x64-glibc",
    os: "linux",
    arch: "x64",
    debian: "amd64",
  },
  "aarch64-unknown-linux-gnu": {
    platform: "linux-arm64-glibc",
    os: "linux",
    arch: "arm64",
    debian: "arm64",
  },
} as const;
export type Target = keyof typeof TARGETS;

/** Packages with parts in machine code: in a build they stay folders of their own. */
export const ADD_ONS: readonly string[] = ["@node-rs/argon2"];

/** What stops a build and can be mended; printed as one line. */
export class BuildError extends Error {
  override readonly name = "BuildError";
}

/** Packages by the names they are imported by, as deno.json has them. */
export type Imports = Readonly<Record<string, string>>;

export interface Program {
  readonly directory: string;
  readonly modules: readonly string[];
  readonly workers: readonly string[];
  readonly assets: readonly string[];
  /** The part of deno.json's `imports` that the modules use. */
  readonly imports: Imports;
  /** The part that its dashboard was made of, which comes as one file. */
  readonly bundled: Imports;
  readonly unstable: readonly string[];
  readonly version: string;
}

/** Where the dashboard begins, and what `build_ui.ts` takes that nothing there imports: the icons. */
const UI_ENTRY = "ui/main.tsx";
const UI_DATA: readonly string[] = ["lucide-static"];

interface ModuleGraph {
  readonly modules: readonly {
    /** Where a module lies that is a file; npm packages have none. */
    readonly local?: string;
    readonly error?: string;
    readonly dependencies?: readonly { readonly specifier: string }[];
  }[];
}

export async function run(
  program: string,
  args: readonly string[],
  options: Deno.CommandOptions = {},
): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    ...options,
  }).output();
  if (!success) {
    throw new BuildError(
      `${program} ${args[0]} failed: ${new TextDecoder().decode(stderr).trim()}`,
    );
  }
  return new TextDecoder().decode(stdout);
}

/** The files below `directory` as sorted paths relative to `root`, which ends in a slash. */
export async function filesBelow(root: string, directory: string): Promise<string[]> {
  const files: string[] = [];
  const pending = [directory];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for await (const entry of Deno.readDir(root + next)) {
      const path = next === "" ? entry.name : `${next}/${entry.name}`;
      if (entry.isDirectory) pending.push(path);
      else files.push(path);
    }
  }
  return files.sort();
}

/** A file of the program, and what it imports as it is written there. */
interface Module {
  readonly path: string;
  readonly specifiers: readonly string[];
}

/** Finds the files that some of them lead to, those included. */
async function reach(directory: string, entries: readonly string[]): Promise<Module[]> {
  const found = new Map<string, Module>();
  for (const entry of entries) {
    const graph: ModuleGraph = JSON.parse(
      await run(Deno.execPath(), ["info", "--json", `${directory}/${entry}`]),
    );
    for (const { local, error, dependencies = [] } of graph.modules) {
      if (error !== undefined) throw new BuildError(`${entry}: ${error}`);
      if (local?.startsWith(`${directory}/`) !== true) continue;
      const path = local.slice(directory.length + 1);
      found.set(path, { path, specifiers: dependencies.map(({ specifier }) => specifier) });
    }
  }
  return [...found.values()];
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isFile;
  } catch {
    return false;
  }
}

/** The modules that some sources load by their URLs. */
async function namedByUrl(directory: string, paths: readonly string[]): Promise<string[]> {
  const isSource = (path: string) => path.endsWith(".ts");
  const named = await Promise.all(
    paths.filter(isSource).map(async (path) => {
      const text = await Deno.readTextFile(`${directory}/${path}`);
      const urls = text.matchAll(/new URL\("([^"]+\.ts)", import\.meta\.url\)/g);
      return [...urls].map(([, url]) => join(dirname(path), url));
    }),
  );
  return named.flat();
}

/** Finds what the program needs at run time, starting from `main.ts`, workers and small programs. */
export async function readProgram(directory: string): Promise<Program> {
  const config = JSON.parse(await Deno.readTextFile(`${directory}/deno.json`));
  const sources = await filesBelow(`${directory}/`, "src");
  const begun = sources.filter((path) => /_(worker|main)\.ts$/.test(path));
  const named = await namedByUrl(directory, sources.filter((path) => !path.endsWith("_test.ts")));
  const workers = [...new Set([...begun, ...named])].sort();
  const reached = await reach(directory, ["main.ts", ...workers]);
  const modules = reached.map(({ path }) => path);
  const specifiersOf = (found: readonly Module[]) => found.flatMap(({ specifiers }) => specifiers);
  const importsOf = (specifiers: readonly string[]): Imports =>
    Object.fromEntries(
      Object.entries<string>(config.imports ?? {}).filter(([name]) =>
        specifiers.some((specifier) => specifier === name || specifier.startsWith(`${name}/`))
      ),
    );
  let bundled: Imports = {};
  if (await isFile(`${directory}/${UI_ENTRY}`)) {
    // Of the service itself it has types alone.
    const ui = (await reach(directory, [UI_ENTRY])).filter(({ path }) => path.startsWith("ui/"));
    bundled = importsOf([...specifiersOf(ui), ...UI_DATA]);
  }
  return {
    directory,
    modules: modules.sort(),
    workers,
    // Whatever lies among the sources and is no source is read by one of them.
    assets: sources.filter((path) => !/\.tsx?$|(^|\/)testdata\//.test(path)),
    imports: importsOf(specifiersOf(reached)),
    bundled,
    unstable: config.unstable ?? [],
    version: config.version,
  };
}
