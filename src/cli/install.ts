import { basename, dirname } from "node:path/posix";
import { anybodyInTheWay, formatProblem } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import {
  CONFIG_FILE,
  DenoHost,
  findOptionProblem,
  type Host,
  installSteps,
  isPackaged,
  type Layout,
  layoutOf,
  readLayout,
  runSteps,
  STATE_DIRECTORY,
  uninstallSteps,
  type Unit,
} from "../install/mod.ts";
import { openProcess } from "../native/system.ts";
import { listeningSockets } from "../process/mod.ts";
import { loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";

const EXIT_USAGE = 2;
const DEFAULT_USER = "svc";
const DEFAULT_PREFIX = "/usr/local";

/** What `--start` takes. */
const STARTED: Readonly<Record<string, Unit>> = {
  svc: "svc.service",
  witness: "svc-witness.service",
  vrrp: "svc-vrrp.service",
};

const INSTALL_HELP = `svc install [--user svc] [--prefix /usr/local] [--start NAME]... [--no-start]
            [--dry-run]

Makes this file a service: copies it to PREFIX/lib/svc/svc, a folder of its own, with a link at
PREFIX/bin/svc, makes a system user, ${CONFIG_FILE} with comments (one that is there stays as it is),
${STATE_DIRECTORY} and units for systemd, and starts svc.service. Run again, it does what is missing; run from a
newer file, it hands the running service over to that.

  --user NAME    the system user that the services run as (default ${DEFAULT_USER})
  --prefix DIR   where the program goes (default ${DEFAULT_PREFIX})
  --start NAME   what to start now and with the machine: svc, witness or vrrp; may be given several
                 times (default svc)
  --no-start     start nothing
  --dry-run      print what would be done, and do none of it
  --help         this text

Exit code: 0 done, 1 failed, 2 wrong usage.`;

/** `svc install`; returns the exit code. */
export async function install(args: string[]): Promise<number> {
  const options = readOptions("install", INSTALL_HELP, args, {
    user: { type: "string", default: DEFAULT_USER },
    prefix: { type: "string", default: DEFAULT_PREFIX },
    start: { type: "string", multiple: true },
    "no-start": { type: "boolean" },
    "dry-run": { type: "boolean" },
  });
  if (typeof options === "number") return options;
  const { user, prefix, "dry-run": isDry = false, "no-start": startsNothing = false } = options;
  const names = startsNothing ? [] : options.start ?? ["svc"];
  const unknown = names.find((name) => !Object.hasOwn(STARTED, name));
  const problem = unknown !== undefined
    ? `--start: ${JSON.stringify(unknown)} is none of ${Object.keys(STARTED).join(", ")}`
    : startsNothing && options.start !== undefined
    ? "--start and --no-start exclude each other"
    : findOptionProblem(user, prefix);
  if (problem !== null) return usage("install", problem);
  const host = new DenoHost();
  await needRights(host, isDry);
  const layout = layoutOf(user, prefix);
  const start = names.map((name) => STARTED[name]);
  // A port that is taken keeps it from starting: whoever reads this mends it first.
  const inTheWay = start.includes("svc.service") ? await findInTheWay(host) : null;
  const { file, extraction } = ownFileOf(Deno.env.get("SVC_FILE"));
  const startable = inTheWay === null ? start : start.filter((unit) => unit !== "svc.service");
  await runSteps(
    installSteps(host, { layout, file, extraction, start: startable }),
    isDry,
    (line) => console.log(line),
  );
  if (inTheWay !== null) {
    console.error(`svc install: svc.service is not started: ${inTheWay}`);
    if (!isDry) console.error("svc install: then run svc install again");
    return isDry ? 0 : 1;
  }
  console.log(isDry ? "nothing was changed" : `installed for the user ${user}: ${CONFIG_FILE}`);
  return 0;
}

const UNINSTALL_HELP = `svc uninstall [--purge] [--prefix DIR] [--user NAME] [--dry-run]

Stops the services of svc install and takes program, link and units away. ${CONFIG_FILE} and
${STATE_DIRECTORY} stay.

  --purge        remove these too, with the system user, and changes of the units
  --prefix DIR   where the program is (default: where the units say, else ${DEFAULT_PREFIX})
  --user NAME    the system user (default: whom the units say, else ${DEFAULT_USER})
  --dry-run      print what would be done, and do none of it
  --help         this text

Exit code: 0 done, 1 failed, 2 wrong usage.`;

/** `svc uninstall`; returns the exit code. */
export async function uninstall(args: string[]): Promise<number> {
  const options = readOptions("uninstall", UNINSTALL_HELP, args, {
    purge: { type: "boolean", default: false },
    user: { type: "string" },
    prefix: { type: "string" },
    "dry-run": { type: "boolean" },
  });
  if (typeof options === "number") return options;
  const { purge, "dry-run": isDry = false } = options;
  const host = new DenoHost();
  const layout = await layoutToRemove(host, options.user, options.prefix);
  const problem = findOptionProblem(layout.user, layout.folder);
  if (problem !== null) return usage("uninstall", problem);
  await needRights(host, isDry);
  const { config } = purge ? await loadConfig(undefined) : { config: null };
  await runSteps(uninstallSteps(host, layout, purge), isDry, (line) => console.log(line));
  if (config !== null && config.store.dir !== STATE_DIRECTORY) {
    console.log(`left as it is: ${config.store.dir}, which store.path named`);
  }
  console.log(isDry ? "nothing was changed" : "uninstalled");
  return 0;
}

function usage(command: string, problem: string): number {
  console.error(`svc ${command}: ${problem} (svc ${command} --help tells more)`);
  return EXIT_USAGE;
}

/** As asked for, else as the units say, else where this program is itself. */
async function layoutToRemove(
  host: Host,
  user: string | undefined,
  prefix: string | undefined,
): Promise<Layout> {
  const found = await readLayout(host);
  const own = /^(\/.+)\/lib\/svc\/svc$/.exec(Deno.env.get("SVC_FILE") ?? "")?.[1];
  const place = prefix ?? (found === null ? own : dirname(dirname(found.folder)));
  return layoutOf(user ?? found?.user ?? DEFAULT_USER, place ?? DEFAULT_PREFIX);
}

/** @throws {SvcError} Where this is not for the command to do. */
async function needRights(host: Host, isDry: boolean): Promise<void> {
  if (await isPackaged(host)) {
    throw new SvcError("conflict", "svc is here as a package: use the package manager (apt)");
  }
  if (Deno.uid() !== 0 && !isDry) {
    throw new SvcError("forbidden", "this changes the system: run it as root (sudo)");
  }
}

/**
 * The built file that this is.
 *
 * @throws {SvcError} `invalid`, for a checkout, or a file that can't be run from where it is.
 */
function ownFileOf(given: string | undefined): { file: string; extraction: string | null } {
  const file = given ?? (Deno.build.standalone ? Deno.execPath() : undefined);
  if (file === undefined) {
    throw new SvcError(
      "invalid",
      "this is a checkout, and a built file is what can be installed: scripts/build makes one",
    );
  }
  if (!/^[A-Za-z0-9._/+-]+$/.test(file)) {
    throw new SvcError(
      "invalid",
      `${JSON.stringify(file)}: move the file to a path of letters, digits and . _ + - alone`,
    );
  }
  return { file, extraction: given === undefined ? null : basename(dirname(Deno.execPath())) };
}

/** Who else listens where svc.service is about to; `null`: nobody, or itself. */
async function findInTheWay(host: Host): Promise<string | null> {
  const { config, problems } = await loadConfig(undefined);
  if (config === null) return `${CONFIG_FILE} is invalid: ${problems.map(formatProblem)[0]}`;
  const isActive = await host.run("systemctl", ["is-active", "--quiet", "svc.service"]);
  const process = openProcess();
  if (isActive.code === 0 || process === null) return null;
  return anybodyInTheWay(config.server.listen, listeningSockets(process))?.message ?? null;
}
