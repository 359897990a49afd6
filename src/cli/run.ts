import { formatProblem } from "../config/mod.ts";
import { openNative } from "../native/mod.ts";
import { openProcess } from "../native/system.ts";
import { inherit } from "../process/mod.ts";
import { loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";

const HELP = `svc run [--config FILE]

Answers DNS queries until it gets SIGTERM or SIGINT. SIGHUP reloads lists and
certificates; SIGUSR2 hands over to the program and the configuration as they are
by then, without a query lost.

  --config FILE  the configuration (default /etc/svc/svc.toml; built-in defaults if that is missing)
  --help         this text`;

/** `svc run`; returns the exit code once the service has stopped. */
export async function run(args: string[]): Promise<number> {
  const options = readOptions("run", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems, fromDefaults, source } = await loadConfig(options.config);
  const [native, process] = [openNative(), openProcess()];
  const legacy = process === null ? null : inherit(process);
  const upgrade = await import("../node/launch.ts");
  const isLaunch = legacy !== null && upgrade.isToLaunch(legacy);
  if (legacy === null || isLaunch) {
    for (const problem of problems) console.error(formatProblem(problem));
  }
  if (config === null) {
    const found = problems.find(({ severity }) => severity === "error");
    if (legacy !== null && found !== undefined) upgrade.refuse(legacy, formatProblem(found));
    return 2;
  }
  if (process !== null && isLaunch) {
    upgrade.launch(process, config, source.file, legacy);
    return 0;
  }
  if (native !== null && process !== null && legacy === null) {
    const { enterFirstStage } = await import("../node/first_stage.ts");
    await enterFirstStage(native, process, config, source.file);
  }
  process?.close(); // What could change the process again.
  const { runService } = await import("../node/mod.ts");
  await runService(config, { legacy, missingFile: fromDefaults ? source.file : null });
  return 0;
}
