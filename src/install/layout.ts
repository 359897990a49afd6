import { dirname, normalize } from "node:path/posix";
import type { Host } from "./host.ts";

export const CONFIG_DIRECTORY = "/etc/svc";
export const CONFIG_FILE = `${CONFIG_DIRECTORY}/svc.toml`;
/** What the units call it, too: `StateDirectory=svc`. */
export const STATE_DIRECTORY = "/var/lib/svc";
/** Units of the administrator, before those of packages. */
export const UNIT_DIRECTORY = "/etc/systemd/system";
/** Where packages put them. */
const PACKAGED_UNITS = ["/usr/lib/systemd/system/svc.service", "/lib/systemd/system/svc.service"];

export const UNITS = ["svc.service", "svc-witness.service", "svc-vrrp.service"] as const;
export type Unit = typeof UNITS[number];

/** What differs from one machine to the next. */
export interface Layout {
  readonly user: string;
  /** A folder of its own: the sandbox lets programs be executed from it, and nothing else is there. */
  readonly folder: string;
  readonly program: string;
  /** Where a shell finds it. */
  readonly link: string;
}

export function layoutOf(user: string, prefix: string): Layout {
  const root = normalize(prefix).replace(/\/$/, "");
  const folder = `${root}/lib/svc`;
  return { user, folder, program: `${folder}/svc`, link: `${root}/bin/svc` };
}

/** What is wrong with a user or a prefix, and how to mend it; `null`: nothing. */
export function findOptionProblem(user: string, prefix: string): string | null {
  if (!/^[a-z_][a-z0-9_-]{0,30}$/.test(user)) {
    return "--user: takes a name of 1 to 31 lower-case letters, digits, _ and -";
  }
  if (user === "root") return "--user: the service gives up being root: name another";
  // It stands in units and in a list of programs that may be run: nothing there is to need quotes.
  const isPlain = /^\/[A-Za-z0-9._/-]+$/.test(prefix) && !prefix.split("/").includes("..");
  return isPlain ? null : "--prefix: takes an absolute path of letters, digits, . _ - and /";
}

/** The layout that the units on this machine were written for; `null`: there are none. */
export async function readLayout(host: Host): Promise<Layout | null> {
  const text = await host.readText(`${UNIT_DIRECTORY}/svc.service`);
  const program = /^ExecStart=(\S+\/lib\/svc\/svc) run$/m.exec(text ?? "")?.[1];
  const user = /^User=(\S+)$/m.exec(text ?? "")?.[1];
  if (program === undefined || user === undefined) return null;
  return layoutOf(user, dirname(dirname(dirname(program))) || "/");
}

/** Says whether a package has put the program here: then it is the package manager's. */
export async function isPackaged(host: Host): Promise<boolean> {
  for (const path of PACKAGED_UNITS) if (await host.look(path) !== null) return true;
  return false;
}

/** A file that comes with the program. */
export async function ownFile(name: string): Promise<string> {
  return await Deno.readTextFile(new URL(`./files/${name}`, import.meta.url));
}

/** A unit for a user and a program. */
export async function unitText(
  unit: Unit,
  { user, program }: Pick<Layout, "user" | "program">,
): Promise<string> {
  const [text, hardening] = await Promise.all([ownFile(unit), ownFile("hardening")]);
  return text.replace("@HARDENING@", () => hardening.trim())
    .replaceAll("@USER@", user).replaceAll("@PROGRAM@", program);
}
