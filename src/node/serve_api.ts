import type { HostPort } from "../addr/mod.ts";
import { formatHostPort } from "../addr/mod.ts";
import {
  aloneReport,
  type ApiDeps,
  ApiServer,
  type ApiSockets,
  type ClusterPort,
  createApi,
  emptyLogs,
  EventFeed,
  LeakTests,
  type ListsPort,
  type LogsPort,
  type NodePort,
  type SavedLeakTest,
  type TlsPem,
  type UiFiles,
} from "../api/mod.ts";
import {
  type Auth,
  type Locked,
  Lockout,
  SignInLog,
  TokenUses,
  UserAccounts,
  userByName,
} from "../auth/mod.ts";
import { encodeHex } from "../bytes/mod.ts";
import type { Clock } from "../clock/mod.ts";
import { parseQtype } from "../dns/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { normaliseName } from "../filter/mod.ts";
import type { DnsSupervisor, QuerylogSupervisor } from "../isolate/mod.ts";
import { type HttpGet, nodeHttpAsk } from "../http/mod.ts";
import { log } from "../log.ts";
import { shownText } from "../model/mod.ts";
import type { Replicator, Store } from "../store/mod.ts";
import type { Occupancy, TlsIdentity } from "../transport/mod.ts";
import { checkUpdate } from "../update/mod.ts";
import { API_CERTIFICATE, ServerCertificate } from "./certificate.ts";
import type { NodeCluster } from "./cluster.ts";
import { askedOf, explainAnswer } from "./explain_answer.ts";
import { hostLookup } from "./host_lookup.ts";
import type { Devices } from "./devices.ts";
import { HostNames } from "./host_names.ts";
import { migrationPort } from "./migration.ts";
import { metricsText } from "./metrics_text.ts";
import { familiesOf, type NodeParts, problemsOf, statusOf } from "./node_status.ts";
import { nodeLogs } from "./node_logs.ts";
import type { NodeWebhooks } from "./node_webhooks.ts";
import type { Policy } from "./policy.ts";
import type { Problems } from "./problems.ts";
import { Profiles } from "./profiles.ts";
import { openUiFiles } from "./ui_files.ts";
import { VERSION } from "../version.ts";

const ID_BYTES = 8;

export interface ServeApiOptions extends NodeParts {
  /** This node's name in the audit log and in reports. */
  readonly node: string;
  readonly clock: Clock;
  /** `null`: it is in none. */
  readonly cluster: NodeCluster | null;
  /** Where the API listens; `null`: it opens its own sockets. */
  readonly sockets: ApiSockets | null;
  readonly store: { readonly replicator: Replicator; readonly store: Store };
  readonly policy: Pick<Policy, "data" | "explain" | "pause" | "pausedUntilMs">;
  readonly devices: Pick<Devices, "hostnameOf" | "locate" | "macOf">;
  readonly dns:
    & NodeParts["dns"]
    & Pick<DnsSupervisor, "ask" | "flushCaches" | "lookup" | "onLeakLookup">;
  readonly lists: ListsPort;
  /** Fetches through this service's own upstreams. */
  readonly get: HttpGet;
  /** `null`: no query is logged. */
  readonly querylog:
    | Pick<
      QuerylogSupervisor,
      "counts" | "figures" | "names" | "seen" | "search" | "series" | "statistics" | "watch"
    >
    | null;
  /** Resolves once every change applied so far holds for the next query. */
  readonly inForce: () => Promise<void>;
  readonly webhooks: Pick<NodeWebhooks, "clientsSeen"> & {
    readonly webhooks: Pick<NodeWebhooks["webhooks"], "deliveries" | "figures" | "tell" | "test">;
  };
  /** Of a former process. */
  readonly leakTests: readonly SavedLeakTest[];
}

export interface RunningApi {
  /** With the ports that the system gave for 0. */
  readonly listening: readonly HostPort[];
  /** Reads the certificate again, which may have been renewed; a bad one is logged and left. */
  renewTls(): Promise<void>;
  /** What is wrong with the certificate at the moment, for the status. */
  readonly problems: readonly string[];
  readonly occupancy: Occupancy;
  /** Leak tests, for a process that takes them over. */
  readonly leakTests: readonly SavedLeakTest[];
  /** Readers of events that were too slow, since the start. */
  readonly eventReadersDropped: number;
  stop(graceMs: number): Promise<void>;
  /** Answers who is connected, and leaves the sockets to another process until `resume`. */
  suspend(graceMs: number): Promise<void>;
  /**
   * Takes them back, if it has not yet.
   *
   * @throws {SvcError} `unavailable`; it may be tried again.
   */
  resume(): Promise<void>;
}

/**
 * Serves the API of a running node.
 *
 * @throws {SvcError} `invalid`, for an address beyond loopback without a token or a certificate that
 * can't be used; `unavailable`.
 */
