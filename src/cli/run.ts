import { join } from "node:path/posix";
import { formatHostPort } from "../addr/mod.ts";
import type { ClockJudge } from "../clock/mod.ts";
import { type Config, formatProblem } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import {
  compileRules,
  type DnsOptions,
  DnsSupervisor,
  type DnsUpstream,
  QuerylogSupervisor,
} from "../isolate/mod.ts";
import { denoDisk, type HttpGet, ListKeeper, nodeHttpGet, ServiceCatalogue } from "../lists/mod.ts";
import { log } from "../log.ts";
import {
  type FileLimit,
  openNative,
  raiseFileLimit,
  returnLargeAllocations,
  stepHelpersBack,
  takeTurns,
  Turn,
} from "../native/mod.ts";
import { openNodeStore, type Replicator } from "../store/mod.ts";
import { DNS_CERTIFICATE, ServerCertificate } from "./certificate.ts";
import { OdohKeys } from "./odoh_keys.ts";
import { loadConfig } from "./check_config.ts";
import { dnsUpstreams, wireNames } from "./dns_upstreams.ts";
import { hostLookup } from "./host_lookup.ts";
import { listsOf, seedSource, usesOf } from "./lists_of.ts";
import { NodeLists, servicesPlace } from "./lists_port.ts";
import { connectionProblems } from "./connections.ts";
import { Filtering } from "./filtering.ts";
import { notBuilt } from "./not_built.ts";
import { familiesOf } from "./node_status.ts";
import { readOptions } from "./options.ts";
import { CONNECTIONS_MAX, fileLimitWarning, openMaxOf, workersOf } from "./open_files.ts";
import { LONE_NODE } from "./open_users.ts";
import { Policy } from "./policy.ts";
import { dnsProblems, openResolverProblems, Problems } from "./problems.ts";
import { type RunningApi, serveApi, type ServeApiOptions } from "./serve_api.ts";
import { Signals } from "./signals.ts";
import { StopTime } from "./stop_time.ts";
import { slowSample, Telemetry } from "./telemetry.ts";
import { trustedClock } from "./trusted_clock.ts";
import { UncaughtErrors } from "./uncaught.ts";
import { RELEASED_MS, VERSION } from "./version.ts";

const HELP = `svc run [--config FILE]

Answers DNS queries until it gets SIGTERM or SIGINT; SIGHUP reloads lists and
certificates.

  --config FILE  the configuration (default /etc/svc/svc.toml; built-in defaults if that is missing)
  --help         this text`;

const TCP_LIMITS = {
  connectionsMax: CONNECTIONS_MAX.tcp,
  connectionsPerClientMax: 128,
  queriesMax: 128,
  idleMs: 10_000,
  unreadBytesMax: 1024 * 1024,
};
/** Clients of encrypted transports keep their connections: phones ask all day. */
const DOT_LIMITS = {
  connectionsMax: CONNECTIONS_MAX.dot,
  connectionsPerClientMax: 128,
  queriesMax: 128,
  idleMs: 30_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 5_000,
  handshakesMax: 256,
};
/** Few, and soon given up: see `DoqLimits.queriesMax` for what each stream may hold. */
const DOQ_LIMITS = {
  connectionsMax: 256,
  connectionsPerClientMax: 16,
  queriesMax: 16,
  idleMs: 30_000,
  requestMs: 5_000,
  handshakeMs: 5_000,
  handshakesMax: 128,
};
const DOH_LIMITS = {
  connectionsMax: CONNECTIONS_MAX.doh,
  connectionsPerClientMax: 128,
  requestsMax: 128,
  idleMs: 60_000,
  requestMs: 10_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 5_000,
  handshakesMax: 256,
};

/** `svc run`; returns the exit code once the service has stopped. */
export async function run(args: string[]): Promise<number> {
  const options = readOptions("run", HELP, args, { config: { type: "string" } });
  if (typeof options === "number") return options;
  const { config, problems, fromDefaults, source } = await loadConfig(options.config);
  for (const problem of problems) console.error(formatProblem(problem));
  if (config === null) return 2;
  const native = openNative();
  if (native !== null) {
    returnLargeAllocations(native); // Before anything large is allocated.
    takeTurns(native, Turn.Request);
    stepHelpersBack(native);
  }
  const signals = new Signals();
  const files = native === null ? null : raiseFileLimit(native);
  log.info("starting", {
    version: VERSION,
    deno: Deno.version.deno,
    ...(files !== null && { openFiles: files.soft }),
  });
  const tooFewFiles = fileLimitWarning(config, files);
  if (tooFewFiles !== null) log.warn(tooFewFiles);
  if (fromDefaults) log.info("no configuration file: built-in defaults", { looked: source.file });
  const missing = notBuilt(config);
  if (missing.length > 0) log.warn("not built yet, and so not in force", { keys: missing });
  const { listen, tls } = config.server;
  if (tls.requireClientId && listen.length > 0) {
    log.warn("plain DNS gets no answers: server.tls.require_client_id asks for a client ID", {
      listen: listen.map(formatHostPort),
    });
  }
  return await serve(config, signals, files);
}

