import { formatIp, type IpPrefix, parseIp } from "../addr/mod.ts";
import type { Clock } from "../clock/mod.ts";
import { encodeHex } from "../bytes/mod.ts";
import type { Config } from "../config/mod.ts";
import { type Lookup, nodeHttpPost } from "../http/mod.ts";
import type { DnsSupervisor } from "../isolate/mod.ts";
import { log } from "../log.ts";
import type { State } from "../model/mod.ts";
import type { LocalStore, Replicator } from "../store/mod.ts";
import {
  ClientWatch,
  MemberWatch,
  networkCheck,
  ProblemWatch,
  type SeenClient,
  type WatchedReport,
  Webhooks,
} from "../webhooks/mod.ts";
import type { NodeCluster } from "./cluster.ts";
import { every } from "./every.ts";
import { hostLookup } from "./host_lookup.ts";
import { nodeName } from "./open_parts.ts";
import { problemKey, type Problems, type SeenProblem } from "./problems.ts";

/** How often what is told of is looked at, as far as a webhook is for it. */
const LOOK_MS = 5_000;
/** Looks from one for new clients to the next: the query log is asked. */
const CLIENT_LOOKS = 3;
const ID_BYTES = 8;

export interface NodeWebhooksOptions {
  readonly node: string;
  readonly networks: readonly IpPrefix[];
  readonly replicator: Pick<Replicator, "state" | "subscribe">;
  readonly local: Pick<LocalStore, "localValue" | "putLocalValue">;
  readonly clock: Clock;
  readonly lookup: Lookup;
  readonly problems: () => readonly SeenProblem[];
  /** `null`: it is in none. */
  readonly report: (() => WatchedReport) | null;
}

/** The webhooks of a node, and what it tells them of. */
export class NodeWebhooks implements Disposable {
  readonly webhooks: Webhooks;
  /** Set by whoever knows which unknown clients asked in the last hour. */
  clientsSeen: (() => Promise<readonly SeenClient[]>) | null = null;
  readonly #options: NodeWebhooksOptions;
  readonly #problems: ProblemWatch;
  readonly #members: MemberWatch;
  readonly #clients: ClientWatch;
  #looks = 0;
  #isPaused = true;
  /** Ends the looking; `null`: there is none. */
  #endLooks: (() => void) | null = null;