export async function serveApi(options: ServeApiOptions): Promise<RunningApi> {
  const { api } = options.config;
  const certificate = await ServerCertificate.open(
    { place: API_CERTIFICATE, files: api.tls, serverName: null },
    options.clock,
  );
  const identity = certificate === null ? null : certificate.identity ?? await certificate.renew();
  const events = eventsOf(options);
  const leakTests = new LeakTests({ clock: options.clock, randomHex }, options.leakTests);
  const { replicator, store } = options.store;
  const tokenUses = await TokenUses.open(
    store,
    options.clock,
    () => replicator.state.credentials.tokens,
  );
  const ui = api.webUi ? await openUiFiles() : null;
  const handler = createApi(apiDeps(options, { events, leakTests, tokenUses, ui }));
  let tls = identity === null ? null : pemOf(identity);
  const newServer = () =>
    new ApiServer({
      listen: api.listen,
      sockets: options.sockets,
      tls,
      hasToken: api.tokenSha256 !== null,
      handler,
    });
  let server = newServer();
  let isSuspended = false;
  const listening = await server.start();
  log.info("serving the API", { listen: listening.map(formatHostPort), tls: api.tls !== null });
  return {
    listening,
    async renewTls() {
      await certificate?.renewFor((renewed) => {
        tls = pemOf(renewed);
        server.renewTls(tls);
      });
    },
    get problems() {
      return certificate?.problems ?? [];
    },
    get occupancy() {
      return server.occupancy;
    },
    get leakTests() {
      return leakTests.save();
    },
    get eventReadersDropped() {
      return events.dropped;
    },
    async stop(graceMs) {
      events.end();
      await server.stop(graceMs);
      await tokenUses.save();
    },
    async suspend(graceMs) {
      isSuspended = true;
      events.end();
      await server.stop(graceMs, true);
      await tokenUses.save();
    },
    async resume() {
      if (!isSuspended) return;
      server = newServer();
      await server.start();
      isSuspended = false;
    },
  };
}

/** Serves the API; without it DNS goes on, and the log and the status say so. */
export async function tryServeApi(
  problems: Problems,
  options: ServeApiOptions,
): Promise<RunningApi | null> {
  try {
    return await serveApi(options);
  } catch (error) {
    options.sockets?.close();
    problems.add("api", messageOf(error));
    log.error("the API can't be served; DNS goes on without it", { error });
    return null;
  }
}

function pemOf({ cert, key }: TlsIdentity): TlsPem {
  const text = new TextDecoder();
  return { cert: text.decode(cert), key: text.decode(key) };
}

function randomHex(lengthBytes: number): string {
  return encodeHex(crypto.getRandomValues(new Uint8Array(lengthBytes)));
}

/** What the API works on, over the parts of a running node. */
function apiDeps(
  options: ServeApiOptions,
  { events, leakTests, tokenUses, ui }: {
    readonly events: EventFeed;
    readonly leakTests: LeakTests;
    readonly tokenUses: TokenUses;
    readonly ui: UiFiles | null;
  },
): ApiDeps {
  const { config: { api }, node, clock, store: { replicator, store } } = options;
  options.dns.onLeakLookup = ({ name, ...lookup }) => void leakTests.note(name, lookup);
  const hostNames = options.config.querylog.anonymize ? null : new HostNames({
    devices: options.devices,
    dns: options.dns,
    upstreams: options.config.upstreams,
    state: () => replicator.state,
    nowMs: () => clock.nowMs(),
  });
  const lockout = new Lockout(clock);
  lockout.onLocked = (what) => tellLocked(options, what);
  const otpClock = { nowMs: () => Date.now() }; // An authenticator knows of no other time.
  const auth: Auth = {
    users: replicator,
    sessions: store,
    lockout,
    signInLog: new SignInLog(store, clock),
    clock,
    otpClock,
  };
  const logs = clusterLogs(
    options.cluster,
    options.querylog === null ? emptyLogs(node, clock, leakTests) : nodeLogs(
      node,
      options.querylog,
      leakTests,
      () => options.devices.locate(replicator.state),
      hostNames,
    ),
  );
  // Of an anonymised log an address is nobody's.
  if (hostNames !== null) {
    options.webhooks.clientsSeen = async () =>
      (await logs.clientsSeen({ hours: 1, known: false })).items;
  }
  return {
    replicator,
    local: store,
    auth,
    access: { tokenSha256: api.tokenSha256, isSecure: api.tls !== null },
    accounts: new UserAccounts(auth),
    tokenUses,
    webhooks: options.webhooks.webhooks,
    node: nodePort(options),
    lists: options.lists,
    logs,
    cluster: options.cluster ?? aloneCluster(options),
    events,
    profiles: profilesOf(options),
    migration: migrationPort(nodeHttpAsk({ lookup: hostLookup(options.dns) })),
    inForce: options.inForce,
    clock,
    newId: (prefix) => prefix + randomHex(ID_BYTES),
    proofAt: (path) => options.acme?.proofAt(path) ?? null,
    docs: api.docs,
    ui,
    publicUrl: api.publicUrl,
  };
}

