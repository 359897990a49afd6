/**
 * Builds one executable file of the program: `scripts/build --help`.
 *
 * Both kinds of file are made from the same folder, staged for its target: a bundle of the modules
 * that `main.ts` and the workers reach, the files they read, and their add-ons. `deno compile`
 * embeds it in Deno's compile runtime, which comes from Deno's release site. Where that can't be
 * reached, `self_extract.sh` carries it as an archive with the pinned Deno, which comes from npm.
 *
 * @module
 */

import { createPublicKey } from "node:crypto";
import { resolve } from "node:path/posix";
import { parseArgs } from "node:util";
import { bundle } from "./bundle.ts";
import { makeDeb } from "./deb.ts";
import {
  ADD_ONS,
  BuildError,
  filesBelow,
  type Imports,
  type Program,
  readProgram,
  run,
  type Target,
  TARGETS,
} from "./program.ts";
import { findForeignLicences, readNotices, readPackages } from "./sbom.ts";

/** The checkout. */
const ROOT = resolve(`${import.meta.dirname}/..`);

const KINDS = ["compiled", "self-extracting"] as const;
type Kind = typeof KINDS[number];

/** Where the program has the keys of its releases; none in a checkout. */
const RELEASE_KEYS = "src/update/release_keys.json";

/** Where it has the licences of the packages in it. */
const NOTICES = "licences";

const RELEASE_SITE = "https://dl.deno.land/release";
/** How long the release site may take to answer at all. */
const PROBE_TIMEOUT_MS = 5_000;
/** How long compiling may take; downloading the runtime, some 40 MB, is most of it. */
const COMPILE_TIMEOUT_MS = 300_000;
/** How long a built file may take to tell its version, at its first start on a busy machine. */
const FIRST_START_TIMEOUT_MS = 60_000;
/** The script's text holds its own length; two passes settle it unless a digit is added. */
const OFFSET_PASSES_MAX = 8;
/** What a start writes beside the archive's files: Deno's caches. */
const CACHES_MIB = 16;
const MIB_BYTES = 1_048_576;

/** Who answers for a package; DEBFULLNAME and DEBEMAIL name somebody else. */
const MAINTAINER = { name: "The svc authors", email: "svc@packages.example.org" };

const USAGE = `usage: scripts/build [--target TARGET] [--kind KIND] [--deb] [--release-key FILE]...

Makes dist/bin/svc-TARGET, one executable file.

  --target   ${Object.keys(TARGETS).join(" or ")} (default: this machine)
  --kind     ${KINDS.join(" or ")} (default: compiled, where Deno's
             compile runtime can be had, else self-extracting)
  --deb      also make a Debian package of it
  --release-key
             PEM file of an Ed25519 public key whose releases svc update takes; may be given
             several times (default: none, and svc update apply takes no release)
  --program  folder with main.ts, deno.json and deno.lock (default: this checkout)
  --output   folder for the file (default: dist/bin)
`;

/** Bundles the program into `stage`, by way of `source`, with what is read and loaded beside it. */
async function stageProgram(
  program: Program,
  target: Target,
  keys: readonly string[],
  source: string,
  stage: string,
): Promise<void> {
  await copyFiles(program.directory, [...program.modules, ...program.assets], source);
  if (program.assets.includes(RELEASE_KEYS)) {
    await Deno.writeTextFile(`${source}/${RELEASE_KEYS}`, JSON.stringify(keys));
  }
  await writeConfig(program, program.imports, source);
  if (Object.keys(program.imports).length > 0) await installPackages(program, target, source);
  await bundle({ directory: source, workers: program.workers }, stage);
  await copyFiles(source, [...program.assets, ...await addOnFiles(source)], stage);
  const addOns = Object.entries(program.imports).filter(([name]) => ADD_ONS.includes(name));
  await writeConfig(program, Object.fromEntries(addOns), stage);
  await Deno.mkdir(`${stage}/${NOTICES}`);
  for (const [name, text] of await readNotices(program)) {
    await Deno.writeTextFile(`${stage}/${NOTICES}/${name.replaceAll("/", "+")}`, text);
  }
}

