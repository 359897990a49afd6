/**
 * What a build is made of, in the form of CycloneDX 1.5: every npm package of `deno.lock`, with its
 * licence as the package itself names it, and Deno. Nothing of the moment or the machine is in it.
 *
 * @module
 */

import { ADD_ONS, type Imports, type Program, run } from "./program.ts";

/** Licences whose terms a program under MIT can carry, with their texts beside it. */
export const CARRIED_LICENCES: readonly string[] = [
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "CC0-1.0",
  "ISC",
  "MIT",
  "Unlicense",
];

/** Tools of the tests, which nobody is given: their licences bind what is done to them alone. */
const TOOLS: readonly string[] = ["axe-core"];

interface LockedPackage {
  readonly integrity: string;
  readonly dependencies?: readonly string[];
  readonly optionalDependencies?: readonly string[];
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

export interface Package {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly licence: string;
  readonly integrity: string;
  /** Whether the built file carries it. */
  readonly isShipped: boolean;
  /** As `name@version`. */
  readonly dependencies: readonly string[];
}

/** What a program was made of. */
export type Parts = Pick<Program, "directory" | "imports" | "bundled">;

/** `@scope/name@1.2.3_peer@4` is a name, a version, and what peers it was installed beside. */
function split(key: string): { name: string; version: string } {
  const [, name, version] = /^(@?[^@]+)@([^_]+)/.exec(key) ?? [];
  if (name === undefined) throw new Error(`deno.lock: ${key} is no package`);
  return { name, version };
}

/**
 * Reads the packages of a checkout.
 *
 * @throws {Error} For one whose licence nobody names.
 */
export async function readPackages({ directory, imports, bundled }: Parts): Promise<Package[]> {
  await install(directory);
  const lock = await Lock.read(directory);
  const shipped = new Set([...lock.closure(imports), ...lock.closure(bundled)]);
  const packages = lock.keys.map(async (key): Promise<Package> => {
    const { name, version } = split(key);
    // One for another machine is not installed here, and is of the package that asks for it.
    const owner = lock.keys.find((one) =>
      lock.locked[one].optionalDependencies?.includes(name) === true
    );
    const licence = await licenceOf(directory, key) ??
      (owner === undefined ? null : await licenceOf(directory, owner));
    if (licence === null) {
      throw new Error(`${key} names no licence: look at it, and do without it if there is none`);
    }
    const dependencies = lock.dependenciesOf(key).map((one) => nameOf(split(one)));
    const { integrity } = lock.locked[key];
    return { name, version, licence, integrity, isShipped: shipped.has(key), dependencies };
  });
  return (await Promise.all(packages)).sort((a, b) => nameOf(a) < nameOf(b) ? -1 : 1);
}

/**
 * The texts of the licences of what a program was made of, by name and version. Its packages are
 * part of its files by then, without a folder of their own to have them in.
 *
 * @throws {Error} For a package that has none.
 */
export async function readNotices(
  { directory, imports, bundled }: Parts,
): Promise<Map<string, string>> {
  await install(directory);
  const notices = new Map<string, string>();
  const inFiles = Object.entries({ ...imports, ...bundled }).filter(([name]) =>
    !ADD_ONS.includes(name)
  );
  for (const key of (await Lock.read(directory)).closure(Object.fromEntries(inFiles))) {
    const folder = folderOf(directory, key);
    const [file] = [...Deno.readDirSync(folder)].filter(({ name }) => /^licen[cs]e\b/i.test(name));
    if (file === undefined) throw new Error(`${key} comes without the text of its licence`);
    notices.set(nameOf(split(key)), await Deno.readTextFile(`${folder}/${file.name}`));
  }
  return notices;
}

/** Each package says of itself what its licence is, whether anything here has used it or not. */
async function install(directory: string): Promise<void> {
  await run(Deno.execPath(), ["install", "--frozen", "--quiet"], { cwd: directory });
}

/** `deno.lock`, whose keys name packages as they were installed. */
class Lock {
  private constructor(
    readonly specifiers: Readonly<Record<string, string>>,
    readonly locked: Readonly<Record<string, LockedPackage>>,
  ) {}

  static async read(directory: string): Promise<Lock> {
    const { specifiers, npm } = JSON.parse(await Deno.readTextFile(`${directory}/deno.lock`));
    return new Lock(specifiers, npm ?? {});
  }

  get keys(): string[] {
    return Object.keys(this.locked);
  }