/** Tells of a lock; a name that nobody has may be a password in the wrong field, and is not told. */
function tellLocked(
  { store: { replicator }, webhooks: { webhooks } }: ServeApiOptions,
  { address, name, untilMs }: Locked,
): void {
  const user = name === null ? null : userByName(replicator, name)?.name ?? null;
  if (address === null && user === null) return;
  const locked_until = new Date(untilMs).toISOString();
  webhooks.tell("sign_in_locked", { address, user, locked_until });
}

/** The logs of this node, with statistics of the whole cluster where they are asked for. */
function clusterLogs(cluster: NodeCluster | null, logs: LogsPort): LogsPort {
  if (cluster === null) return logs;
  cluster.onStatistics = (query) => logs.statistics({ ...query, scope: "node" });
  return {
    ...logs,
    statistics: async (query) => {
      const own = await logs.statistics(query);
      if (query.scope !== "cluster") return own;
      return { ...own, ...await cluster.addStatistics(own, query) };
    },
  };
}

function profilesOf({ config, clock, dns, certificate }: ServeApiOptions): Profiles {
  const portsOf = (wanted: string) =>
    dns.listeners.filter(({ protocol }) => protocol === wanted).map(({ address }) => address.port);
  return new Profiles({
    clock,
    randomHex,
    publicUrl: config.api.publicUrl,
    serverName: config.server.tls.serverName,
    dohPorts: portsOf("doh"),
    dotPorts: portsOf("dot"),
    identity: () => certificate?.identity ?? null,
  });
}

/** Tells of changes and of the status. */
function eventsOf(options: ServeApiOptions): EventFeed {
  const { policy, store: { replicator } } = options;
  const node = nodePort(options);
  const cluster = options.cluster ?? aloneCluster(options);
  return new EventFeed({
    replicator,
    status: () => ({
      version: node.version,
      status: node.health(),
      protection: replicator.state.settings.spec.protection,
      paused_until: timestampOf(node.pausedUntilMs()),
      problem_items: problemsOf(options).problem_items,
      generation: policy.data.generation,
      writable: cluster.report().writable,
    }),
  });
}

function timestampOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function nodePort(options: ServeApiOptions): NodePort {
  const { config, node, startedAtMs, clock, policy, dns, store: { replicator } } = options;
  return {
    name: node,
    version: VERSION,
    get startedAtMs() {
      return startedAtMs();
    },
    health: () => options.problems().length === 0 ? "ok" : "degraded",
    status: () => statusOf(options),
    pausedUntilMs: () => policy.pausedUntilMs > clock.nowMs() ? policy.pausedUntilMs : null,
    pause: (untilMs) => policy.pause(untilMs ?? 0),
    flushCache: () => dns.flushCaches(),
    explain: async ({ name: asked, type, client, group, draft, isTraced }) => {
      await options.inForce();
      const qtype = parseQtype(type.toUpperCase());
      if (qtype === null) throw new SvcError("bad_request", `type: ${type} is no type of record`);
      // Names in other scripts are asked for in A-labels.
      const name = /^[ -~]*$/.test(asked) ? asked : normaliseName(asked) ?? asked;
      if (group !== null && !replicator.state.collections.groups.has(group)) {
        throw new SvcError("bad_request", `group: no group has the ID ${shownText(group)}`);
      }
      const explanation = await policy.explain({ name, qtype, client, group, draft });
      if (explanation === null) throw new SvcError("bad_request", "name: it is no name");
      const { outcome, target, group: { id } } = explanation;
      const groupUpstreams = replicator.state.collections.groups.get(id)?.spec.upstreams ?? [];
      const question = { name: target ?? name, qtype, groupUpstreams };
      const answer = outcome === "forwarded"
        ? {
          ...askedOf(config, options.upstreams, question),
          ...await explainAnswer(config, dns, question, isTraced),
        }
        : { upstreams: null, dnssec: null, trace: null };
      return { name, type: type.toUpperCase(), ...explanation, ...answer };
    },
    checkUpdate: () => checkUpdate(config.update.url, options.get),
    metrics: () => metricsText(familiesOf(options)),
  };
}

function aloneCluster({ node, store: { replicator } }: ServeApiOptions): ClusterPort {
  const refuse = async () => {
    await undefined;
    throw new SvcError("conflict", "cluster: this node is in none");
  };
  return {
    report: () => {
      const { appliedIndex } = replicator.state;
      return aloneReport({ node, version: VERSION, appliedIndex });
    },
    promote: refuse,
    demote: refuse,
    removeMember: async (name) => {
      await undefined;
      throw new SvcError("not_found", `${shownText(name)}: this node is in no cluster`);
    },
  };
}
