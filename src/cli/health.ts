import { formatHostPort } from "../addr/mod.ts";
import { formatProblem } from "../config/mod.ts";
import { askHealth } from "../floating/mod.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";
import { openLibc, ownDns } from "./own_dns.ts";

const EXIT_INVALID = 2;

const HELP = `svc health [--config FILE]

Asks the service on this machine for health.svc.test over UDP, on loopback unless [server] listen names
addresses, up to three times within three seconds. For the health checks of containers and scripts.

  --config FILE  the configuration of the service (default ${DEFAULT_CONFIG_FILE})
  --help         this text

Exit code: 0 it is answered, 1 it is not, 2 wrong usage or invalid configuration.`;

/** `svc health`; returns the exit code. */
export async function health(args: string[]): Promise<number> {
  const options = readOptions("health", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems } = await loadConfig(options.config);
  if (config === null) {
    for (const problem of problems) console.error(formatProblem(problem));
    return EXIT_INVALID;
  }
  const target = ownDns(config);
  if (await askHealth(openLibc(), target)) {
    console.log(`${formatHostPort(target)} answers`);
    return 0;
  }
  const place = formatHostPort(target);
  console.error(`svc health: ${place} does not answer health.svc.test: look at the service's log`);
  return 1;
}