/** Runs the node: store, lists, policy, DNS, API; returns the exit code once it has stopped. */
async function serve(
  config: Config,
  signals: Signals,
  fileLimit: FileLimit | null,
): Promise<number> {
  const startedAtMs = Date.now();
  const telemetry = new Telemetry(config.telemetry);
  const problems = new Problems();
  const clock = trustedClock(problems);
  const { replicator, store, close } = await openStoreOf(config, problems, clock.judge);
  let supervisor: DnsSupervisor | null = null;
  let policy: Policy | null = null;
  const get = nodeHttpGet({
    lookup: async (hostname, signal) => {
      // Nothing is downloaded before the first query is answered.
      if (supervisor === null) throw new SvcError("unavailable", "the service is still starting");
      return await hostLookup(supervisor)(hostname, signal);
    },
  });
  const keeper = await openKeeper(config, problems, get);
  const services = new ServiceCatalogue(servicesPlace(config.filter), keeper, denoDisk);
  const filtering = new Filtering({
    onFailure: config.filter.onFailure,
    keeper,
    rulesFile: join(config.store.dir, "rules.bin"),
    lists: listsOf(replicator.state),
    uses: () => usesOf(replicator.state),
    services,
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
    compile: compileRules,
  });
  const workers = workersOf(config);
  const { files, serverName } = config.server.tls;
  const certificate = await ServerCertificate.open(
    { place: DNS_CERTIFICATE, files, serverName },
    clock.judge,
  );
  const upstreams = await dnsUpstreams(config, (problem) => problems.add(problem));
  const odoh = config.server.tls.odoh ? new OdohKeys() : null;
  const openMax = openMaxOf(fileLimit, workers);
  const options = dnsOptions(config, upstreams, certificate, odoh, seed, workers, openMax);
  const querylog = querylogOf(config, options, workers);
  if (querylog !== null) {
    querylog.onNewest = (newestMs) => clock.judge.witness(newestMs);
    querylog.start();
  }
  const logQueues = querylog?.queues ?? [];
  supervisor = new DnsSupervisor({ ...options, logQueues }, workers, policy.data);
  await supervisor.start();
  const uncaught = new UncaughtErrors({ target: globalThis, nowMs: () => performance.now() });
  uncaught.arm(); // From here on nothing of this isolate ends DNS.
  problems.watch(() => uncaught.problems);
  odoh?.rotateDaily((seeds) => supervisor?.renewOdoh(seeds));
  log.info("answering", {
    listen: supervisor.listening.map(formatHostPort),
    ...encryptedAddresses(supervisor),
    isolates: workers,
  });
  const inForce = follow(replicator, policy, filtering, problems);
  await uncaught.survive(() => filtering.start());
  const dns = supervisor;
  problems.watch(() => filtering.problems);
  problems.watch(() => certificate?.problems ?? []);
  problems.watch(() => dnsProblems(dns, upstreams));
  problems.watch(() => dns.left.problems);
  problems.watch(() => connectionProblems(dns.reports, config.querylog.anonymize));
  problems.watch(() =>
    openResolverProblems(replicator.state.settings.spec, config.server.tls, dns.listeners)
  );
  problems.watch(() => telemetry.problems);
  problems.watch(() => querylog?.problems ?? []);
  const node: ServeApiOptions = {
    config,
    node: LONE_NODE,
    clock: clock.judge,
    startedAtMs,
    store: { replicator, store },
    problems: () => problems.now(),
    policy,
    dns: supervisor,
    upstreams: options.upstreams.map(({ address }) => address),
    lists: new NodeLists({
      config: config.filter,
      keeper,
      filtering,
      services,
      lists: () => listsOf(replicator.state),
      get,
      disk: denoDisk,
    }),
    get,
    querylog,
    builtAtMs: () => filtering.builtAtMs,
    buildMs: () => filtering.buildMs,
    exportFailures: () => telemetry.failures,
    uncaughtErrors: () => uncaught.count,
    inForce,
  };
  const api = await startApi(problems, node);
  problems.watch(() => api?.problems ?? []);
  await uncaught.survive(() =>
    telemetry.start({
      config,
      node: node.node,
      startedAtMs,
      dns: supervisor,
      lookup: hostLookup(supervisor),
      upstreams: node.upstreams,
      families: () => familiesOf(node),
    })
  );
  signals.onHangup = () => {
    log.info("reloading the lists");
    void filtering.reload();
    void api?.renewTls();
    void certificate?.renewFor((identity) => dns.renewCertificate(identity));
  };
  const signal = await signals.stop;
  log.info("stopping", { signal });
  signals.onHangup = () => {};
  filtering.stop();
  clock.stop();
  querylog?.endWatchers();
  const time = new StopTime(() => performance.now());
  const graceMs = time.firstMs();
  // Whatever one of them fails of, the others come to their end.
  await Promise.all([
    uncaught.survive(() => dns.stop(graceMs)),
    // A change that was taken is durable before it is answered.
    uncaught.survive(() => api?.stop(graceMs)),
    uncaught.survive(() => telemetry.stop(graceMs)),
  ]);
  // Last: it has what was answered until now.
  await uncaught.survive(() => querylog?.stop(time.lastMs()));
  await close();
  log.info("stopped");
  return 0;
}

