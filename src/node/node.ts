import { formatHostPort } from "../addr/mod.ts";
import type { Config } from "../config/mod.ts";
import { DnsSupervisor, PARKED_MS } from "../isolate/mod.ts";
import { denoDisk } from "../lists/mod.ts";
import { log } from "../log.ts";
import type { FileLimit } from "../native/mod.ts";
import type { Memory } from "../process/mod.ts";
import { type Connected, connectionProblems } from "./connections.ts";
import { keepDailyBackups } from "./daily_backups.ts";
import { missingUpstreams } from "./dns_upstreams.ts";
import { ExpiredRules } from "./expired_rules.ts";
import { follow } from "./follow.ts";
import { type Former, saveFormer } from "./former.ts";
import { hostLookup } from "./host_lookup.ts";
import { listsOf } from "./lists_of.ts";
import { NodeLists } from "./lists_port.ts";
import { familiesOf } from "./node_status.ts";
import { type NodeWebhooks, startWebhooks } from "./node_webhooks.ts";
import { type NodeParts, openParts } from "./node_parts.ts";
import { nodeName } from "./open_parts.ts";
import { OwnAddresses } from "./own_addresses.ts";
import { dnsProblems, openResolverProblems, Problems } from "./problems.ts";
import { type RunningApi, type ServeApiOptions, tryServeApi } from "./serve_api.ts";
import { type SecondStage, secondStage } from "./second_stage.ts";
import { closeDnsSockets, namedSockets } from "./sockets.ts";
import { StopTime } from "./stop_time.ts";
import type { TakeOver } from "./take_over.ts";
import { UncaughtErrors } from "./uncaught.ts";

/** Longest time for requests to end before the store is left to another process. */
const SUSPEND_MS_MAX = 2_000;
/** The same for queries, and for what is written of them. */
const RETIRE_MS_MAX = 5_000;

