import { join } from "node:path/posix";
import { parseArgs } from "node:util";
import { issueMember, makeAuthority } from "../cluster/certificates.ts";
import { isNodeName, NODE_NAME_FORM } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { writeNewFiles, writing } from "./new_file.ts";

/** The exit code of wrong usage. */
const EXIT_USAGE = 2;
const [PUBLIC_MODE, SECRET_MODE] = [0o644, 0o600];

const HELP = `svc cluster init [--dir DIR]
svc cluster cert NODE [--dir DIR] [--force]

Makes what the members of a cluster know each other by. init makes the cluster's own authority,
ca.crt and ca.key; cert makes NODE.crt and NODE.key of a member with it. Each member gets ca.crt and
its own pair, and never ca.key: who has that can make itself a member. Certificates are valid for ten
years. Files that are there stay as they are.

  --dir DIR  where the files are (default: the current folder)
  --force    makes the certificate of a member anew, with a new key, in place of the one there
  --help     this text

NODE is the name of [cluster] node: ${NODE_NAME_FORM}.

Exit code: 0 done, 1 failed, 2 wrong usage.`;

const OPTIONS = {
  dir: { type: "string" },
  force: { type: "boolean" },
  help: { type: "boolean" },
} as const;

/** `svc cluster`; returns the exit code. */
export async function cluster(args: string[]): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    return usage(messageOf(error).split("\n", 1)[0]);
  }
  const { values: { dir = ".", force, help }, positionals: [what, node, ...more] } = parsed;
  if (help) {
    console.log(HELP);
    return 0;
  }
  if (dir === "") return usage("--dir: names no folder");
  if (what === "init") {
    if (node !== undefined) return usage("init takes no name");
    if (force) return usage("--force is for cert: a new authority would lock out every member");
    await writing(dir, () => Deno.mkdir(dir, { recursive: true }));
    return await makeFiles(join(dir, "ca"), await makeAuthority(Date.now(), chance), false);
  }
  if (what !== "cert") return usage(`${what ?? "it"} is neither init nor cert NODE`);
  if (node === undefined || more.length > 0) return usage("cert takes one NODE");
  if (!isNodeName(node)) return usage(`${JSON.stringify(node)} is no node name: ${NODE_NAME_FORM}`);
  if (node === "ca") return usage('"ca" is the name of the authority\'s own files: take another');
  const authority = {
    cert: await readPart(join(dir, "ca.crt")),
    key: await readPart(join(dir, "ca.key")),
  };
  const issued = await issueMember(node, authority, Date.now(), chance);
  return await makeFiles(join(dir, node), issued, force === true);
}

const chance = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes);

function usage(reason: string): number {
  console.error(`svc cluster: ${reason} (svc cluster --help tells more)`);
  return EXIT_USAGE;
}

async function makeFiles(
  path: string,
  { cert, key }: { readonly cert: string; readonly key: string },
  isReplaced: boolean,
): Promise<number> {
  const files = [
    { path: `${path}.key`, text: key, mode: SECRET_MODE },
    { path: `${path}.crt`, text: cert, mode: PUBLIC_MODE },
  ];
  await writeNewFiles(files, isReplaced);
  for (const file of files) console.log(file.path);
  return 0;
}

async function readPart(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    const reason = cause instanceof Deno.errors.NotFound
      ? "is not there: make it with svc cluster init, or name its folder with --dir"
      : cause instanceof Deno.errors.PermissionDenied
      ? "may not be read: give this user the right to"
      : `can't be read: ${messageOf(cause)}`;
    throw new SvcError("unavailable", `${path}: ${reason}`, { cause });
  }
}