async function copyFiles(from: string, paths: readonly string[], to: string): Promise<void> {
  for (const path of paths) {
    await Deno.mkdir(`${to}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.copyFile(`${from}/${path}`, `${to}/${path}`);
  }
}

async function writeConfig({ unstable }: Program, imports: Imports, to: string): Promise<void> {
  // "manual": Deno resolves packages in node_modules and never asks the registry.
  const config = { nodeModulesDir: "manual", unstable, imports };
  await Deno.writeTextFile(`${to}/deno.json`, JSON.stringify(config));
}

/** The files of installed add-ons: of each, the package for the target lies beside its own. */
async function addOnFiles(source: string): Promise<string[]> {
  const isAddOn = (path: string) =>
    ADD_ONS.some((name) => path.startsWith(`node_modules/${name}/`) || isPartOf(name, path));
  const isPartOf = (name: string, path: string) => path.startsWith(`node_modules/${name}-`);
  return await exists(`${source}/node_modules`)
    ? (await filesBelow(`${source}/`, "node_modules")).filter(isAddOn)
    : [];
}

async function installPackages(program: Program, target: Target, stage: string): Promise<void> {
  const lockPath = `${program.directory}/deno.lock`;
  const lock = JSON.parse(await Deno.readTextFile(lockPath));
  await Deno.copyFile(lockPath, `${stage}/deno.lock`);
  const { os, arch } = TARGETS[target];
  const entries = ["main.ts", ...program.workers];
  // deno-fmt-ignore
  await run(Deno.execPath(), [
    "install", "--quiet", "--prod", "--skip-types", "--node-modules-linker=hoisted",
    "--os", os, "--arch", arch, "--entrypoint", ...entries,
  ], { cwd: stage });
  // Fewer imports than the lock names, so it can't be frozen; but it may only have lost packages.
  const staged = JSON.parse(await Deno.readTextFile(`${stage}/deno.lock`));
  for (const [name, { integrity }] of Object.entries<{ integrity: string }>(staged.npm ?? {})) {
    if (lock.npm?.[name]?.integrity !== integrity) {
      throw new BuildError(`${name} is not as deno.lock has it: run deno install and look at it`);
    }
  }
  await Deno.remove(`${stage}/deno.lock`);
  await prunePackages(stage);
}

/** Removes what never runs: types, sources of what was compiled, add-ons for another C library. */
async function prunePackages(stage: string): Promise<void> {
  await Deno.remove(`${stage}/node_modules/.deno`, { recursive: true });
  for (const path of await filesBelow(`${stage}/`, "node_modules")) {
    if (/\.([cm]?ts|tsx|map)$/.test(path)) await Deno.remove(`${stage}/${path}`);
  }
  for (const path of await filesBelow(`${stage}/`, "node_modules")) {
    if (!/^node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(path)) continue;
    const { libc } = JSON.parse(await Deno.readTextFile(`${stage}/${path}`));
    if (libc !== undefined && ![libc].flat().includes("glibc")) {
      await Deno.remove(`${stage}/${path.replace(/\/package\.json$/, "")}`, { recursive: true });
    }
  }
}

/** The flags of `scripts/permissions.sh` for a command. */
async function permissionsOf(command: string): Promise<string[]> {
  const script = '. "$0" && permissions_of "$1" && printf %s "$permissions"';
  const flags = await run("sh", ["-c", script, scriptPath("permissions.sh"), command]);
  return flags.split(" ").filter((flag) => flag !== "");
}

function scriptPath(name: string): string {
  return `${import.meta.dirname}/${name}`;
}

/** Where Deno keeps the compile runtime of a target once it has been downloaded. */
async function cachedRuntimePath(target: Target): Promise<string> {
  const { denoDir } = JSON.parse(await run(Deno.execPath(), ["info", "--json"]));
  return `${denoDir}/dl/release/v${Deno.version.deno}/denort-${target}.zip`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Why the compile runtime can't be had, or null if it can. Asking first spares Deno's own retries. */
async function whyNoRuntime(target: Target): Promise<string | null> {
  if (Deno.env.get("DENORT_BIN") !== undefined) return null;
  if (await exists(await cachedRuntimePath(target))) return null;
  const url = `${RELEASE_SITE}/v${Deno.version.deno}/denort-${target}.zip`;
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const { ok, status } = await fetch(url, { method: "HEAD", signal });
    return ok ? null : `${url} answers ${status}`;
  } catch (error) {
    const { message, cause } = error as Error;
    return `${url} can't be reached: ${cause instanceof Error ? cause.message : message}`;
  }
}

/** What a file with a URL is called in a bundle. */
function builtName(path: string): string {
  return path.replace(/\.ts$/, ".js");
}

/** Compiles into `file`, or returns why that can't be done here. */
async function compile(
  program: Program,
  target: Target,
  work: string,
  stage: string,
  file: string,
): Promise<string | null> {
  const missing = await whyNoRuntime(target);
  if (missing !== null) return missing;
  const runtimePath = await cachedRuntimePath(target);
  const wasCached = await exists(runtimePath);
  const included = [...program.workers.map(builtName), ...program.assets, NOTICES];
  const includes = included.flatMap((path) => ["--include", path]);
  // Paths are relative to the stage: what is embedded then does not tell where it was built.
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    // deno-fmt-ignore
    args: [
      "compile", "--quiet", "--no-check", "--no-lock", "--no-prompt", "--app-name", "svc",
      "--target", target, "--output", file, ...includes, ...await permissionsOf("compiled"), builtName("main.ts"),
    ],
    cwd: stage,
    stdin: "null",
    signal: AbortSignal.timeout(COMPILE_TIMEOUT_MS),
  }).output();
  const trouble = success ? await whyNoStart(file, target, work) : new TextDecoder().decode(stderr);
  // A download that was cut off must not pass for the runtime the next time.
  if (trouble !== null && !wasCached && await exists(runtimePath)) await Deno.remove(runtimePath);
  return trouble?.trim() ?? null;
}

