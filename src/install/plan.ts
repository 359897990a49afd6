import { SvcError } from "../errors.ts";
import type { Ended, Found, Host, Owner } from "./host.ts";
import {
  CONFIG_DIRECTORY,
  CONFIG_FILE,
  type Layout,
  ownFile,
  STATE_DIRECTORY,
  type Unit,
  UNIT_DIRECTORY,
  UNITS,
  unitText,
} from "./layout.ts";
import { extract, removeOldExtractions } from "./program.ts";
import type { Step } from "./steps.ts";

const ROOT: Owner = { uid: 0, gid: 0 };
const NO_SHELL = "/usr/sbin/nologin";
/** Only where systemd runs is there this folder (sd_booted(3)). */
const SYSTEMD_RUNS = "/run/systemd/system";

/** A file that tells a later run, if one breaks off, that services may still run a former program. */
export const REPLACED = "replaced";

export interface InstallOptions {
  readonly layout: Layout;
  /** The file to install. */
  readonly file: string;
  /** The folder in which what it carries lies, as it names that; `null`: it carries nothing. */
  readonly extraction: string | null;
  /** Units to enable and start. */
  readonly start: readonly Unit[];
}

/** Runs a program that has to succeed. */
async function must(host: Host, program: string, ...args: string[]): Promise<Ended> {
  const ended = await host.run(program, args);
  if (ended.code === 0) return ended;
  const said = ended.stderr.trim().split("\n", 1)[0];
  throw new SvcError("unavailable", `${program} ${args[0]} fails: ${said || `code ${ended.code}`}`);
}

