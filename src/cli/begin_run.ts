import { type Config, formatProblem } from "../config/mod.ts";
import { openNative } from "../native/mod.ts";
import { openProcess } from "../native/system.ts";
import { inherit, type Legacy } from "../process/mod.ts";
import { loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";

const HELP = `svc run [--config FILE]

Answers DNS queries until it gets SIGTERM or SIGINT. SIGHUP reloads lists and
certificates; SIGUSR2 hands over to the program and the configuration as they are
by then, without a query lost.

  --config FILE  the configuration (default /etc/svc/svc.toml; built-in defaults if that is missing)
  --help         this text`;

/** What a service is to run with. */
export interface Begun {
  readonly config: Config;
  readonly legacy: Legacy | null;
  /** Where a configuration was looked for in vain, where it is of built-in defaults. */
  readonly missingFile: string | null;
}

/**
 * `svc run` up to the service itself: stage 1, which executes the program anew, the launch of a next
 * program, or what the service begins with. Returns the exit code where there is nothing more to do.
 */
export async function beginRun(args: string[]): Promise<Begun | number> {
  const options = readOptions("run", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems, fromDefaults, source } = await loadConfig(options.config);
  const [native, process] = [openNative(), openProcess()];
  const legacy = process === null ? null : inherit(process);
  const upgrade = legacy === null ? null : await import("../node/launch.ts");
  const isLaunch = legacy !== null && upgrade?.isToLaunch(legacy) === true;
  if (legacy === null || isLaunch) {
    for (const problem of problems) console.error(formatProblem(problem));
  }
  if (config === null) {
    const found = problems.find(({ severity }) => severity === "error");
    if (legacy !== null && found !== undefined) upgrade?.refuse(legacy, formatProblem(found));
    return 2;
  }
  if (process !== null && legacy !== null && isLaunch) {
    upgrade?.launch(process, config, source.file, legacy);
    return 0;
  }
  if (native !== null && process !== null && legacy === null) {
    const { enterFirstStage } = await import("../node/first_stage.ts");
    await enterFirstStage(native, process, config, source.file);
  }
  process?.close(); // What could change the process again.
  return { config, legacy, missingFile: fromDefaults ? source.file : null };
}