  dependenciesOf(key: string): string[] {
    const { dependencies = [], optionalDependencies = [] } = this.locked[key];
    return [...dependencies, ...optionalDependencies].map((dependency) => {
      const found = this.#keyOf(dependency);
      if (found === undefined) throw new Error(`deno.lock: ${key} needs ${dependency}`);
      return found;
    });
  }

  /** The packages of some imports, with all that they need on Linux. */
  closure(imports: Imports): Set<string> {
    const found = new Set<string>();
    const pending = Object.values(imports).map((specifier) => {
      const version = this.specifiers[specifier];
      const key = this.#keyOf(`${split(specifier.replace(/^npm:/, "")).name}@${version}`);
      if (key === undefined) throw new Error(`deno.lock: does not have ${specifier}`);
      return key;
    });
    for (let key = pending.pop(); key !== undefined; key = pending.pop()) {
      if (found.has(key)) continue;
      found.add(key);
      pending.push(...this.dependenciesOf(key).filter((one) => runsOnLinux(this.locked[one])));
    }
    return found;
  }

  #keyOf(dependency: string): string | undefined {
    return this.keys.find((key) => key === dependency) ??
      this.keys.find((key) => key.startsWith(`${dependency}@`) || key.startsWith(`${dependency}_`));
  }
}

function nameOf({ name, version }: Pick<Package, "name" | "version">): string {
  return `${name}@${version}`;
}

function runsOnLinux({ os, cpu }: LockedPackage): boolean {
  const isOs = os === undefined || os.includes("linux");
  return isOs && (cpu === undefined || cpu.includes("x64") || cpu.includes("arm64"));
}

/** Where an installed package is. */
function folderOf(directory: string, key: string): string {
  const { name, version } = split(key);
  const place = `${name.replaceAll("/", "+")}@${version}`;
  return `${directory}/node_modules/.deno/${place}/node_modules/${name}`;
}

/** What an installed package says; `null`: it is not installed, or says nothing. */
async function licenceOf(directory: string, key: string): Promise<string | null> {
  const file = `${folderOf(directory, key)}/package.json`;
  try {
    const { license } = JSON.parse(await Deno.readTextFile(file));
    return typeof license === "string" ? license : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Packages that a program under MIT can't carry, each with its licence. */
export function findForeignLicences(packages: readonly Package[]): string[] {
  // "A OR B" may be taken as either; whatever else an expression says has to be looked at.
  const isCarried = (licence: string) =>
    licence.replace(/^\((.*)\)$/, "$1").split(" OR ").some((one) => CARRIED_LICENCES.includes(one));
  const isTool = ({ name, isShipped }: Package) => !isShipped && TOOLS.includes(name);
  return packages.filter((one) => !isTool(one) && !isCarried(one.licence))
    .map((one) => `${nameOf(one)}: ${one.licence}`);
}

function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** A Deno that a build carries. */
export interface CarriedDeno {
  /** npm's name of the platform. */
  readonly platform: string;
  readonly version: string;
  readonly sha256: string;
}

/** The document as JSON. */
export function formatSbom(
  version: string,
  packages: readonly Package[],
  denos: readonly CarriedDeno[],
): string {
  const own = { type: "application", "bom-ref": "svc", name: "svc", version };
  const hex = (integrity: string) =>
    Uint8Array.fromBase64(integrity.replace(/^sha512-/, "")).toHex();
  const licence = (expression: string) =>
    /^[\w.+-]+$/.test(expression) ? { license: { id: expression } } : { expression };
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { component: { ...own, licenses: [licence("MIT")] } },
    components: [
      ...denos.map(({ platform, version, sha256 }) => ({
        type: "platform",
        "bom-ref": purl(`@deno/${platform}`, version),
        name: `@deno/${platform}`,
        version,
        purl: purl(`@deno/${platform}`, version),
        hashes: [{ alg: "SHA-256", content: sha256 }],
        licenses: [licence("MIT")],
        scope: "required",
      })),
      ...packages.map((one) => ({
        type: "library",
        "bom-ref": purl(one.name, one.version),
        name: one.name,
        version: one.version,
        purl: purl(one.name, one.version),
        hashes: [{ alg: "SHA-512", content: hex(one.integrity) }],
        licenses: [licence(one.licence)],
        scope: one.isShipped ? "required" : "excluded",
      })),
    ],
    dependencies: packages.map((one) => ({
      ref: purl(one.name, one.version),
      dependsOn: one.dependencies.map((dependency) => {
        const { name, version } = split(dependency);
        return purl(name, version);
      }).sort(),
    })),
  };
  return JSON.stringify(document, null, 2) + "\n";
}
