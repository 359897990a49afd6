import { join } from "node:path/posix";
import { formatHostPort, type HostPort, parseHostPort } from "../addr/mod.ts";
import { type Config, formatProblem } from "../config/mod.ts";
import { parseName } from "../dns/mod.ts";
import { invariant, messageOf, SvcError } from "../errors.ts";
import { type DnsOptions, DnsSupervisor, type DnsUpstream } from "../isolate/mod.ts";
import { denoDisk, ListKeeper, nodeHttpGet } from "../lists/mod.ts";
import { log } from "../log.ts";
import { openNative, returnLargeAllocations } from "../native/mod.ts";
import { type LocalReplicator, openNodeStore } from "../store/mod.ts";
import { loadConfig } from "./check_config.ts";
import { listsOf, seedSource } from "./lists_of.ts";
import { NodeLists, readServices } from "./lists_port.ts";
import { Filtering } from "./filtering.ts";
import { notBuilt } from "./not_built.ts";
import { readOptions } from "./options.ts";
import { LONE_NODE } from "./open_users.ts";
import { ownLookup } from "./own_lookup.ts";
import { Policy } from "./policy.ts";
import { type RunningApi, serveApi, type ServeApiOptions } from "./serve_api.ts";
import { holdStore, type StoreHold } from "./store_lock.ts";
import { VERSION } from "./version.ts";

const HELP = `svc run [--config FILE]

Answers DNS queries until it gets SIGTERM or SIGINT; SIGHUP reloads the lists.

  --config FILE  the configuration (default /etc/svc/svc.toml; built-in defaults if that is missing)
  --help         this text`;

/** Longest wait for queries in flight at the end; the process is gone within two seconds. */
const STOP_GRACE_MS = 1_500;
/** The same for requests; a change that was taken is durable before it is answered. */
const API_STOP_GRACE_MS = 1_000;
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

/** Runs the node: store, lists, policy, DNS, API; returns the exit code once it has stopped. */
async function serve(config: Config): Promise<number> {
  const startedAtMs = Date.now();
  const stop = stopSignal();
  const problems = new Problems();
  const { replicator, store, close } = await openStoreOf(config, problems);
  let supervisor: DnsSupervisor | null = null;
  let policy: Policy | null = null;
  const keeper = await openKeeper(
    config,
    problems,
    () => supervisor?.listening ?? config.server.listen,
  );
  const filtering = new Filtering({
    onFailure: config.filter.onFailure,
    keeper,
    rulesFile: join(config.store.dir, "rules.bin"),
    lists: listsOf(replicator.state),
    updateInterval: () => replicator.state.settings.spec.list_update_interval,
    publish: (base) => policy?.rebase(base) ?? Promise.resolve(),
  });
  const base = await filtering.first();
  const { seed } = filtering; // Kept rules bring their own.
  policy = new Policy({
    seed,
    state: replicator.state,
    base,
    publish: (data) => supervisor?.publish(data) ?? Promise.resolve(),
  });
  const workers = config.server.workers === 0 ? automaticWorkers() : config.server.workers;
  const options = dnsOptions(config, seed, workers);
  supervisor = new DnsSupervisor(options, workers, policy.data);
  await supervisor.start();
  log.info("answering", {
    listen: supervisor.listening.map(formatHostPort),
    isolates: workers,
  });
  const inForce = follow(replicator, policy, filtering, problems);
  filtering.start();
  const api = await startApi(problems, {
    config,
    node: LONE_NODE,
    startedAtMs,
    store: { replicator, store },
    problems: () => problems.now(filtering.problem, supervisor),
    policy,
    dns: supervisor,
    upstreams: options.upstreams.map(({ address }) => address),
    lists: new NodeLists(keeper, filtering, await readServices(config.filter)),
    builtAtMs: () => filtering.builtAtMs,
    inForce,
  });
  const onHangup = () => {
    log.info("reloading the lists");
    void filtering.reload();
    void api?.renewTls();
  };
  Deno.addSignalListener("SIGHUP", onHangup);
  const signal = await stop;
  log.info("stopping", { signal });
  Deno.removeSignalListener("SIGHUP", onHangup);
  filtering.stop();
  await Promise.all([supervisor.stop(STOP_GRACE_MS), api?.stop(API_STOP_GRACE_MS)]);
  await close();
  log.info("stopped");
  return 0;
}

