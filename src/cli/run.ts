import { formatProblem } from "../config/mod.ts";
import { runService } from "../node/mod.ts";
import { loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";

const HELP = `svc run [--config FILE]

Answers DNS queries until it gets SIGTERM or SIGINT; SIGHUP reloads lists and
certificates.

  --config FILE  the configuration (default /etc/svc/svc.toml; built-in defaults if that is missing)
  --help         this text`;

/** `svc run`; returns the exit code once the service has stopped. */
export async function run(args: string[]): Promise<number> {
  const options = readOptions("run", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems, fromDefaults, source } = await loadConfig(options.config);
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null) return 2;
  await runService(config, fromDefaults ? source.file : null);
  return 0;
}
