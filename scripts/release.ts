/**
 * Makes a release: `scripts/release --help`. Everything is built twice, in different folders, and has
 * to come out the same byte for byte: whoever wants to know what a file was made of builds it again.
 *
 * @module
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { resolve } from "node:path/posix";
import { parseArgs } from "node:util";
import { signedText } from "../src/update/release.ts";
import { VERSION } from "../src/version.ts";
import { debVersion } from "./deb.ts";
import { BuildError, readProgram, run, type Target, TARGETS } from "./program.ts";
import { findForeignLicences, formatSbom, readPackages } from "./sbom.ts";

const ROOT = resolve(`${import.meta.dirname}/..`);

const USAGE = `usage: scripts/release [--key FILE] [--trust FILE]... [--target TARGET]... [--once]
                       [--output DIR]

Makes the files of a release: the program and its Debian package for each target, sbom.cdx.json,
release.json for svc update, and SHA256SUMS.

  --key     PEM file of the Ed25519 private key that signs the release (openssl genpkey -algorithm
            ed25519); the program takes later releases that it has signed. Without one nothing is
            signed, and svc update apply takes no release
  --trust   PEM file of another public key whose releases the program takes, such as the next one
  --target  ${Object.keys(TARGETS).join(" or ")} (default: both)
  --once    build once only: nothing is compared
  --output  folder for the files (default: dist/release)
`;

async function sha256(path: string): Promise<string> {
  return createHash("sha256").update(await Deno.readFile(path)).digest("hex");
}

/** The files of a target: the program and its package. */
function namesOf(target: Target): [string, string] {
  return [`svc-${target}`, `svc_${debVersion(VERSION)}_${TARGETS[target].debian}.deb`];
}

async function build(target: Target, keys: readonly string[], output: string): Promise<void> {
  const trusted = keys.flatMap((key) => ["--release-key", key]);
  // A compiled file would depend on what its runtime's site has at the moment.
  const kind = ["--kind", "self-extracting", "--deb"];
  const place = ["--target", target, "--output", output];
  await run(`${ROOT}/scripts/build`, [...place, ...kind, ...trusted]);
}

/** Builds again, and names what came out different. */
async function compare(target: Target, keys: readonly string[], output: string): Promise<void> {
  const again = await Deno.makeTempDir({ prefix: "svc-release-again-" });
  try {
    await build(target, keys, again);
    for (const name of namesOf(target)) {
      if (await sha256(`${output}/${name}`) === await sha256(`${again}/${name}`)) continue;
      throw new BuildError(`${name} came out different when it was built again: find out why`);
    }
  } finally {
    await Deno.remove(again, { recursive: true });
  }
}

/** The pinned SHA-256 of each Deno, as `fetch_deno.sh` has it. */
async function carriedDeno(target: Target) {
  const script = '. "$0" && deno_pin "$1" && echo "$deno_version $deno_sha256"';
  const { platform } = TARGETS[target];
  const told = await run("sh", ["-c", script, `${ROOT}/scripts/fetch_deno.sh`, platform]);
  const [version, sha256] = told.trim().split(" ");
  return { platform, version, sha256 };
}

async function readKey(file: string | undefined): Promise<KeyObject | null> {
  if (file === undefined) return null;
  const key = createPrivateKey(await Deno.readTextFile(file));
  if (key.asymmetricKeyType !== "ed25519") {
    throw new BuildError(`--key: ${file} is no Ed25519 key: make one as --help says`);
  }
  return key;
}

async function main(args: string[]): Promise<number> {
  const several = { type: "string", multiple: true } as const;
  const { values } = parseArgs({
    args,
    options: {
      ...{ key: { type: "string" }, output: { type: "string" } } as const,
      trust: { ...several, default: [] },
      target: { ...several, default: Object.keys(TARGETS) },
      once: { type: "boolean", default: false },
      help: { type: "boolean" },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const unknown = values.target.find((target) => !Object.hasOwn(TARGETS, target));
  if (unknown !== undefined) {
    throw new BuildError(`--target: no release for ${unknown}: ${Object.keys(TARGETS).join(", ")}`);
  }
  const targets = values.target as Target[];
  const output = resolve(values.output ?? `${ROOT}/dist/release`);
  const key = await readKey(values.key);
  const packages = await readPackages(await readProgram(ROOT));
  const foreign = findForeignLicences(packages);
  if (foreign.length > 0) throw new BuildError(`can't be given on: ${foreign.join(", ")}`);
  const work = await Deno.makeTempDir({ prefix: "svc-release-" });
  try {
    const keys = [...values.trust];
    if (key !== null) {
      keys.unshift(`${work}/key.pem`);
      const pem = createPublicKey(key).export({ type: "spki", format: "pem" });
      await Deno.writeTextFile(`${work}/key.pem`, pem.toString());
    }
    await Deno.mkdir(output, { recursive: true });
    for (const target of targets) {
      await build(target, keys, output);
      if (!values.once) await compare(target, keys, output);
    }
  } finally {
    await Deno.remove(work, { recursive: true });
  }
  const denos = await Promise.all(targets.map(carriedDeno));
  await Deno.writeTextFile(`${output}/sbom.cdx.json`, formatSbom(VERSION, packages, denos));
  const files = await Promise.all(targets.map(async (target) => {
    const [name] = namesOf(target);
    const { size } = await Deno.stat(`${output}/${name}`);
    const file = { target, url: name, size, sha256: await sha256(`${output}/${name}`) };
    if (key === null) return file;
    return { ...file, signature: sign(null, signedText(VERSION, file), key).toString("base64") };
  }));
  const release = { version: VERSION, ...(key !== null && { files }) };
  await Deno.writeTextFile(`${output}/release.json`, JSON.stringify(release, null, 2) + "\n");
  const names = [...targets.flatMap(namesOf), "sbom.cdx.json", "release.json"].sort();
  const sums = await Promise.all(
    names.map(async (name) => `${await sha256(`${output}/${name}`)}  ${name}\n`),
  );
  await Deno.writeTextFile(`${output}/SHA256SUMS`, sums.join(""));
  console.log(`${output}: ${[...names, "SHA256SUMS"].join(", ")}`);
  if (key === null) console.log("not signed: --key names the key to sign with");
  return 0;
}

try {
  Deno.exitCode = await main(Deno.args);
} catch (error) {
  const isUsage = error instanceof TypeError && "code" in error;
  if (!(error instanceof BuildError) && !isUsage) throw error;
  console.error(`release: ${(error as Error).message}`);
  Deno.exitCode = isUsage ? 2 : 1;
}