/** A node: store, lists, policy, DNS and API, each over those before it. Opened, started, stopped. */
export class Node {
  readonly #parts: NodeParts;
  /** Closes what was opened, once everything that ran has ended. */
  readonly #opened: AsyncDisposableStack;
  readonly #uncaught = new UncaughtErrors({
    target: globalThis,
    nowMs: () => performance.now(),
  });
  readonly #ownAddresses = new OwnAddresses();
  #api: RunningApi | null = null;
  #webhooks: NodeWebhooks | null = null;

  private constructor(parts: NodeParts, opened: AsyncDisposableStack) {
    this.#parts = parts;
    this.#opened = opened;
  }

  /**
   * Reads, checks and opens everything that can keep a node from starting, sockets last; nobody is
   * answered yet. Where that fails, what is open is closed.
   *
   * @throws {SvcError} With what is in the way.
   */
  static async open(
    config: Config,
    fileLimit: FileLimit | null,
    stage: SecondStage = secondStage(config, null),
    former: Former | null = null,
  ): Promise<Node> {
    await using opened = new AsyncDisposableStack();
    const parts = await openParts(opened, config, fileLimit, stage, former);
    return new Node(parts, opened.move());
  }

  /**
   * Lets queries in, then everything that DNS does without: renewal of lists, API, telemetry. Resolves
   * when all of it runs. What a former program writes to is left alone until `takeOver` knows that it
   * is gone.
   *
   * @throws {SvcError} When queries can't be answered; what is open is closed then.
   */
  async start(takeOver: TakeOver | null = null): Promise<void> {
    const { querylog } = this.#parts;
    try {
      if (takeOver === null) querylog?.start();
      await this.#answer();
    } catch (error) {
      await this.#end(() => 0, () => 0);
      throw error;
    }
    const gone = takeOver?.answers() ?? null;
    void gone?.then(() => querylog?.start());
    await this.#serve(gone);
  }

  /** Answers queries. */
  async #answer(): Promise<void> {
    const { clock, problems, querylog, odoh, dns, isolates, checks, trust, logExports } =
      this.#parts;
    if (querylog !== null) querylog.onNewest = (newestMs) => clock.judge.witness(newestMs);
    checks?.start();
    await dns.start();
    logExports.start();
    this.#uncaught.arm(); // From here on nothing of this isolate ends DNS.
    problems.watch("internal", () => this.#uncaught.problems);
    if (trust !== null) {
      this.#opened.defer(trust.start());
      problems.watch("dnssec", () => trust.problems);
    }
    if (odoh !== null) this.#opened.defer(odoh.rotateDaily((seeds) => dns.renewOdoh(seeds)));
    log.info("answering", {
      listen: dns.listening.map(formatHostPort),
      ...encryptedAddresses(dns),
      isolates,
    });
  }

  /** Follows changes, keeps lists new, serves the API and tells of itself. */
  async #serve(gone: Promise<void> | null): Promise<void> {
    const { config, problems, store, policy, dns, telemetry, filtering, cluster } = this.#parts;
    const { listening, acme } = this.#parts;
    const uncaught = this.#uncaught;
    const inForce = follow(store.replicator, this.#parts.devices, policy, filtering, problems);
    // A former program has left store and log since before this one had them.
    await uncaught.survive(() => cluster?.start(listening?.channel ?? null));
    const writes = async () => {
      await gone;
      await uncaught.survive(() => filtering.start());
    };
    const isWriting = writes();
    if (gone === null) await isWriting;
    this.#endRules();
    this.#opened.defer(keepDailyBackups(config, store, this.#parts.clock.judge, problems));
    this.#watchProblems();
    const webhooks = this.#webhooks = this.#opened.use(await startWebhooks(this.#parts));
    const options = this.#apiOptions(inForce, webhooks);
    this.#api = await tryServeApi(problems, options);
    problems.watch("certificate", () => this.#api?.problems ?? []);
    await uncaught.survive(() =>
      telemetry.start({
        config,
        node: options.node,
        startedAtMs: options.startedAtMs(),
        dns,
        lookup: hostLookup(dns),
        upstreams: options.upstreams.asked.map(({ address }) => address),
        families: () => familiesOf(options),
      })
    );
    await isWriting;
    acme?.start(() => this.#renewCertificates());
  }

  /** Has rules deleted that come to their end, once the time is known. */
  #endRules(): void {
    const { store: { replicator }, clock: { judge }, cluster } = this.#parts;
    const expired = new ExpiredRules({
      replicator,
      nowMs: () => judge.mayForget ? judge.nowMs() : null,
      isLeader: () => cluster === null || cluster.report().state === "leader",
    });
    expired.start();
    this.#opened.defer(() => expired.stop());
  }

  #watchProblems(): void {
    const { config, problems, store, cluster, filtering, certificate, dns } = this.#parts;
    const { upstreams, telemetry, querylog, acme, policy } = this.#parts;
    const { replicator } = store;
    problems.watch("acme", () => acme?.problems ?? []);
    problems.watch("cluster", () => cluster?.problems ?? []);
    problems.watch("filter", () => [...filtering.problems, ...policy.problems]);
    problems.watch("certificate", () => certificate?.problems ?? []);
    problems.watch("dns", () => dnsProblems(dns, upstreams.asked));
    problems.watch("upstream", () => missingUpstreams(replicator.state, upstreams.asked));
    problems.watch("internal", () => dns.left.problems);
    problems.watch(
      "connections",
      () => connectionProblems(this.#connected, config.querylog.anonymize),
    );
    problems.watch(
      "open_resolver",
      () => openResolverProblems(replicator.state.settings.spec, config.server.tls, dns.listeners),
    );
    problems.watch("telemetry", () => telemetry.problems);
    problems.watch("querylog", () => querylog?.problems ?? []);
    this.#opened.defer(problems.look());
  }

  get #connected(): Connected {
    return { reports: this.#parts.dns.reports, api: this.#api?.occupancy ?? null };
  }

  #apiOptions(inForce: () => Promise<void>, webhooks: NodeWebhooks): ServeApiOptions {
    const { config, store, problems, policy, dns, upstreams, querylog, get } = this.#parts;
    const { clock, cluster, keeper, filtering, services, telemetry } = this.#parts;
    const { listening, stage, certificate, logExports, acme } = this.#parts;
    return {
      config,
      node: nodeName(config),
      cluster,
      clock: clock.judge,
      sockets: listening?.api ?? null,
      startedAtMs: clock.startedAtMs,
      sandbox: stage.status,
      leakTests: this.#parts.former?.leakTests ?? [],
      store,
      problems: () => problems.now(),
      policy,
      devices: this.#parts.devices,
      dns,
      certificate,
      acme,
      ownAddresses: this.#ownAddresses,
      upstreams,
      lists: new NodeLists({
        config: config.filter,
        keeper,
        filtering,
        services,
        lists: () => listsOf(store.replicator.state),
        get,
        disk: denoDisk,
      }),
      get,
      querylog,
      builtAtMs: () => filtering.builtAtMs,
      buildMs: () => filtering.buildMs,
      exportFailures: () => telemetry.failures,
      logExports,
      uncaughtErrors: () => this.#uncaught.count,
      apiOccupancy: () => this.#connected.api,
      eventReadersDropped: () => this.#api?.eventReadersDropped ?? 0,
      inForce,
      webhooks,
    };
  }

  /** What is wrong with the node. */
  get problems(): Problems {
    return this.#parts.problems;
  }

  /** Where it answers, with the ports that the system gave for 0. */
  get listening(): DnsSupervisor["listening"] {
    return this.#parts.dns.listening;
  }

  /** Reads again what may have changed. Resolves when certificates are; lists take their time. */
  async reload(): Promise<void> {
    const { cluster, filtering } = this.#parts;
    log.info("reloading the lists");
    void filtering.reload();
    void cluster?.renew();
    await this.#renewCertificates();
  }

  async #renewCertificates(): Promise<void> {
    const { certificate, dns } = this.#parts;
    const show = certificate?.renewFor((identity) => dns.renewCertificate(identity));
    await Promise.all([this.#api?.renewTls(), show]);
  }

  /** The sockets for another process, by what they are for. */
  get named(): ReturnType<typeof namedSockets> {
    const { listening, config } = this.#parts;
    return listening === null ? [] : namedSockets(listening.sockets, config);
  }

  /**
   * Leaves store and API to another process, and what is in memory alone in `memory`. Queries are
   * answered all the while.
   */
  async suspend(memory: Memory): Promise<void> {
    const { policy, odoh, dns, store, querylog, cluster, acme } = this.#parts;
    querylog?.endWatchers();
    this.#webhooks?.pause();
    // Side by side: a change that waits for a leader is answered before its connection is closed.
    await Promise.all([this.#api?.suspend(SUSPEND_MS_MAX), cluster?.suspend(), acme?.stop()]);
    await store.suspend();
    await saveFormer(memory, {
      pausedUntilMs: policy.pausedUntilMs,
      leakTests: this.#api?.leakTests ?? [],
      odohSeeds: odoh?.seeds ?? [],
      odohAgeMs: odoh?.ageMs ?? 0,
      cookieSecret: dns.cookieSecret,
    }, dns.save());
  }

  /**
   * Goes on as before `suspend`.
   *
   * @throws {SvcError} As long as the other process has the store; it may be tried again.
   */
  async resume(): Promise<void> {
    const { store, cluster, acme } = this.#parts;
    await store.resume();
    await cluster?.resume();
    await this.#api?.resume();
    this.#webhooks?.watch();
    acme?.start(() => this.#renewCertificates());
  }

  /** Has the API answer what needs no store, until `resume` has that back. */
  async answerWithoutStore(): Promise<void> {
    await this.#api?.resume();
  }

  /** Ends the node, whose sockets another one reads by now. */
  async retire(): Promise<void> {
    await this.#end(() => RETIRE_MS_MAX, () => RETIRE_MS_MAX, true);
  }

  /** Ends the node within its time, whatever hangs. */
  async stop(): Promise<void> {
    const time = new StopTime(() => performance.now());
    await this.#end(() => time.firstMs(), () => time.lastMs());
  }

  async #end(
    firstMs: () => number,
    lastMs: () => number,
    hasSuccessor = false,
  ): Promise<void> {
    const { filtering, querylog, logExports, dns, telemetry, listening } = this.#parts;
    const uncaught = this.#uncaught;
    filtering.stop();
    querylog?.endWatchers();
    const graceMs = firstMs();
    // Whatever one of them fails of, the others come to their end.
    await Promise.all([
      uncaught.survive(() => dns.stop(graceMs, hasSuccessor)),
      // A change that was taken is durable before it is answered.
      uncaught.survive(() => this.#api?.stop(graceMs)),
      uncaught.survive(() => telemetry.stop(graceMs)),
    ]);
    // Last: it has what was answered until now.
    await uncaught.survive(() => querylog?.stop(lastMs()));
    await uncaught.survive(() => logExports.stop(lastMs()));
    if (listening !== null) {
      const { native, sockets } = listening;
      // The threads of ended isolates are out of them by then.
      Deno.unrefTimer(setTimeout(() => closeDnsSockets(native, sockets), PARKED_MS));
    }
    await this.#opened.disposeAsync();
  }
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
