import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Actor, AuditAction } from "../model/mod.ts";
import type { RaftStorage, Store } from "../store/mod.ts";
import type { Consensus } from "./consensus.ts";
import { isRemoved, type Peers } from "./facts.ts";
import { nodeOf } from "./frames.ts";
import { BOOTSTRAP_TICKS_MAX, HEARING_TICKS, PROMOTE_TICKS_MAX } from "./limits.ts";
import type { Waits } from "./waits.ts";

export interface TakeoverOptions {
  readonly node: string;
  /** It starts the cluster, where there is none. */
  readonly bootstrap: boolean;
  readonly storage: RaftStorage;
  readonly store: Store;
  readonly drawId: () => string;
  readonly consensus: Consensus;
  readonly peers: Peers;
  readonly waits: Waits;
  /** Told before and after this store becomes another member. */
  readonly leaving: () => void;
  readonly became: () => void;
}

/** What makes another member of a store: a cluster that starts, and one that it leaves. */
export class Takeover {
  readonly #options: TakeoverOptions;
  #isBootstrapping: boolean;
  #ticks = 0;

  constructor(options: TakeoverOptions) {
    this.#options = options;
    this.#isBootstrapping = options.bootstrap;
  }

  /** Starts a cluster once it is known that there is none, or that nobody can tell. */
  tick(): void {
    this.#ticks++;
    if (!this.#isBootstrapping) return;
    const { cluster, hasLeft } = this.#options.storage.member;
    if (cluster !== "" || hasLeft) {
      this.#isBootstrapping = false;
      return;
    }
    const peers = this.#options.peers.all;
    // It is added to that one.
    if (peers.some(({ channel: { greeting } }) => (greeting?.clusterId ?? "") !== "")) return;
    const haveAllSpoken = peers.every(({ channel }) => channel.greeting !== null);
    if (!haveAllSpoken && this.#ticks < BOOTSTRAP_TICKS_MAX) return;
    this.#isBootstrapping = false;
    this.#startCluster().catch((error) => {
      log.error("the cluster can't be started", { error });
      [this.#isBootstrapping, this.#ticks] = [true, 0];
    });
  }

  /** Starts nothing any more. */
  stop(): void {
    this.#isBootstrapping = false;
  }

  async #startCluster(): Promise<void> {
    const { storage, drawId, node, consensus, leaving, became } = this.#options;
    const cluster = drawId();
    leaving();
    await consensus.become(() => storage.startCluster(cluster));
    became();
    log.info("started a cluster with this node's configuration", { node, cluster });
  }

  /** @throws {SvcError} `conflict`, while a leader answers, unless `force`; `unavailable`. */
  async promote(force: boolean, actor: Actor): Promise<void> {
    const { consensus, waits, storage } = this.#options;
    // One that was just started, or connected, has not heard yet who leads.
    if (!force) await waits.until(() => this.#answeringLeader() !== null, HEARING_TICKS);
    const leader = this.#answeringLeader();
    if (leader !== null && !force) {
      throw new SvcError(
        "conflict",
        `cluster: its leader ${leader} answers: there is nothing to take over`,
      );
    }
    this.#isBootstrapping = false;
    await this.#startCluster();
    await waits.until(() => consensus.state.role === "leader", PROMOTE_TICKS_MAX);
    await this.#note("promote", storage.member.cluster, actor);
  }

  /** The leader of this cluster, where it answers. */
  #answeringLeader(): string | null {
    const { consensus: { state }, storage: { member: { cluster } }, peers } = this.#options;
    if (cluster === "") return null;
    const all = peers.all;
    if (state.leader !== null && !isRemoved(state, cluster, all)) return nodeOf(state.leader);
    const leading = all.find(({ status, isReachable }) =>
      isReachable && status?.state === "leader" && status.cluster === cluster &&
      status.term >= state.currentTerm
    );
    return leading?.name ?? null;
  }

  /**
   * @throws {SvcError} `conflict`, unless the leader of a cluster answers that this node is not in, or
   * `force`; `unavailable`.
   */
  async demote(force: boolean, actor: Actor): Promise<void> {
    const { storage, consensus, waits, leaving, became } = this.#options;
    const { cluster } = storage.member;
    const isThere = force || await waits.until(() => this.#isOtherLeading(), HEARING_TICKS);
    if (!isThere) {
      throw new SvcError(
        "conflict",
        "cluster: no leader of another cluster answers, so there is none to join",
      );
    }
    this.#isBootstrapping = false;
    leaving();
    await consensus.become(() => storage.leave());
    became();
    log.info("left the cluster and waits to be added to another", { cluster });
    await this.#note("demote", cluster, actor);
  }

  /** Whether the leader of a cluster answers that this node is not in. */
  #isOtherLeading(): boolean {
    const { storage: { member: { cluster } }, consensus: { state }, peers } = this.#options;
    const isOut = cluster === "" || isRemoved(state, cluster, peers.all);
    return peers.all.some(({ status, isReachable }) =>
      isReachable && status?.state === "leader" && (status.cluster !== cluster || isOut)
    );
  }

  async #note(action: AuditAction, cluster: string, actor: Actor): Promise<void> {
    const { store, node, storage } = this.#options;
    await store.note({
      action,
      resource: { type: "cluster", id: cluster },
      after: { node, cluster: storage.member.cluster },
    }, actor).catch((error) => {
      log.warn("what was done to the cluster is in no audit log", { action, error });
    });
  }
}