  private constructor(options: NodeWebhooksOptions, told: unknown, toldUntilMs: unknown) {
    const { node, networks, replicator, clock, lookup } = options;
    const nowMs = () => clock.nowMs();
    const steadyMs = () => performance.now();
    this.#options = options;
    this.webhooks = new Webhooks({
      node,
      stored: () => replicator.state.credentials.webhooks,
      post: nodeHttpPost({
        lookup: recordsFirst(() => replicator.state, lookup),
        admit: networkCheck(networks),
      }),
      newId: () => `wd_${encodeHex(crypto.getRandomValues(new Uint8Array(ID_BYTES)))}`,
      nowMs,
      steadyMs,
      later: (ms, work) => {
        const timer = setTimeout(work, ms);
        return () => clearTimeout(timer);
      },
    });
    this.#problems = new ProblemWatch({
      ...{ nowMs, steadyMs, told, keep: (problems) => this.#keep("problems_told", problems) },
      began: ({ sinceMs, ...problem }) => this.#tellProblem("problem_began", problem, sinceMs),
      ended: ({ sinceMs, ...problem }) => this.#tellProblem("problem_ended", problem, sinceMs),
    });
    this.#members = new MemberWatch({
      steadyMs,
      lost: (member) => this.webhooks.tell("member_lost", { member }),
      back: (member) => this.webhooks.tell("member_back", { member }),
    });
    this.#clients = new ClientWatch({
      ...{ nowMs, toldUntilMs, keep: (ms) => this.#keep("clients_told", ms) },
      seen: ({ address, hostname, first_seen }) =>
        this.webhooks.tell("client_seen", { address, hostname, first_seen }),
    });
  }

  /** Knows what a former process told, and begins to watch. */
  static async start(options: NodeWebhooksOptions): Promise<NodeWebhooks> {
    const kept = async (name: "problems_told" | "clients_told") =>
      await options.local.localValue(name).catch(() => null);
    const node = new NodeWebhooks(options, await kept("problems_told"), await kept("clients_told"));
    options.replicator.subscribe(() => node.#follow());
    node.watch();
    return node;
  }

  /** Looks at what it tells of, now and then, until `pause`, and while a webhook is on. */
  watch(): void {
    this.#isPaused = false;
    this.#follow();
  }

  /** Leaves it to another process to watch; what waits is sent all the same. */
  pause(): void {
    this.#isPaused = true;
    this.#follow();
  }

  [Symbol.dispose](): void {
    this.pause();
    this.webhooks.stop();
  }

  #follow(): void {
    this.webhooks.follow();
    const { webhooks } = this.#options.replicator.state.credentials;
    const isNeeded = !this.#isPaused && webhooks.values().some(({ spec }) => spec.enabled);
    if (isNeeded === (this.#endLooks !== null)) return;
    this.#endLooks?.();
    this.#endLooks = isNeeded ? every(LOOK_MS, () => void this.#look()) : null;
  }

  async #look(): Promise<void> {
    const { problems, report } = this.#options;
    try {
      if (this.webhooks.isWanted("problem_began", "problem_ended", "list_failed")) {
        this.#problems.look(
          problems().map((problem) => ({
            ...{ key: problemKey(problem), code: problem.code, message: problem.message },
            resource: problem.resource?.id ?? problem.resource?.type ?? null,
          })),
        );
      }
      if (report !== null) this.#members.look(report());
      if (this.#looks++ % CLIENT_LOOKS !== 0) return;
      const isWanted = this.clientsSeen !== null && this.webhooks.isWanted("client_seen");
      this.#clients.look(isWanted ? await this.clientsSeen!() : []);
    } catch (error) {
      log.warn("what webhooks are for can't be looked at", { error });
    }
  }

  #tellProblem(
    event: "problem_began" | "problem_ended",
    { code, message, resource }: { code: string; message: string; resource: string | null },
    sinceMs: number,
  ): void {
    if (code === "cluster" && !this.#isTeller) return;
    const since = new Date(sinceMs).toISOString();
    this.webhooks.tell(event, { code, message, resource, since });
    if (code !== "list" || event === "problem_ended") return;
    this.webhooks.tell("list_failed", { list: resource, message, since });
  }

  /** What is the cluster's is told by its leader; without one, by whoever sees it. */
  get #isTeller(): boolean {
    const report = this.#options.report?.() ?? null;
    return report === null || report.leader === null || report.state === "leader";
  }

  #keep(name: "problems_told" | "clients_told", value: unknown): void {
    this.#options.local.putLocalValue(name, value).catch((error: unknown) => {
      log.warn("what webhooks were told is not written down", { error });
    });
  }
}

/** The webhooks over the parts of a node. */
export async function startWebhooks(
  { config, store: { replicator, store }, clock, cluster, dns, problems }: {
    readonly config: Config;
    readonly store: { readonly replicator: Replicator; readonly store: LocalStore };
    readonly clock: { readonly judge: Clock };
    readonly cluster: Pick<NodeCluster, "report"> | null;
    readonly dns: Pick<DnsSupervisor, "lookup">;
    readonly problems: Problems;
  },
): Promise<NodeWebhooks> {
  return await NodeWebhooks.start({
    ...{ node: nodeName(config), networks: config.webhooks.networks, replicator, local: store },
    ...{ clock: clock.judge, lookup: hostLookup(dns), problems: () => problems.now() },
    report: cluster === null ? null : () => cluster.report(),
  });
}

/** Looks a name up among the records of our own first: what stands at home is often known there alone. */
function recordsFirst(state: () => State, lookup: Lookup): Lookup {
  return async (hostname, signal) => {
    const own: string[] = [];
    for (const { spec } of state().collections.records.values()) {
      const isAddress = spec.type === "A" || spec.type === "AAAA";
      const ip = spec.enabled && isAddress && spec.name === hostname ? parseIp(spec.value) : null;
      if (ip !== null) own.push(formatIp(ip));
    }
    return own.length > 0 ? own : await lookup(hostname, signal);
  };
}
