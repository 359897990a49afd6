import { SvcError } from "../errors.ts";
import {
  type Change,
  type Collection,
  COLLECTIONS,
  CREDENTIAL_TYPE,
  CREDENTIALS,
  RESOURCE_TYPE,
} from "../model/mod.ts";
import type { Shown } from "../store/mod.ts";
import type { Streamed } from "./endpoint.ts";
import { type EventStream, eventStream } from "./event_stream.ts";
import type { ApiDeps } from "./ports.ts";
import type { ChangeEvent, StatusEvent } from "./schemas/events.ts";

/** Who may read at one time. */
export const READERS_MAX = 16;
/** Events that wait for a reader; one more, and the reader goes: it comes again and reads anew. */
export const WAITING_MAX = 1_000;
/** How often the status is looked at while somebody reads. */
const LOOK_MS = 1_000;

interface Reader {
  readonly waiting: string[];
  readonly stream: EventStream;
  drop(): void;
}

export interface EventFeedOptions {
  readonly replicator: Pick<ApiDeps["replicator"], "state" | "subscribe">;
  readonly status: () => StatusEvent;
  readonly lookMs?: number;
}

/** Tells readers what was changed, and how the node is when that is other than before. */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly #readers = new Set<Reader>();
  #looking: ReturnType<typeof setInterval> | undefined;
  /** The last status that was told, as it was told. */
  #status = "";
  /** Readers that were too slow, since the start. */
  dropped = 0;

  constructor(options: EventFeedOptions) {
    this.#options = options;
    options.replicator.subscribe((shown) => {
      if (this.#readers.size > 0) this.#tell(...changesOf(shown).map(changeText));
    });
  }

  /** Those who read at the moment. */
  get readers(): number {
    return this.#readers.size;
  }

  /**
   * Begins to tell; the status comes first.
   *
   * @throws {SvcError} `unavailable`, where too many read already.
   */
  read(): Streamed {
    if (this.#readers.size >= READERS_MAX) {
      throw new SvcError(
        "unavailable",
        `events: ${READERS_MAX} read already, which is the most: ask for the status now and then`,
      );
    }
    const waiting = [statusText(this.#options.status())];
    const stream = eventStream({
      take: () => waiting.splice(0).join(""),
      onClose: () => this.#forget(reader),
    });
    const reader: Reader = {
      waiting,
      stream,
      drop() {
        waiting.length = 0;
        stream.end();
      },
    };
    this.#readers.add(reader);
    if (this.#looking === undefined) {
      [this.#status] = waiting;
      this.#looking = setInterval(() => this.#look(), this.#options.lookMs ?? LOOK_MS);
    }
    return stream.streamed;
  }

  /** Nothing more will come. */
  end(): void {
    for (const { stream } of this.#readers) stream.end();
  }

  #look(): void {
    const text = statusText(this.#options.status());
    if (text === this.#status) return;
    this.#status = text;
    this.#tell(text);
  }

  #tell(...texts: readonly string[]): void {
    for (const reader of this.#readers) {
      if (reader.waiting.length + texts.length > WAITING_MAX) {
        this.dropped++;
        this.#forget(reader);
        reader.drop();
        continue;
      }
      reader.waiting.push(...texts);
      reader.stream.wake();
    }
  }

  #forget(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
  }
}

function changeText(change: ChangeEvent): string {
  return `event: change\ndata: ${JSON.stringify(change)}\n\n`;
}

function statusText(status: StatusEvent): string {
  return `event: status\ndata: ${JSON.stringify(status)}\n\n`;
}

/** What readers are told of a change: where it is about many, to read all of their kind again. */
function changesOf({ change, state }: Shown): ChangeEvent[] {
  const { settings, users } = state;
  const all = (type: string): ChangeEvent => ({ type, id: null, revision: null });
  const ofSettings = { type: "settings", id: null, revision: settings.revision };
  switch (change?.type) {
    case undefined:
    case "restore":
      return [
        ...COLLECTIONS.map((one) => all(RESOURCE_TYPE[one])),
        ...[ofSettings, all("user"), ...CREDENTIALS.map((one) => all(CREDENTIAL_TYPE[one]))],
      ];
    case "migrate":
      return [...COLLECTIONS.map((one) => all(RESOURCE_TYPE[one])), ofSettings];
    case "create":
    case "replace":
    case "delete":
      return [changeOf(change, state.collections[change.collection])];
    case "rules_batch":
      return [all(RESOURCE_TYPE.rules)];
    case "lists_preset":
      return [all(RESOURCE_TYPE.lists), all(RESOURCE_TYPE.groups)];
    case "settings":
      return [ofSettings];
    case "user_create":
      return [{ type: "user", id: change.user.id, revision: revisionIn(users, change.user.id) }];
    case "user_change":
    case "user_delete":
      return [{ type: "user", id: change.id, revision: revisionIn(users, change.id) }];
    case "credential_create":
    case "credential_replace":
    case "credential_delete": {
      const { kind, id } = change;
      const revision = revisionIn(state.credentials[kind], id);
      return [{ type: CREDENTIAL_TYPE[kind], id, revision }];
    }
    case "seed":
      return [
        all(RESOURCE_TYPE.lists),
        all(RESOURCE_TYPE.rules),
        all(RESOURCE_TYPE.groups),
        ofSettings,
      ];
  }
}

type OfOne = Extract<Change, { readonly collection: Collection; readonly id: string }>;

function changeOf({ collection, id }: OfOne, map: Revisions): ChangeEvent {
  return { type: RESOURCE_TYPE[collection], id, revision: revisionIn(map, id) };
}

type Revisions = ReadonlyMap<string, { readonly revision: number }>;

/** `null` where it is gone. */
function revisionIn(map: Revisions, id: string): number | null {
  return map.get(id)?.revision ?? null;
}
