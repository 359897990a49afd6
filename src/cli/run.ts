import { join } from "node:path/posix";
import { formatHostPort, type HostPort, parseHostPort } from "../addr/mod.ts";
import { type Config, formatProblem } from "../config/mod.ts";
import { parseName } from "../dns/mod.ts";
import { invariant, messageOf, SvcError } from "../errors.ts";
import { type DnsOptions, DnsSupervisor, type DnsUpstream } from "../isolate/mod.ts";
import { denoDisk, ListKeeper, nodeHttpGet } from "../lists/mod.ts";
import { log } from "../log.ts";
import { openNative, returnLargeAllocations } from "../native/mod.ts";
import { loadConfig } from "./check_config.ts";
import { configState, listsOf } from "./config_state.ts";
import { Filtering } from "./filtering.ts";
import { notBuilt } from "./not_built.ts";
import { readOptions } from "./options.ts";
import { ownLookup } from "./own_lookup.ts";
import { Policy } from "./policy.ts";
import { VERSION } from "./version.ts";

const HELP = `svc run [--config FILE]

Answers DNS queries until it gets SIGTERM or SIGINT; SIGHUP reloads the lists.

  --config FILE  the configuration (default /etc/svc/svc.toml; built-in defaults if that is missing)
  --help         this text`;

/** Longest wait for queries in flight at the end; the process is gone within two seconds. */
const STOP_GRACE_MS = 1_500;
/** More isolates than this win nothing: the system's part of a query is the larger one. */
const WORKERS_AUTO_MAX = 4;
const TCP_LIMITS = {
  connectionsMax: 1_024,
  connectionsPerClientMax: 128,
  queriesMax: 128,
  idleMs: 10_000,
  unreadBytesMax: 1024 * 1024,
};
/** Asked where no upstream is configured: Quad9 (RFC 8932 policy, no filtering of ours). */
const DEFAULT_UPSTREAMS = ["9.9.9.9:53", "149.112.112.112:53"];
const DEFAULT_TIMEOUT_MS = 2_000;

/** `svc run`; returns the exit code once the service has stopped. */
export async function run(args: string[]): Promise<number> {
  const options = readOptions("run", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems, fromDefaults, source } = await loadConfig(options.config);
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null) return 2;
  const native = openNative();
  if (native !== null) returnLargeAllocations(native); // Before anything large is allocated.
  log.info("starting", { version: VERSION, deno: Deno.version.deno });
  if (fromDefaults) log.info("no configuration file: built-in defaults", { looked: source.file });
  const missing = notBuilt(config);
  if (missing.length > 0) log.warn("not built yet, and so not in force", { keys: missing });
  return await serve(config);
}

async function serve(config: Config): Promise<number> {
  let supervisor: DnsSupervisor | null = null;
  const keeper = await openKeeper(config, () => supervisor?.listening ?? config.server.listen);
  let policy: Policy | null = null;
  const state = configState(config.filter);
  const filtering = new Filtering({
    onFailure: config.filter.onFailure,
    keeper,
    rulesFile: join(config.store.dir, "rules.bin"),
    lists: listsOf(state),
    updateInterval: () => state.settings.spec.list_update_interval,
    publish: (base) => policy?.rebase(base) ?? Promise.resolve(),
  });
  const base = await filtering.first();
  const { seed } = filtering; // Kept rules bring their own.
  policy = new Policy({
    seed,
    state,
    base,
    publish: (data) => supervisor?.publish(data) ?? Promise.resolve(),
  });
  const workers = config.server.workers === 0 ? automaticWorkers() : config.server.workers;
  const stop = stopSignal();
  supervisor = new DnsSupervisor(dnsOptions(config, seed, workers), workers, policy.data);
  await supervisor.start();
  log.info("answering", {
    listen: supervisor.listening.map(formatHostPort),
    isolates: workers,
  });
  filtering.start();
  const onHangup = () => {
    log.info("reloading the lists");
    void filtering.reload();
  };
  Deno.addSignalListener("SIGHUP", onHangup);
  const signal = await stop;
  log.info("stopping", { signal });
  Deno.removeSignalListener("SIGHUP", onHangup);
  filtering.stop();
  await supervisor.stop(STOP_GRACE_MS);
  log.info("stopped");
  return 0;
}

/** Resolves with the signal that asks for the end. A second one ends at once. */
function stopSignal(): Promise<Deno.Signal> {
  const { promise, resolve } = Promise.withResolvers<Deno.Signal>();
  let asked = false;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => {
      if (asked) Deno.exit(1);
      asked = true;
      resolve(signal);
    });
  }
  return promise;
}

function automaticWorkers(): number {
  // Half of the cores: the kernel's part of the work runs on the others.
  return Math.max(1, Math.min(WORKERS_AUTO_MAX, Math.floor(navigator.hardwareConcurrency / 2)));
}

function openKeeper(config: Config, listening: () => readonly HostPort[]): Promise<ListKeeper> {
  const directory = join(config.store.dir, "lists");
  try {
    return ListKeeper.open(directory, {
      get: nodeHttpGet({ lookup: ownLookup(listening) }),
      clock: { nowMs: () => Date.now() },
      chance: Math.random,
      disk: denoDisk,
      localListsDirectory: config.filter.localListsDir,
    });
  } catch (error) {
    throw new SvcError("unavailable", `store.path: ${directory}: ${messageOf(error)}`);
  }
}

function dnsOptions(config: Config, seed: number, workers: number): DnsOptions {
  const { cache } = config;
  return {
    seed,
    listen: config.server.listen,
    upstreams: dnsUpstreams(config),
    cacheBytes: Math.floor(cache.sizeBytes / workers),
    ttl: { min: cache.minTtl, max: cache.maxTtl, negativeMax: cache.negativeMaxTtl },
    serveStale: Math.floor(cache.serveStaleMs / 1_000),
    prefetch: cache.prefetch,
    tcp: TCP_LIMITS,
  };
}

function dnsUpstreams({ upstreams }: Config): DnsUpstream[] {
  if (upstreams.length === 0) {
    log.info("no upstream is configured: asking Quad9", { upstreams: DEFAULT_UPSTREAMS });
    return DEFAULT_UPSTREAMS.map((address) => {
      const endpoint = parseHostPort(address);
      invariant(endpoint !== null, `${address} is an address`);
      return { address, endpoint, timeoutMs: DEFAULT_TIMEOUT_MS, domains: [] };
    });
  }
  return upstreams.filter((upstream) => upstream.kind === "udp").map((upstream) => ({
    address: upstream.address,
    endpoint: upstream.endpoint,
    timeoutMs: upstream.timeoutMs,
    domains: upstream.domains.map((domain) => {
      const name = parseName(domain);
      invariant(name !== null, `${domain} was checked as a name`);
      return name;
    }),
  }));
}