/** What is wrong with the node, for its status. */
class Problems {
  readonly #lasting: string[] = [];
  /** The last change could not be put into force. */
  policy: string | null = null;

  /** Notes something that stays wrong until the next start. */
  add(problem: string): void {
    this.#lasting.push(problem);
  }

  now(filtering: string | null, dns: DnsSupervisor | null): string[] {
    const found = [...this.#lasting];
    if (filtering !== null) found.push(`filter: ${filtering}`);
    if (this.policy !== null) found.push(`a change is not in force: ${this.policy}`);
    const reports = dns?.reports ?? [];
    const upstreams = reports.flatMap((report) => report.upstreams);
    if (upstreams.length > 0 && upstreams.every(({ healthy }) => !healthy)) {
      found.push("no upstream answers");
    }
    return found;
  }
}

/** Opens the node's store; where that can't be, one in memory, unless it is to stay closed. */
async function openStoreOf(config: Config, problems: Problems) {
  const { filter, store: { dir } } = config;
  let hold: StoreHold | null = null;
  try {
    hold = await holdStore(dir);
  } catch (error) {
    // Another process that uses the store is no failure of it: two must not write.
    const isInUse = error instanceof SvcError && error.code === "conflict";
    if (isInUse || filter.onFailure === "closed") throw error;
  }
  const opened = await openNodeStore(seedSource(filter), {
    directory: dir,
    node: LONE_NODE,
    onFailure: filter.onFailure,
    clock: { nowMs: () => Date.now() },
    program: VERSION,
  });
  for (const problem of opened.problems) problems.add(problem);
  const close = async () => {
    await opened.replicator.close();
    opened.store.close();
    hold?.release();
  };
  return { ...opened, close };
}

/**
 * Puts each change into force. Returns what resolves once every change applied so far holds for the
 * next query.
 */
function follow(
  replicator: LocalReplicator,
  policy: Policy,
  filtering: Filtering,
  problems: Problems,
): () => Promise<void> {
  let inForce = Promise.resolve();
  replicator.subscribe((change, state) => {
    // Users and notes decide about no query.
    if (change.type === "note" || change.type.startsWith("user_")) return;
    filtering.setLists(listsOf(state));
    inForce = policy.update(state).then(
      () => {
        problems.policy = null;
      },
      (error) => {
        problems.policy = messageOf(error);
        log.error("a change can't be put into force", { error });
      },
    );
  });
  return () => inForce;
}

/** Serves the API; without it DNS goes on, and the log and the status say so. */
async function startApi(
  problems: Problems,
  options: ServeApiOptions,
): Promise<RunningApi | null> {
  try {
    return await serveApi(options);
  } catch (error) {
    problems.add(messageOf(error));
    log.error("the API can't be served; DNS goes on without it", { error });
    return null;
  }
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

/** Opens the folder of kept lists; where that can't be, one for this run alone. */
async function openKeeper(
  config: Config,
  problems: Problems,
  listening: () => readonly HostPort[],
): Promise<ListKeeper> {
  const options = {
    get: nodeHttpGet({ lookup: ownLookup(listening) }),
    clock: { nowMs: () => Date.now() },
    chance: Math.random,
    disk: denoDisk,
    localListsDirectory: config.filter.localListsDir,
  };
  const directory = join(config.store.dir, "lists");
  try {
    return await ListKeeper.open(directory, options);
  } catch (error) {
    const problem = `store.path: ${directory}: ${messageOf(error)}`;
    if (config.filter.onFailure === "closed") throw new SvcError("unavailable", problem);
    problems.add(`${problem}; downloaded lists are gone with this process`);
    log.error("lists can't be kept", { directory, error });
    return await ListKeeper.open(await Deno.makeTempDir({ prefix: "svc-lists-" }), options);
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