/** Addresses of the encrypted listeners by protocol, for a log line. */
function encryptedAddresses({ listeners }: DnsSupervisor): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const { protocol, address } of listeners) {
    if (protocol === "udp" || protocol === "tcp") continue;
    (found[protocol] ??= []).push(formatHostPort(address));
  }
  return found;
}

/** Opens the node's store; where that can't be, one in memory, unless it is to stay closed. */
async function openStoreOf(config: Config, problems: Problems, clock: ClockJudge) {
  const { filter, store: { dir } } = config;
  const opened = await openNodeStore(seedSource(filter), {
    directory: dir,
    node: LONE_NODE,
    onFailure: filter.onFailure,
    clock,
    program: VERSION,
  });
  // An audit log that can't be read says so to who asks for it.
  const audit = await opened.store.audit({ limit: 1 }).catch(() => null);
  for (const { time } of audit?.entries ?? []) clock.witness(Date.parse(time));
  problems.watch(() => opened.problems);
  return opened;
}

/**
 * Puts each change into force. Returns what resolves once every change applied so far holds for the
 * next query.
 */
function follow(
  replicator: Replicator,
  policy: Policy,
  filtering: Filtering,
  problems: Problems,
): () => Promise<void> {
  let inForce = Promise.resolve();
  /** Why the last change could not be put into force. */
  let failure: string | null = null;
  problems.watch(() => failure === null ? [] : [`a change is not in force: ${failure}`]);
  let { lists } = replicator.state.collections;
  replicator.subscribe(({ change, state }) => {
    if (change?.type.startsWith("user_")) return; // Users decide about no query.
    if (state.collections.lists !== lists) filtering.setLists(listsOf(state));
    lists = state.collections.lists;
    inForce = policy.update(state).then(
      () => {
        failure = null;
      },
      (error) => {
        failure = messageOf(error);
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

/** Opens the folder of kept lists; where that can't be, one for this run alone. */
async function openKeeper(
  config: Config,
  problems: Problems,
  get: HttpGet,
): Promise<ListKeeper> {
  const options = {
    get,
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

/** What keeps the query log; `null` where there is to be none. */
function querylogOf(
  { querylog }: Config,
  { upstreams }: DnsOptions,
  workers: number,
): QuerylogSupervisor | null {
  if (!querylog.enabled) return null;
  return new QuerylogSupervisor({
    directory: querylog.dir,
    maxEntries: querylog.maxEntries,
    retentionMs: querylog.retentionMs,
    anonymize: querylog.anonymize,
    releasedMs: RELEASED_MS,
    upstreams: upstreams.map(({ address }) => address),
    writers: workers,
  });
}

function dnsOptions(
  config: Config,
  upstreams: readonly DnsUpstream[],
  certificate: ServerCertificate | null,
  odoh: OdohKeys | null,
  seed: number,
  workers: number,
  openMax: number,
): DnsOptions {
  const { cache, security, server: { tls, rateLimit } } = config;
  return {
    seed,
    listen: config.server.listen,
    upstreams,
    openMax,
    cacheBytes: Math.floor(cache.sizeBytes / workers),
    ttl: { min: cache.minTtl, max: cache.maxTtl, negativeMax: cache.negativeMaxTtl },
    serveStale: Math.floor(cache.serveStaleMs / 1_000),
    prefetch: cache.prefetch,
    rebindingExempt: security.rebindingProtection ? wireNames(security.rebindingExempt) : null,
    failClosed: config.filter.onFailure === "closed",
    traces: slowSample(config.telemetry),
    rateLimit: rateLimit.queriesPerSecond === 0 ? null : rateLimit,
    requireClientId: tls.requireClientId,
    tcp: TCP_LIMITS,
    tls: certificate === null ? null : {
      identity: certificate.identity,
      serverName: tls.serverName,
      dot: tls.dot,
      doh: tls.doh,
      doq: tls.doq,
      dotLimits: DOT_LIMITS,
      doqLimits: DOQ_LIMITS,
      dohLimits: DOH_LIMITS,
      odohSeeds: odoh?.seeds ?? [],
    },
  };
}