async function idsOf(host: Host, user: string): Promise<Owner | null> {
  const [uid, gid] = [await host.run("id", ["-u", user]), await host.run("id", ["-g", user])];
  if (uid.code !== 0 || gid.code !== 0) return null;
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

async function needSystemd(host: Host): Promise<void> {
  if (await host.look(SYSTEMD_RUNS) !== null) return;
  throw new Error("systemd does not run here: --no-start leaves this out");
}

async function isEnabled(host: Host, unit: Unit): Promise<boolean> {
  return (await host.run("systemctl", ["is-enabled", "--quiet", unit])).code === 0;
}

async function isActive(host: Host, unit: Unit): Promise<boolean> {
  return (await host.run("systemctl", ["is-active", "--quiet", unit])).code === 0;
}

/** A folder of this owner and mode. What else bears the name is left alone, and named. */
function folderStep(
  host: Host,
  path: string,
  mode: number,
  owner: () => Promise<Owner>,
): Step {
  const isRight = (found: Found, { uid, gid }: Owner) =>
    found.mode === mode && found.uid === uid && found.gid === gid;
  return {
    what: `make the folder ${path}`,
    isDone: async () => {
      const found = await host.look(path);
      if (found !== null && found.kind !== "folder") throw new Error(`${path} is no folder`);
      return found !== null && isRight(found, await owner());
    },
    do: async () => {
      await host.makeFolder(path, mode);
      await host.setOwner(path, await owner());
      await host.setMode(path, mode);
    },
  };
}

/** Whether anything in a folder belongs to somebody else. */
async function holdsForeign(host: Host, folder: string, uid: number): Promise<boolean> {
  for (const name of await host.names(folder)) {
    const found = await host.look(`${folder}/${name}`);
    if (found === null) continue;
    if (found.uid !== uid) return true;
    if (found.kind === "folder" && await holdsForeign(host, `${folder}/${name}`, uid)) return true;
  }
  return false;
}

/** A file with this text, replaced as a whole. */
function textStep(host: Host, path: string, text: () => Promise<string>, mode: number): Step {
  return {
    what: `write ${path}`,
    isDone: async () => await host.readText(path) === await text(),
    do: async () => await host.write(path, await text(), mode),
  };
}

function reloadStep(host: Host): Step {
  return {
    what: "have systemd read its units again",
    isDone: async () => {
      if (await host.look(SYSTEMD_RUNS) === null) return true;
      const asked = ["show", "--property=NeedDaemonReload", "--value", ...UNITS];
      return !(await host.run("systemctl", asked)).stdout.includes("yes");
    },
    do: async () => void await must(host, "systemctl", "daemon-reload"),
  };
}

/** Everything that an installation consists of, each step over those before it. */
export function installSteps(host: Host, options: InstallOptions): Step[] {
  const { layout, file, extraction, start } = options;
  const { user, folder, program, link } = layout;
  const owner = async (): Promise<Owner> => {
    const ids = await idsOf(host, user);
    if (ids === null) throw new Error(`there is no user ${user}`);
    return ids;
  };
  const ofGroup = async () => ({ uid: 0, gid: (await owner()).gid });
  const asRoot = () => Promise.resolve(ROOT);
  return [
    {
      what: `make the system user ${user}`,
      isDone: async () => await idsOf(host, user) !== null,
      do: async () => {
        const has = await host.run("getent", ["group", user]);
        const group = has.code === 0 ? ["--gid", user] : ["--user-group"];
        // deno-fmt-ignore
        await must(host, "useradd", "--system", ...group, "--no-create-home",
          "--home-dir", "/nonexistent", "--shell", NO_SHELL, user);
      },
    },
    folderStep(host, folder, 0o755, asRoot),
    {
      what: `copy ${file} to ${program}`,
      isDone: async () =>
        await host.isCopy(program, file) &&
        (extraction === null || await host.look(`${folder}/${extraction}/complete`) !== null),
      do: async () => {
        await extract(host, file, folder);
        // The file that runs can't be written, and need not be.
        if (await host.isCopy(program, file)) return;
        await host.write(`${folder}/${REPLACED}`, "", 0o600);
        await host.write(program, { copyOf: file }, 0o755);
      },
    },
    {
      what: `link ${link} to it`,
      isDone: async () => {
        const found = await host.look(link);
        if (found === null) return false;
        if (found.kind === "link" && await host.readLink(link) === "../lib/svc/svc") return true;
        throw new Error(`${link} is something else: move it away`);
      },
      do: async () => {
        await host.makeFolder(link.replace(/\/[^/]*$/, ""), 0o755);
        await host.makeLink(link, "../lib/svc/svc");
      },
    },
    // The service reads it, and so do keys and tokens beside it, which are nobody else's.
    folderStep(host, CONFIG_DIRECTORY, 0o750, ofGroup),
    {
      what: `write ${CONFIG_FILE}`,
      isDone: async () => await host.look(CONFIG_FILE) !== null, // It is the administrator's.
      do: async () => {
        await host.write(CONFIG_FILE, await ownFile("svc.toml"), 0o640);
      },
    },
    {
      what: `let ${user} read ${CONFIG_FILE}`,
      isDone: async () => {
        const found = await host.look(CONFIG_FILE);
        // One that was given other rights on purpose keeps them.
        return found === null || found.gid !== 0 || (found.mode & 0o004) !== 0;
      },
      do: async () => {
        await host.setOwner(CONFIG_FILE, await ofGroup());
        await host.setMode(CONFIG_FILE, 0o640);
      },
    },
    folderStep(host, STATE_DIRECTORY, 0o700, owner),
    {
      // Root may have run the service before, and what it stored then is nobody else's to write.
      what: `give ${user} what is in ${STATE_DIRECTORY}`,
      isDone: async () => !await holdsForeign(host, STATE_DIRECTORY, (await owner()).uid),
      do: async () => {
        const { uid, gid } = await owner();
        const flags = ["--recursive", "--no-dereference"];
        await must(host, "chown", ...flags, `${uid}:${gid}`, STATE_DIRECTORY);
      },
    },
    ...UNITS.map((unit) =>
      textStep(host, `${UNIT_DIRECTORY}/${unit}`, () => unitText(unit, layout), 0o644)
    ),
    reloadStep(host),
    ...handOverSteps(host, folder),
    ...start.flatMap((unit): Step[] => [{
      what: `have ${unit} start with the machine`,
      isDone: async () => {
        await needSystemd(host);
        return await isEnabled(host, unit);
      },
      do: async () => void await must(host, "systemctl", "enable", "--quiet", unit),
    }, {
      what: `start ${unit} (journalctl -u ${unit} tells of it)`,
      isDone: () => isActive(host, unit),
      do: async () => void await must(host, "systemctl", "start", unit),
    }]),
  ];
}

/** Has running units go on with the program that is in its place now, if it was replaced. */
export function handOverSteps(host: Host, folder: string): Step[] {
  const isDone = async () => await host.look(`${folder}/${REPLACED}`) === null;
  return [
    ...UNITS.map((unit): Step => ({
      what: `hand ${unit} over to the new program`,
      isDone: async () => await isDone() || !await isActive(host, unit),
      do: async () => {
        // Not a query is lost, and no address moves; a witness has nothing that could be lost.
        const signal = ["kill", "--kill-who=main", "--signal=SIGUSR2"];
        await must(
          host,
          "systemctl",
          ...unit === "svc-witness.service" ? ["restart"] : signal,
          unit,
        );
      },
    })),
    {
      what: "remove what former programs carried",
      isDone,
      do: async () => {
        await removeOldExtractions(host, folder);
        await host.remove(`${folder}/${REPLACED}`);
      },
    },
  ];
}

/** Everything that takes an installation away; with `purge`, what it has stored as well. */
export function uninstallSteps(host: Host, layout: Layout, purge: boolean): Step[] {
  const { user, folder, link } = layout;
  const removal = (path: string): Step => ({
    what: `remove ${path}`,
    isDone: async () => await host.look(path) === null,
    do: () => host.remove(path),
  });
  return [
    ...UNITS.map((unit): Step => ({
      what: `stop and disable ${unit}`,
      isDone: async () => {
        if (await host.look(SYSTEMD_RUNS) === null) return true;
        return !await isEnabled(host, unit) && !await isActive(host, unit);
      },
      do: async () => void await must(host, "systemctl", "disable", "--now", unit),
    })),
    ...purge ? [removal(STATE_DIRECTORY), removal(CONFIG_DIRECTORY)] : [],
    ...purge ? UNITS.map((unit) => removal(`${UNIT_DIRECTORY}/${unit}.d`)) : [],
    ...purge
      ? [{
        what: `remove the system user ${user}`,
        isDone: async () => await idsOf(host, user) === null,
        do: async () => void await must(host, "userdel", user),
      }]
      : [],
    ...UNITS.map((unit) => removal(`${UNIT_DIRECTORY}/${unit}`)),
    reloadStep(host),
    // Last: a second run needs it.
    {
      what: `remove ${link}`,
      isDone: async () => {
        const found = await host.look(link);
        return found?.kind !== "link" || await host.readLink(link) !== "../lib/svc/svc";
      },
      do: () => host.remove(link),
    },
    removal(folder),
  ];
}
