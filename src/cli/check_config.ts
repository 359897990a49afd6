import { parseArgs } from "node:util";
import { checkFiles, type FileFacts } from "../config/check_files.ts";
import { type Config, formatProblem } from "../config/mod.ts";
import { messageOf } from "../errors.ts";
import { checkCatalogue } from "../lists/mod.ts";
import { fileLimit, openNative } from "../native/mod.ts";
import { fileLimitWarning } from "../node/open_files.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";
import { listeningSockets } from "../process/mod.ts";

/** The exit code of wrong usage and of an invalid configuration. */
const EXIT_INVALID = 2;

const HELP = `svc check-config [--config FILE]

Checks everything in a configuration file that can be checked without starting: keys, types, ranges,
addresses, rules, certificates and their keys, list paths. Prints every problem, one a line, to
standard error.

  --config FILE  the file to check (default ${DEFAULT_CONFIG_FILE})
  --help         this text

Exit code: 0 the file is valid, 2 it has a problem or can't be read.`;

/** The disk and the clock, for `checkFiles`. */
export const FILE_FACTS: FileFacts = {
  readText: (path) => Deno.readTextFile(path),
  stat: (path) => Deno.stat(path),
  realPath: (path) => Deno.realPath(path),
  interfaces: async () => {
    const [native, { openPackets }, { KernelTables }] = await Promise.all([
      openNative(),
      import("../native/system.ts"),
      import("../floating/mod.ts"),
    ]);
    const packets = openPackets();
    if (native === null || packets === null) return null;
    return new KernelTables({ native, packets }).interfaces();
  },
  listening: async () => {
    const { openProcess } = await import("../native/system.ts");
    const process = openProcess();
    return process === null ? [] : listeningSockets(process);
  },
  checkServices: checkCatalogue,
  nowMs: () => Date.now(),
};

/** `svc check-config`; returns the exit code. */
export async function checkConfig(args: string[]): Promise<number> {
  let path: string | undefined;
  try {
    const { values } = parseArgs({
      args,
      options: { config: { type: "string" }, help: { type: "boolean" } },
    });
    if (values.help) {
      console.log(HELP);
      return 0;
    }
    path = values.config;
  } catch (error) {
    const reason = messageOf(error).split("\n", 1)[0];
    console.error(`svc check-config: ${reason} (svc check-config --help tells more)`);
    return EXIT_INVALID;
  }
  const loaded = await loadConfig(path);
  const { config, draft, source, fromDefaults } = loaded;
  const problems = [...loaded.problems];
  if (draft !== null) problems.push(...await checkFiles(draft, FILE_FACTS, source));
  problems.sort((a, b) => a.line - b.line);
  for (const problem of problems) console.error(formatProblem(problem));
  const isInvalid = problems.some(({ severity }) => severity !== "note");
  if (config === null || isInvalid) return EXIT_INVALID;
  const native = openNative();
  // The service may be started with another limit than this command: that is for the log to say.
  const warning = native === null ? null : fileLimitWarning(config, fileLimit(native));
  if (warning !== null) console.error(`warning: as it is started here, ${warning}`);
  const from = fromDefaults ? `${source.file} is missing, the built-in defaults` : source.file;
  console.log(`${from}: ok, ${summary(config)}`);
  return 0;
}

/** What a valid configuration comes to, in one line. */
function summary({ server, upstreams, recursion, filter }: Config): string {
  const { dot, doh, doq } = server.tls;
  const listeners = 2 * server.listen.length + dot.length + doh.length + doq.length;
  const resolving = recursion.enabled
    ? "recursion"
    : upstreams.length > 0
    ? counted(upstreams.length, "upstream")
    : "no upstream of its own (Quad9 is asked)";
  return [
    counted(listeners, "listener"),
    resolving,
    counted(filter.lists.length, "list"),
    counted(filter.rules.length, "rule"),
  ].join(", ");
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
