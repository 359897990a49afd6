import { formatHostPort } from "../addr/mod.ts";
import { openMember } from "../cluster/mod.ts";
import { type ClusterConfig, type Config, formatProblem } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { openStore } from "../store/mod.ts";
import { giveBackHeap } from "../free_memory.ts";
import { VERSION } from "../version.ts";
import { DEFAULT_CONFIG_FILE, loadConfig } from "./load_config.ts";
import { readOptions } from "./options.ts";

const EXIT_INVALID = 2;
/** Between two times that a witness gives back what it has no use for: it has little to do. */
const GIVE_BACK_MS = 30_000;

const HELP = `svc witness [--config FILE]

Votes in a cluster, so that two nodes go on when one of them is lost: it keeps a copy of the log and
the configuration, never leads, and serves neither DNS nor an API. It needs no privileges. Runs until
SIGTERM or SIGINT; SIGHUP reads its certificate again. Logs each change of the cluster's leader.

  --config FILE  the configuration, [cluster] and [store] (default ${DEFAULT_CONFIG_FILE})
  --help         this text

Exit code: 0 done, 1 failed, 2 wrong usage or invalid configuration.`;

/** `svc witness`; returns the exit code once it has stopped. */
export async function witness(args: string[]): Promise<number> {
  const options = readOptions("witness", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems } = await loadConfig(options.config, "witness");
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null || config.cluster === null) return EXIT_INVALID;
  await vote(config, config.cluster);
  return 0;
}

async function vote({ store: { dir } }: Config, cluster: ClusterConfig): Promise<void> {
  const stop = Promise.withResolvers<Deno.Signal>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => stop.resolve(signal));
  }
  const nowMs = () => Date.now();
  const { node } = cluster;
  log.info("starting", { version: VERSION, deno: Deno.version.deno, witness: node });
  await using opened = new AsyncDisposableStack();
  const options = { directory: dir, clock: { nowMs }, program: VERSION, node };
  const { store, applier } = opened.adopt(await openStore(options), (one) => one.close());
  const { channel, start, stop: end } = await openMember({
    ...{ config: cluster, directory: dir, store, applier, nowMs },
    ...{ version: VERSION, isWitness: true },
    onQuestion: async () => {
      await undefined;
      throw new SvcError("unavailable", "a witness answers no DNS, so it has no statistics");
    },
  });
  opened.defer(end);
  Deno.addSignalListener("SIGHUP", () => void channel.renew());
  await start();
  // What reading the program took, above all: a heap this small is collected once in a long while.
  Deno.unrefTimer(setInterval(giveBackHeap, GIVE_BACK_MS));
  log.info("voting", { listen: channel.listening.map(formatHostPort) });
  log.info("stopping", { signal: await stop.promise });
}
