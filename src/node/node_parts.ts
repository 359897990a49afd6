import { join } from "node:path/posix";
import type { Config } from "../config/mod.ts";
import { type HttpGet, type Lookup, nodeHttpGet } from "../http/mod.ts";
import {
  CheckSupervisor,
  compileRules,
  DnsSupervisor,
  QuerylogSupervisor,
} from "../isolate/mod.ts";
import { denoDisk, ListKeeper, ServiceCatalogue } from "../lists/mod.ts";
import type { FileLimit } from "../native/mod.ts";
import type { OpenStore, Replicator, Store } from "../store/mod.ts";
import { AcmePart, standIn } from "./acme.ts";
import { DNS_CERTIFICATE, ServerCertificate } from "./certificate.ts";
import { type NodeCluster, openCluster } from "./cluster.ts";
import { designatedRecords } from "./designated.ts";
import type { Devices } from "./devices.ts";
import { dnsOptions } from "./dns_options.ts";
import { type DnsUpstreams, dnsUpstreams } from "./dns_upstreams.ts";
import type { Former } from "./former.ts";
import { Filtering } from "./filtering.ts";
import { hostLookup } from "./host_lookup.ts";
import { Later } from "./later.ts";
import { Listening } from "./listening.ts";
import { listsOf, usesOf } from "./lists_of.ts";
import { NodeLogExports } from "./log_exports.ts";
import { servicesPlace } from "./lists_port.ts";
import { OdohKeys } from "./odoh_keys.ts";
import { checkThreadsOf, workersOf } from "./isolate_counts.ts";
import { openMaxOf } from "./open_files.ts";
import { nodeName, openDevices, openKeeper, openStoreOf, querylogOf } from "./open_parts.ts";
import { Policy } from "./policy.ts";
import { Problems } from "./problems.ts";
import type { SecondStage } from "./second_stage.ts";
import { Telemetry } from "./telemetry.ts";
import { type TrustedClock, trustedClock } from "./trusted_clock.ts";
import { dnsRecursion } from "./root_hints.ts";
import { openTrust } from "./trust.ts";
import type { TrustKeeper } from "./trust_keeper.ts";

/** What an open node is made of, in the order that it is opened. */
export interface NodeParts {
  readonly config: Config;
  readonly telemetry: Telemetry;
  readonly stage: SecondStage;
  readonly former: Former | null;
  readonly problems: Problems;
  readonly clock: TrustedClock;
  readonly store: Pick<OpenStore, "isTemporary" | "suspend" | "resume"> & {
    readonly replicator: Replicator;
    readonly store: Store;
  };
  /** `null`: it is in none. */
  readonly cluster: NodeCluster | null;
  readonly get: HttpGet;
  readonly keeper: ListKeeper;
  readonly services: ServiceCatalogue;
  readonly filtering: Filtering;
  readonly devices: Devices;
  readonly policy: Policy;
  readonly certificate: ServerCertificate | null;
  readonly upstreams: DnsUpstreams;
  readonly odoh: OdohKeys | null;
  /** `null`: no query is logged. */
  readonly querylog: QuerylogSupervisor | null;
  readonly logExports: NodeLogExports;
  readonly isolates: number;
  /** `null` where the C library can't be had: whoever listens opens sockets of its own. */
  readonly listening: Listening | null;
  readonly dns: DnsSupervisor;
  /** Those who check signatures; `null`: nothing is validated. */
  readonly checks: CheckSupervisor | null;
  readonly trust: TrustKeeper | null;
  /** `null`: certificates are somebody else's to get. */
  readonly acme: AcmePart | null;
}

/**
 * Reads, checks and opens everything that can keep a node from starting, sockets last. What is open
 * is closed by `opened`.
 *
 * @throws {SvcError} With what is in the way.
 */