/** Why a file built for this machine does not start, or null if it does or is for another one. */
async function whyNoStart(file: string, target: Target, work: string): Promise<string | null> {
  if (target !== Deno.build.target) return null;
  const { success, stderr } = await new Deno.Command(file, {
    args: ["version"],
    clearEnv: true,
    env: { SVC_CACHE_DIR: `${work}/cache` },
    stdin: "null",
    stdout: "null",
    signal: AbortSignal.timeout(FIRST_START_TIMEOUT_MS),
  }).output();
  if (success) return null;
  return `the built file does not start: ${new TextDecoder().decode(stderr)}`;
}

/**
 * The pinned Deno of the target: the one that runs this, or npm's of the other architecture. What is
 * carried off into a file is held against its pinned SHA-256 each time.
 */
async function denoFor(target: Target): Promise<string> {
  const isOwn = target === Deno.build.target;
  const file = isOwn ? Deno.execPath() : `${ROOT}/.deno/deno-${target}-${Deno.version.deno}`;
  const script = '. "$0" && { [ -e "$2" ] || fetch_deno "$1" "$2"; } && ' +
    'has_pinned_sum "$1" "$2" || fail "$2 is not the pinned Deno: remove it"';
  const { success } = await new Deno.Command("sh", {
    args: ["-c", script, scriptPath("fetch_deno.sh"), TARGETS[target].platform, file],
    stdin: "null",
  }).spawn().status;
  if (!success) throw new BuildError(`no Deno for ${target}: see the message above`);
  return file;
}

async function sha256(path: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", await Deno.readFile(path));
  return new Uint8Array(digest).toHex();
}

/** Packs `work`'s root folder, the staged program in it, behind the script that extracts them. */
async function packSelfExtracting(
  program: Program,
  target: Target,
  work: string,
  file: string,
): Promise<void> {
  const root = `${work}/root`;
  await Deno.copyFile(await denoFor(target), `${root}/deno`);
  await Deno.chmod(`${root}/deno`, 0o755);
  const files = await filesBelow(`${root}/`, "");
  const sums: string[] = [];
  let lengthBytes = 0;
  for (const path of files) {
    sums.push(`${await sha256(`${root}/${path}`)}  ${path}\n`);
    lengthBytes += (await Deno.stat(`${root}/${path}`)).size;
  }
  await Deno.writeTextFile(`${root}/manifest`, sums.join(""));
  const archive = `${work}/root.tar`;
  // Nothing of the moment or the builder: the same content gives the same hash.
  // deno-fmt-ignore
  await run("tar", [
    "--create", "--file", archive, "--directory", root, "--sort=name", "--mtime=@0",
    "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", "deno", "manifest", "program",
  ]);
  await run("gzip", ["-n", archive]);
  const script = fillScript(await Deno.readTextFile(scriptPath("self_extract.sh")), {
    "@VERSION@": program.version,
    "@TARGET@": target,
    "@SHA256@": await sha256(`${archive}.gz`),
    "@FILES@": String(files.length),
    "@MIB@": String(Math.ceil(lengthBytes / MIB_BYTES) + CACHES_MIB),
    "@RUN_PERMISSIONS@": (await permissionsOf("run")).join(" "),
    "@VRRP_PERMISSIONS@": (await permissionsOf("vrrp")).join(" "),
    "# @PERMISSIONS@": (await Deno.readTextFile(scriptPath("permissions.sh"))).trim(),
  });
  await Deno.writeTextFile(file, script, { mode: 0o755 });
  await Deno.writeFile(file, await Deno.readFile(`${archive}.gz`), { append: true });
}

/** Puts `values` in their places, and where the script ends, which depends on its own digits. */
function fillScript(template: string, values: Readonly<Record<string, string>>): string {
  let script = template;
  for (const [place, value] of Object.entries(values)) {
    script = script.replaceAll(place, () => value);
  }
  let offset = 0;
  for (let pass = 0; pass < OFFSET_PASSES_MAX; pass++) {
    const filled = script.replaceAll("@OFFSET@", String(offset));
    const next = new TextEncoder().encode(filled).length + 1;
    if (next === offset) return filled;
    offset = next;
  }
  throw new BuildError("self_extract.sh: its length does not settle");
}

