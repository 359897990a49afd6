import type {
  ChangeEvent,
  ClientSpec,
  ClientsSeen,
  Envelope,
  GroupSpec,
  Me,
  Services,
  Statistics,
  Status,
} from "../api/mod.ts";
import type { ApiClient, ListEnvelope } from "../client/mod.ts";
import { messageOf, rethrowInvariant, SvcError } from "../errors.ts";

/** Wait before the next try of a connection: doubled from one try to the next. */
export const AGAIN_MS = { min: 1_000, max: 30_000 };
const STATUS_MS = 5_000;
const STATISTICS_MS = 10_000;
/** What is counted from the log itself: less often. */
const COUNTED_MS = 30_000;

/** Collections that are changed here, and what holds their specs. */
export interface Specs {
  lists: ListEnvelope["spec"];
  groups: GroupSpec;
  clients: ClientSpec;
}

export interface Connection {
  readonly isUp: boolean;
  /** It answers, and lets us in no more. */
  readonly isRefused: boolean;
  /** Why it is not; and when it was lost. */
  readonly reason: string;
  readonly sinceMs: number;
}

/** Waits, unless it is told to stop. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

/** What is known of a node: read at first, then as it is changed; kept while the node is away. */
export class NodeData {
  me: Me | null = null;
  status: Status | null = null;
  /** Of a day by the hour, and of an hour by the minute. */
  day: Statistics | null = null;
  hour: Statistics | null = null;
  lists: readonly ListEnvelope[] = [];
  groups: readonly Envelope<GroupSpec>[] = [];
  clients: readonly Envelope<ClientSpec>[] = [];
  seen: ClientsSeen["items"] = [];
  services: Services["items"] = [];
  connection: Connection = {
    isUp: false,
    isRefused: false,
    reason: "connecting",
    sinceMs: Date.now(),
  };
  readonly #client: ApiClient;
  readonly #onChange: () => void;
  #watched = new AbortController();

  constructor(client: ApiClient, onChange: () => void) {
    this.#client = client;
    this.#onChange = onChange;
  }

  /** What time it is there: what is written and counted down is in its time. */
  get now(): Date {
    return this.#client.clock.now();
  }

  /** What people call a group, a list, or another place that rules come from. */
  nameOf(id: string | null): string {
    if (id === null) return "";
    if (id.startsWith("service:")) return id.slice("service:".length);
    const found = [...this.lists, ...this.groups, ...this.clients].find((one) => one.id === id);
    return found?.spec.name ?? id;
  }

  /** @throws {SvcError} What can't be read. */
  async load(): Promise<void> {
    this.me = await this.#client.call("GET auth/me");
    await Promise.all([
      this.#loadStatus(),
      this.#loadCollections(),
      this.#loadDay(),
      this.#loadHour(),
      this.#loadServices(),
    ]);
    this.connection = { isUp: true, isRefused: false, reason: "", sinceMs: Date.now() };
    this.#onChange();
  }

  /** Follows the node until it is told to stop; what fails is tried again, ever less often. */
  async follow(signal: AbortSignal): Promise<void> {
    const polls = Promise.all([
      this.#poll(STATUS_MS, signal, () => this.#loadStatus()),
      this.#poll(STATISTICS_MS, signal, () => this.#loadDay()),
      this.#poll(COUNTED_MS, signal, () => this.#loadHour()),
      this.#poll(COUNTED_MS, signal, () => this.#loadSeen()),
    ]);
    let againMs = AGAIN_MS.min;
    while (!signal.aborted) {
      this.#watched = new AbortController();
      try {
        // Those who read are counted: without a place, everything is read now and then.
        await this.#client.watch("events", {
          signal: AbortSignal.any([signal, this.#watched.signal]),
          onOpen: () => {
            againMs = AGAIN_MS.min;
            this.load().catch((error) => this.#lost(error));
          },
          onEvent: ({ event, data }) => this.#take(event, data),
        });
      } catch (error) {
        await this.load().catch(() => this.#lost(error));
      }
      await pause(againMs, signal);
      againMs = Math.min(2 * againMs, AGAIN_MS.max);
    }
    await polls;
  }

  /**
   * Changes a spec as it is now; who changes it at the same time loses nothing.
   *
   * @throws {SvcError} As the API says.
   */
  async change<C extends keyof Specs>(
    collection: C,
    id: string,
    edit: (spec: Specs[C]) => Specs[C],
  ): Promise<void> {
    for (let isAgain = false;; isAgain = true) {
      const now = await this.#client.call(`GET ${collection}/{id}`, { id });
      const body = edit(now.spec as Specs[C]);
      try {
        await this.#client.call(`PUT ${collection}/{id}`, { id, body, ifMatch: now.revision });
        break;
      } catch (error) {
        const isOld = error instanceof SvcError && error.code === "revision_mismatch";
        if (!isOld || isAgain) throw error;
      }
    }
    await this.#loadCollections();
  }

  /** Reads again what a change of ours has made other. */
  async reload(): Promise<void> {
    await Promise.all([this.#loadStatus(), this.#loadCollections()]);
  }

  async #poll(everyMs: number, signal: AbortSignal, load: () => Promise<void>): Promise<void> {
    for (;;) {
      await pause(everyMs, signal);
      if (signal.aborted) return;
      if (this.connection.isUp) await load().catch((error) => this.#lost(error));
    }
  }

  #take(event: string, data: string): void {
    if (event === "status") this.#loadStatus().catch((error) => this.#lost(error));
    if (event !== "change") return;
    const { type } = JSON.parse(data) as ChangeEvent;
    const isOurs = ["list", "group", "client"].includes(type);
    if (isOurs) this.#loadCollections().catch((error) => this.#lost(error));
  }

  #lost(error: unknown): void {
    rethrowInvariant(error);
    if (!(error instanceof SvcError)) throw error;
    // An answer that refuses is one: the node is there.
    const isRefused = error.code === "unauthorized";
    if (!isRefused && error.code !== "unavailable") return;
    if (!this.connection.isUp && this.connection.isRefused === isRefused) return;
    this.connection = { isUp: false, isRefused, reason: messageOf(error), sinceMs: Date.now() };
    this.#watched.abort(); // A stream may stay open where nothing else is answered.
    this.#onChange();
  }

  async #loadStatus(): Promise<void> {
    this.status = await this.#client.call("GET status");
    this.#onChange();
  }

  async #loadCollections(): Promise<void> {
    const [lists, groups, clients] = await Promise.all([
      this.#client.call("GET lists"),
      this.#client.call("GET groups"),
      this.#client.call("GET clients"),
      this.#loadSeen(), // It says which client each address is.
    ]);
    this.lists = lists.items;
    this.groups = groups.items;
    this.clients = clients.items;
    this.#onChange();
  }

  async #loadSeen(): Promise<void> {
    this.seen = (await this.#client.call("GET clients/seen")).items;
    this.#onChange();
  }

  async #loadDay(): Promise<void> {
    this.day = await this.#client.call("GET stats", { query: { hours: "24" } });
    this.#onChange();
  }

  async #loadHour(): Promise<void> {
    this.hour = await this.#client.call("GET stats", { query: { hours: "1", step: "1m" } });
    this.#onChange();
  }

  async #loadServices(): Promise<void> {
    this.services = (await this.#client.call("GET services")).items;
  }
}