export async function openParts(
  opened: AsyncDisposableStack,
  config: Config,
  fileLimit: FileLimit | null,
  stage: SecondStage,
  former: Former | null,
): Promise<NodeParts> {
  const telemetry = opened.adopt(new Telemetry(config.telemetry), (one) => one.stop(0));
  const problems = new Problems();
  for (const problem of stage.problems) problems.add("sandbox", problem);
  const clock = opened.adopt(trustedClock(problems), (one) => one.stop());
  const store = opened.adopt(
    await openStoreOf(config, problems, clock.judge),
    (one) => one.close(),
  );
  const cluster = config.cluster === null
    ? null
    : await openCluster(config.cluster, config.store.dir, store, clock.judge);
  opened.defer(() => cluster?.stop());
  const replicator: Replicator = cluster?.replicator ?? store.replicator;
  // Nothing is downloaded, and no change is taken, before the first query is answered.
  const [laterDns, laterPolicy] = [new Later<DnsSupervisor>(), new Later<Policy>()];
  const lookup: Lookup = async (hostname, signal) =>
    await hostLookup(laterDns.part)(hostname, signal);
  const get = nodeHttpGet({ lookup });
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
    publish: (base) => laterPolicy.part.rebase(base),
  });
  opened.defer(() => filtering.stop());
  const base = await filtering.first();
  const { seed } = filtering; // Kept rules bring their own.
  const devices = opened.adopt(await openDevices(config, problems), (one) => one.stop());
  const policy = new Policy({
    seed,
    state: devices.locate(replicator.state),
    base,
    clock: clock.judge,
    designated: designatedRecords(config.server.tls),
    pausedUntilMs: former?.pausedUntilMs ?? 0,
    publish: (data) => laterDns.part.publish(data),
    compile: compileRules,
  });
  opened.defer(() => policy.stop());
  laterPolicy.open(policy);
  const isolates = workersOf(config);
  const { files, serverName, odoh: isTarget } = config.server.tls;
  await standIn(config.acme, clock.judge.nowMs(), problems);
  const certificate = await ServerCertificate.open(
    { place: DNS_CERTIFICATE, files, serverName },
    clock.judge,
  );
  const upstreams = await dnsUpstreams(config, (problem) => problems.add("upstream", problem));
  const odoh = isTarget ? new OdohKeys(former?.odohSeeds, former?.odohAgeMs) : null;
  const logExports = await NodeLogExports.open(config, {
    ...{ node: nodeName(config), lookup, problems },
    upstreams: upstreams.asked.map(({ address }) => address),
  });
  const querylog = querylogOf(config, upstreams.asked, isolates, logExports.wanted);
  const trustKeeper = await openTrust(config, clock.judge, () => laterDns.part);
  const checks = trustKeeper === null ? null : new CheckSupervisor(checkThreadsOf(isolates));
  opened.defer(() => checks?.stop());
  const options = dnsOptions(config, {
    ...{ upstreams, certificate, odoh, seed, isolates },
    openMax: openMaxOf(fileLimit, isolates),
    logQueues: querylog?.queues ?? [],
    former: former?.dns ?? null,
    trust: trustKeeper?.trust ?? null,
    recursion: await dnsRecursion(config, isolates),
    checks,
  });
  const listening = Listening.open(config, isolates, stage.sockets);
  opened.defer(() => listening?.close());
  const acme = config.acme === null ? null : await AcmePart.open({
    ...{ config: config.acme, clock: clock.judge, lookup, listeners: listening?.acme ?? null },
  });
  opened.defer(() => acme?.stop());
  const dns = new DnsSupervisor(options, listening?.sockets.dns ?? null, policy.data);
  laterDns.open(dns);
  return {
    ...{ config, telemetry, stage, former, problems, clock, cluster, get },
    ...{ keeper, services, store: { ...store, replicator } },
    ...{ filtering, devices, policy, certificate, upstreams, odoh, querylog, logExports },
    ...{ isolates, listening, dns },
    ...{ checks, trust: trustKeeper, acme },
  };
}
