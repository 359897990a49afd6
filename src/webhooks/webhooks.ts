import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { type Credential, shownText, type WebhookEvent } from "../model/mod.ts";
import { type Delivery, Receiver, type ReceiverPorts, type Tally } from "./receiver.ts";

const HOUR_MS = 3_600_000;
/** Most events of each kind that are told in an hour: what repeats without end is no news. */
export const EVENTS_PER_HOUR: Readonly<Record<WebhookEvent, number>> = {
  client_seen: 20,
  problem_began: 60,
  problem_ended: 60,
  list_failed: 60,
  sign_in_locked: 60,
  member_lost: 60,
  member_back: 60,
};
/** Longest text within an event, in UTF-16 units; with this few fields a body stays small. */
const TEXT_LENGTH_MAX = 512;

type Stored = ReadonlyMap<string, Credential<"webhooks">>;
/** What an event says beyond its kind. */
export type EventData = Readonly<Record<string, string | number | null>>;

export interface WebhooksOptions extends ReceiverPorts {
  /** This node's name, which goes with each event. */
  readonly node: string;
  /** The webhooks as they are stored. */
  readonly stored: () => Stored;
  readonly newId: () => string;
}

/** Events of a kind that may still be told, and as of when. */
interface Allowance {
  left: number;
  asOfMs: number;
}

const encoder = new TextEncoder();

/** All webhooks of a node. */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #receivers = new Map<string, Receiver>();
  readonly #tally: Tally = { delivered: 0, failed: 0, dropped: 0 };
  readonly #allowances = new Map<WebhookEvent, Allowance>();
  #of: Stored | null = null;
  #isOver = false;

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  /** How often what happened since the start, and how many events wait. */
  get figures(): Readonly<Tally> & { readonly waiting: number } {
    const waiting = this.#receivers.values().reduce((sum, one) => sum + one.waiting, 0);
    return { ...this.#tally, waiting };
  }

  /** Says whether anybody is told of an event: who finds out need not, otherwise. */
  isWanted(...events: readonly WebhookEvent[]): boolean {
    return this.#options.stored().values().some(({ spec }) =>
      spec.enabled && events.some((event) => spec.events.includes(event))
    );
  }

  /** Has an event sent to each webhook that is for it. */
  tell(event: WebhookEvent, data: EventData): void {
    this.follow();
    if (this.#isOver || !this.isWanted(event)) return;
    if (!this.#mayTell(event)) {
      this.#tally.dropped++;
      return;
    }
    const id = this.#options.newId();
    const body = this.#bodyOf(id, event, data);
    for (const receiver of this.#receivers.values()) {
      const { enabled, events } = receiver.webhook.spec;
      if (enabled && events.includes(event)) receiver.push(id, event, body);
    }
  }

  /**
   * Sends one webhook an event that means nothing, on or off, once.
   *
   * @throws {SvcError} `not_found`.
   */
  async test(id: string): Promise<Delivery> {
    const receiver = this.#receiverOf(id);
    const delivery = this.#options.newId();
    return await receiver.test(delivery, "test", this.#bodyOf(delivery, "test", {}));
  }

  /** @throws {SvcError} `not_found`. */
  deliveries(id: string): readonly Delivery[] {
    return this.#receiverOf(id).deliveries;
  }

  /** Takes the webhooks as they are stored by now; what waits for one that is gone or off is dropped. */
  follow(): void {
    const stored = this.#options.stored();
    if (stored === this.#of || this.#isOver) return;
    this.#of = stored;
    for (const [id, receiver] of this.#receivers) {
      const webhook = stored.get(id);
      if (webhook === undefined || (!webhook.spec.enabled && receiver.webhook.spec.enabled)) {
        receiver.end();
        this.#receivers.delete(id);
      } else receiver.webhook = webhook;
    }
    for (const [id, webhook] of stored) {
      if (this.#receivers.has(id)) continue;
      this.#receivers.set(id, new Receiver(webhook, this.#options, this.#tally));
    }
  }

  /** Sends nothing more; what waits is dropped. */
  stop(): void {
    this.#isOver = true;
    const left = this.#receivers.values().reduce((sum, one) => sum + one.end(), 0);
    if (left > 0) log.warn("webhooks that waited are dropped", { events: left });
  }

  #receiverOf(id: string): Receiver {
    this.follow();
    const receiver = this.#receivers.get(id);
    if (receiver !== undefined) return receiver;
    throw new SvcError("not_found", `${shownText(id)}: there is no such webhook`);
  }

  #bodyOf(id: string, event: string, data: EventData): Uint8Array {
    const { node, nowMs } = this.#options;
    const time = new Date(nowMs()).toISOString();
    const cut = Object.entries(data).map(([key, value]) =>
      [key, typeof value === "string" ? value.slice(0, TEXT_LENGTH_MAX) : value] as const
    );
    return encoder.encode(
      JSON.stringify({ id, event, time, node, data: Object.fromEntries(cut) }),
    );
  }

  #mayTell(event: WebhookEvent): boolean {
    const nowMs = this.#options.steadyMs();
    const most = EVENTS_PER_HOUR[event];
    const { left, asOfMs } = this.#allowances.get(event) ?? { left: most, asOfMs: nowMs };
    const filled = Math.min(most, left + (nowMs - asOfMs) / HOUR_MS * most);
    const may = filled >= 1;
    this.#allowances.set(event, { left: may ? filled - 1 : filled, asOfMs: nowMs });
    return may;
  }
}
