import { dirname, resolve } from "node:path/posix";
import {
  type Config,
  defaultConfig,
  parseConfig,
  type ParseOptions,
  type Problem,
  type Source,
} from "../config/mod.ts";
import { messageOf } from "../errors.ts";

/** Read where no `--config` names another; it may be missing. */
export const DEFAULT_CONFIG_FILE = "/etc/svc/svc.toml";

/** A configuration as it was found on disk. */
export interface LoadedConfig {
  /** `null` if any problem is an `error`. */
  readonly config: Config | null;
  /** What `checkFiles` can check in spite of errors. */
  readonly draft: Config | null;
  readonly problems: Problem[];
  readonly source: Source;
  /** Nobody named a file and the default one is missing: built-in defaults. */
  readonly fromDefaults: boolean;
}

/**
 * Reads the configuration from `path`, else from the default file, else from the built-in defaults.
 * A file that can't be read is a problem like any other.
 */
export async function loadConfig(
  path: string | undefined,
  role?: ParseOptions["role"],
): Promise<LoadedConfig> {
  const file = path ?? DEFAULT_CONFIG_FILE;
  const directory = dirname(resolve(file));
  const options: ParseOptions = { file, directory, ...(role && { role }) };
  try {
    return { ...parseConfig(await Deno.readTextFile(file), options), fromDefaults: false };
  } catch (error) {
    const source: Source = { file, lineOf: () => 0 };
    const isMissing = error instanceof Deno.errors.NotFound;
    // A witness has no defaults: it is nothing without its cluster.
    if (isMissing && path === undefined && role !== "witness") {
      const config = defaultConfig(directory);
      return { config, draft: config, problems: [], source, fromDefaults: true };
    }
    const message = isMissing
      ? "is not there: make it, or name another with --config"
      : error instanceof Deno.errors.PermissionDenied
      ? "may not be read: give this user the right to"
      : `can't be read: ${messageOf(error)}`;
    const problem: Problem = { file, line: 0, key: "", message, severity: "error" };
    return { config: null, draft: null, problems: [problem], source, fromDefaults: false };
  }
}
