/**
 * Makes a Debian package of a built file: the program in a folder of its own, the units, the
 * configuration, and the scripts of `dist/debian`. The same input gives the same bytes.
 *
 * @module
 */
import { UNITS, unitText } from "../src/install/mod.ts";
import { RELEASED_MS } from "../src/version.ts";
import { filesBelow, run } from "./program.ts";
import type { Package } from "./sbom.ts";

const PROGRAM_FOLDER = "usr/lib/svc";
const SCRIPTS = ["postinst", "prerm", "postrm"] as const;
const KIB_BYTES = 1_024;

export interface DebOptions {
  /** The checkout. */
  readonly root: string;
  /** The built file. */
  readonly file: string;
  readonly version: string;
  /** Debian's name of it. */
  readonly architecture: "amd64" | "arm64";
  /** Name and address, as `Debian Policy` has them. */
  readonly maintainer: string;
  readonly packages: readonly Package[];
  /** An empty folder to work in. */
  readonly work: string;
  /** The folder for the package. */
  readonly output: string;
}

/** The revision of the package of a version. */
export function debVersion(version: string): string {
  return `${version.replace("-", "~")}-1`;
}

/** Makes the package; returns its path. */
export async function makeDeb(options: DebOptions): Promise<string> {
  const { root, file, version, architecture, maintainer, work, output } = options;
  const template = (name: string) => Deno.readTextFile(`${root}/dist/debian/${name}`);
  const put = async (path: string, content: string, mode: number) => {
    await makeFolder(`${work}/${path}`.replace(/\/[^/]*$/, ""));
    await Deno.writeTextFile(`${work}/${path}`, content);
    await Deno.chmod(`${work}/${path}`, mode);
  };
  await makeFolder(`${work}/${PROGRAM_FOLDER}`);
  await Deno.copyFile(file, `${work}/${PROGRAM_FOLDER}/svc`);
  await Deno.chmod(`${work}/${PROGRAM_FOLDER}/svc`, 0o755);
  await makeFolder(`${work}/usr/bin`);
  await Deno.symlink("../lib/svc/svc", `${work}/usr/bin/svc`);
  for (const unit of UNITS) {
    const text = await unitText(unit, { user: "svc", program: `/${PROGRAM_FOLDER}/svc` });
    await put(`lib/systemd/system/${unit}`, text, 0o644);
  }
  const config = await Deno.readTextFile(`${root}/src/install/files/svc.toml`);
  await put("etc/svc/svc.toml", config, 0o644);
  const docs = "usr/share/doc/svc";
  await put(`${docs}/copyright`, await copyright(options), 0o644);
  await put(`${docs}/changelog`, await Deno.readTextFile(`${root}/CHANGELOG.md`), 0o644);
  await put(`${docs}/changelog.Debian`, changelog(version, maintainer), 0o644);
  await run("gzip", ["-9n", ...["", ".Debian"].map((end) => `${work}/${docs}/changelog${end}`)]);
  await put("usr/share/lintian/overrides/svc", await template("lintian-overrides"), 0o644);

  const isPlain = async (path: string) => !(await Deno.lstat(`${work}/${path}`)).isSymlink;
  const files: string[] = [];
  for (const path of await filesBelow(`${work}/`, "")) if (await isPlain(path)) files.push(path);
  const sums = await run("md5sum", files, { cwd: work });
  let bytes = 0;
  for (const path of files) bytes += (await Deno.stat(`${work}/${path}`)).size;
  const values: Readonly<Record<string, string>> = {
    "@VERSION@": debVersion(version),
    "@ARCHITECTURE@": architecture,
    "@MAINTAINER@": maintainer,
    "@SIZE@": String(Math.ceil(bytes / KIB_BYTES)),
  };
  const control = (await template("control")).replace(/@\w+@/g, (place) => values[place]);
  await put("DEBIAN/control", control, 0o644);
  await put("DEBIAN/md5sums", sums, 0o644);
  await put("DEBIAN/conffiles", "/etc/svc/svc.toml\n", 0o644);
  for (const script of SCRIPTS) await put(`DEBIAN/${script}`, await template(script), 0o755);

  // Whatever the umask of the builder is.
  await run("find", [work, "-type", "d", "-exec", "chmod", "755", "{}", "+"]);
  const deb = `${output}/svc_${debVersion(version)}_${architecture}.deb`;
  // What the program carries is packed already.
  await run("dpkg-deb", ["--root-owner-group", "-Zxz", "-z0", "--build", work, `${deb}.new`], {
    env: { SOURCE_DATE_EPOCH: String(RELEASED_MS / 1_000) },
  });
  await Deno.rename(`${deb}.new`, deb);
  return deb;
}

async function makeFolder(path: string): Promise<void> {
  await Deno.mkdir(path, { recursive: true });
}

function changelog(version: string, maintainer: string): string {
  const date = new Date(RELEASED_MS).toUTCString().replace("GMT", "+0000");
  return `svc (${debVersion(version)}) stable; urgency=medium

  * Release ${version}: see changelog.gz.

 -- ${maintainer}  ${date}
`;
}

/** The licence of the program, and whose texts it carries (DEP 5). */
async function copyright({ root, packages }: DebOptions): Promise<string> {
  const text = await Deno.readTextFile(`${root}/LICENSE`);
  const owner = /^Copyright \(c\) (.*)$/m.exec(text)?.[1] ?? "";
  const body = text.slice(text.indexOf("Permission")).trim();
  const indented = body.split("\n").map((line) => line === "" ? " ." : ` ${line}`).join("\n");
  const carried = packages.filter(({ isShipped }) => isShipped).map(({ name, version, licence }) =>
    ` ${name} ${version}: ${licence}`
  );
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: svc
Comment:
 The program carries Deno (MIT, 2018-2026 the Deno authors) and these packages of npm, each with its
 own notices, or these in the folder licences, below ${PROGRAM_FOLDER} once it is installed:
${carried.join("\n")}

Files: *
Copyright: ${owner}
License: Expat

License: Expat
${indented}
`;
}
