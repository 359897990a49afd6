/**
 * What the program consists of, for those scripts that build it.
 *
 * @module
 */

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

/** What stops a build and can be mended; printed as one line. */
export class BuildError extends Error {
  override readonly name = "BuildError";
}

export interface Program {
  readonly directory: string;
  readonly modules: readonly string[];
  readonly workers: readonly string[];
  readonly assets: readonly string[];
  /** The part of deno.json's `imports` that the modules use. */
  readonly imports: Readonly<Record<string, string>>;
  readonly unstable: readonly string[];
  readonly version: string;
}

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

/** Finds what the program needs at run time, starting from `main.ts`, workers and small programs. */
export async function readProgram(directory: string): Promise<Program> {
  const config = JSON.parse(await Deno.readTextFile(`${directory}/deno.json`));
  const sources = await filesBelow(`${directory}/`, "src");
  const workers = sources.filter((path) => /_(worker|main)\.ts$/.test(path));
  const modules = new Set<string>();
  const specifiers = new Set<string>();
  for (const entry of ["main.ts", ...workers]) {
    const graph: ModuleGraph = JSON.parse(
      await run(Deno.execPath(), ["info", "--json", `${directory}/${entry}`]),
    );
    for (const module of graph.modules) {
      if (module.error !== undefined) throw new BuildError(`${entry}: ${module.error}`);
      const { local } = module;
      if (local?.startsWith(`${directory}/`)) modules.add(local.slice(directory.length + 1));
      for (const { specifier } of module.dependencies ?? []) specifiers.add(specifier);
    }
  }
  const used = Object.entries<string>(config.imports ?? {}).filter(([name]) =>
    [...specifiers].some((specifier) => specifier === name || specifier.startsWith(`${name}/`))
  );
  return {
    directory,
    modules: [...modules].sort(),
    workers,
    // Whatever lies among the sources and is no source is read by one of them.
    assets: sources.filter((path) => !/\.tsx?$|(^|\/)testdata\//.test(path)),
    imports: Object.fromEntries(used),
    unstable: config.unstable ?? [],
    version: config.version,
  };
}
