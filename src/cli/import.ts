import { formatProblem } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import type { Actor } from "../model/mod.ts";
import { LONE_NODE, seedSource } from "../node/seed.ts";
import { importSeed, openStore } from "../store/mod.ts";
import { loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";
import { VERSION } from "../version.ts";

const HELP = `svc import [--config FILE]

Takes the lists and rules of [filter] into the store of a stopped node: those that came from the file
before are replaced, everything else stays. Refused on a node in a cluster.

  --config FILE  the configuration (default /etc/svc/svc.toml)
  --help         this text`;

const ACTOR: Actor = { kind: "cli", name: null, address: null };

/** `svc import`; returns the exit code. */
export async function importConfig(args: string[]): Promise<number> {
  const options = readOptions("import", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems } = await loadConfig(options.config);
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null) return 2;
  if (config.cluster !== null) {
    throw new SvcError(
      "conflict",
      "cluster: a node in a cluster takes changes through its API only",
    );
  }
  const store = await openStore({
    directory: config.store.dir,
    clock: { nowMs: () => Date.now() },
    program: VERSION,
    node: LONE_NODE,
  });
  try {
    const outcome = await importSeed(store, seedSource(config.filter), ACTOR);
    for (const [kind, counts] of Object.entries(outcome as Record<string, Counts>)) {
      const { added, replaced, removed } = counts;
      console.log(`${kind}: ${added} added, ${replaced} replaced, ${removed} removed`);
    }
  } finally {
    await store.close();
  }
  return 0;
}

/** What became of the lists, or of the rules. */
interface Counts {
  readonly added: number;
  readonly replaced: number;
  readonly removed: number;
}
