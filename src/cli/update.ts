import { dirname } from "node:path/posix";
import { parseArgs } from "node:util";
import { type Config, formatProblem } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { DenoHost, isPackaged, REPLACED } from "../install/mod.ts";
import { withOutbound } from "../node/outbound.ts";
import {
  applyRelease,
  checkUpdate,
  fetchRelease,
  finishApplying,
  isNewer,
  RELEASE_KEYS,
} from "../update/mod.ts";
import { VERSION } from "../version.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";

const EXIT_INVALID = 2;

const HELP = `svc update check|apply [--config FILE]

check   tells whether the release service at [update] url knows a newer release
apply   downloads it by the configuration's own upstreams, holds its signature against the keys that
        are built into this program, puts it in the place of PREFIX/lib/svc/svc, and hands running
        services over to it; without a newer one it does nothing

  --config FILE  the configuration (default ${DEFAULT_CONFIG_FILE})
  --help         this text

Exit code: 0 done, or nothing to do; 1 failed, and nothing was changed; 2 wrong usage or invalid
configuration.`;

/** `svc update check|apply`; returns the exit code. */
export async function update(args: string[]): Promise<number> {
  let parsed;
  try {
    const options = { config: { type: "string" }, help: { type: "boolean" } } as const;
    parsed = parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    return usage(messageOf(error).split("\n", 1)[0]);
  }
  const { values, positionals: [what, ...others] } = parsed;
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  if (others.length > 0 || (what !== "check" && what !== "apply")) {
    return usage("it takes check or apply");
  }
  const { config, problems } = await loadConfig(values.config);
  if (config === null) {
    for (const problem of problems) console.error(formatProblem(problem));
    return EXIT_INVALID;
  }
  if (config.update.url === null) {
    throw new SvcError("invalid", "update.url: names no release service: write its address there");
  }
  if (what === "apply") await apply(config, config.update.url);
  else await check(config, config.update.url);
  return 0;
}

function usage(reason: string): number {
  console.error(`svc update: ${reason} (svc update --help tells more)`);
  return EXIT_INVALID;
}

async function check(config: Config, url: string): Promise<void> {
  const { current, latest, newer, url: page } = await withOutbound(
    config,
    (get) => checkUpdate(url, get),
  );
  const more = page === null ? "" : ` (${page})`;
  console.log(newer ? `svc ${latest} is there, this is ${current}${more}` : `${current} is newest`);
}

async function apply(config: Config, url: string): Promise<void> {
  const host = new DenoHost();
  const program = await installedProgram(host);
  const tell = (line: string) => console.log(line);
  // A run that broke off may have left a service with a program that is no longer there.
  if (await host.look(`${dirname(program)}/${REPLACED}`) !== null) {
    await finishApplying(host, dirname(program), tell);
  }
  await withOutbound(config, async (get) => {
    const from = new URL(url);
    const release = await fetchRelease(from, get);
    if (!isNewer(release)) return tell(`${VERSION} is newest`);
    await applyRelease({
      ...{ release, from, get, host, program, tell },
      target: Deno.build.target,
      current: VERSION,
      keys: RELEASE_KEYS,
    });
  });
}

/**
 * The file that `svc install` has put in its place, which is the one that runs.
 *
 * @throws {SvcError} Where a release is for somebody else to install.
 */
async function installedProgram(host: DenoHost): Promise<string> {
  const own = Deno.env.get("SVC_FILE") ?? (Deno.build.standalone ? Deno.execPath() : "");
  if (await isPackaged(host)) {
    throw new SvcError("conflict", "svc is here as a package: use the package manager (apt)");
  }
  if (!/^\/[A-Za-z0-9._/+-]+\/lib\/svc\/svc$/.test(own)) {
    throw new SvcError("conflict", "this is not the program of svc install: install it first");
  }
  return own;
}