interface BuildOptions {
  readonly program: Program;
  readonly target: Target;
  readonly wanted: Kind | undefined;
  /** Raw Ed25519 public keys in base64. */
  readonly keys: readonly string[];
  readonly output: string;
}

/** Builds the file; returns its path. */
async function build({ program, target, wanted, keys, output }: BuildOptions): Promise<string> {
  const work = await Deno.makeTempDir({ prefix: "svc-build-" });
  // Built under another name: whoever starts the file meanwhile gets the old one or the new one.
  const unfinished = `${output}/.svc-${target}.${Deno.pid}`;
  try {
    const stage = `${work}/root/program`;
    await Deno.mkdir(stage, { recursive: true });
    await stageProgram(program, target, keys, `${work}/source`, stage);
    await Deno.mkdir(output, { recursive: true });
    let kind: Kind = "self-extracting";
    if (wanted !== "self-extracting") {
      const trouble = await compile(program, target, work, stage, unfinished);
      if (trouble === null) kind = "compiled";
      else if (wanted === "compiled") throw new BuildError(`cannot compile: ${trouble}`);
      else console.error(`not compiled: ${trouble}`);
    }
    if (kind === "self-extracting") {
      await packSelfExtracting(program, target, work, unfinished);
      const trouble = await whyNoStart(unfinished, target, work);
      if (trouble !== null) throw new BuildError(trouble);
    }
    const file = `${output}/svc-${target}`;
    await Deno.rename(unfinished, file);
    const { size } = await Deno.stat(file);
    const content = kind === "compiled" ? "Deno's compile runtime" : `Deno ${Deno.version.deno}`;
    console.log(
      `${file}: ${kind}, carries ${content} and svc ${program.version}, ` +
        `${(size / MIB_BYTES).toFixed(1)} MiB`,
    );
    return file;
  } finally {
    await Deno.remove(work, { recursive: true });
    if (await exists(unfinished)) await Deno.remove(unfinished);
  }
}

/** Makes a Debian package of a built file. */
async function buildDeb(program: Program, target: Target, file: string, output: string) {
  const packages = await readPackages(program);
  const foreign = findForeignLicences(packages);
  if (foreign.length > 0) throw new BuildError(`can't be given on: ${foreign.join(", ")}`);
  const work = await Deno.makeTempDir({ prefix: "svc-deb-" });
  const { name, email } = MAINTAINER;
  try {
    const deb = await makeDeb({
      root: ROOT,
      ...{ file, packages, work, output },
      version: program.version,
      architecture: TARGETS[target].debian,
      maintainer: `${Deno.env.get("DEBFULLNAME") ?? name} <${Deno.env.get("DEBEMAIL") ?? email}>`,
    });
    console.log(`${deb}: Debian package`);
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/** Reads an Ed25519 public key; returns its 32 bytes in base64. */
async function readReleaseKey(file: string): Promise<string> {
  try {
    const { x } = createPublicKey(await Deno.readTextFile(file)).export({ format: "jwk" });
    if (x !== undefined) return Uint8Array.fromBase64(x, { alphabet: "base64url" }).toBase64();
  } catch (error) {
    throw new BuildError(`--release-key: ${file}: ${(error as Error).message}`);
  }
  throw new BuildError(`--release-key: ${file} holds no Ed25519 public key: make it with openssl`);
}

function isOneOf<T extends string>(choices: readonly T[], value: string): value is T {
  return (choices as readonly string[]).includes(value);
}

async function main(args: string[]): Promise<number> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args,
    options: {
      ...{ target: text, kind: text, program: text, output: text, help: { type: "boolean" } },
      deb: { type: "boolean", default: false },
      "release-key": { type: "string", multiple: true, default: [] },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const target = values.target ?? Deno.build.target;
  const targets = Object.keys(TARGETS) as Target[];
  if (!isOneOf(targets, target)) {
    throw new BuildError(`no build for ${target}: --target takes ${targets.join(" or ")}`);
  }
  const { kind } = values;
  if (kind !== undefined && !isOneOf(KINDS, kind)) {
    throw new BuildError(`no kind ${kind}: --kind takes ${KINDS.join(" or ")}`);
  }
  const program = await readProgram(await Deno.realPath(values.program ?? ROOT));
  const output = resolve(values.output ?? `${ROOT}/dist/bin`);
  const keys = await Promise.all(values["release-key"].map(readReleaseKey));
  const file = await build({ program, target, wanted: kind, keys, output });
  if (values.deb) await buildDeb(program, target, file, output);
  return 0;
}

try {
  Deno.exitCode = await main(Deno.args);
} catch (error) {
  const expected = error instanceof BuildError ||
    (error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_"));
  if (!expected) throw error;
  console.error(`build: ${(error as Error).message}`);
  Deno.exitCode = error instanceof BuildError ? 1 : 2;
}
