import {
  MEMBER_HANDSHAKES_MAX,
  SOURCE_HANDSHAKE_BURST,
  SOURCE_HANDSHAKES_MAX,
  SOURCE_HANDSHAKES_PER_SECOND,
  SOURCES_MAX,
  STRANGER_HANDSHAKE_BURST,
  STRANGER_HANDSHAKES_MAX,
  STRANGER_HANDSHAKES_PER_SECOND,
} from "./limits.ts";

/** A connection that is not a member's yet. */
export interface Unfinished {
  /** Ends it; it leaves the gate by itself. */
  end(): void;
}

/** What an address may still begin. */
interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/**
 * Who may begin a handshake, which costs as much as hundreds of frames. Addresses that are no
 * member's have bounds each and together, and members' have their own, so that members come in
 * whatever strangers do. An honest handshake takes milliseconds: who holds one open for longest is
 * the first to go.
 */
export class Gate {
  readonly #members: ReadonlySet<string>;
  readonly #nowMs: () => number;
  /** By address, the oldest first. */
  readonly #unfinished = new Map<string, Set<Unfinished>>();
  readonly #strangers = new Set<Unfinished>();
  /** The address that was seen last is the last. */
  readonly #buckets = new Map<string, Bucket>();
  readonly #allStrangers: Bucket;

  /** `members` are the addresses of the configuration; `nowMs` never goes back. */
  constructor(members: ReadonlySet<string>, nowMs: () => number) {
    this.#members = members;
    this.#nowMs = nowMs;
    this.#allStrangers = { tokens: STRANGER_HANDSHAKE_BURST, filledAtMs: nowMs() };
  }

  /** Unfinished handshakes. */
  get size(): number {
    let size = 0;
    for (const of of this.#unfinished.values()) size += of.size;
    return size;
  }

  /** Says whether a handshake may begin; it counts from then on until it leaves. */
  enter(source: string, one: Unfinished): boolean {
    const isMember = this.#members.has(source);
    if (!isMember && !this.#mayBegin(source)) return false;
    const most = isMember ? MEMBER_HANDSHAKES_MAX : SOURCE_HANDSHAKES_MAX;
    endOldestOf(this.#unfinished.get(source), most);
    if (!isMember) {
      endOldestOf(this.#strangers, STRANGER_HANDSHAKES_MAX);
      this.#strangers.add(one);
    }
    const own = this.#unfinished.get(source) ?? new Set();
    this.#unfinished.set(source, own.add(one));
    return true;
  }

  #mayBegin(source: string): boolean {
    const nowMs = this.#nowMs();
    const own = this.#bucketOf(source, nowMs);
    if (!take(own, SOURCE_HANDSHAKES_PER_SECOND, SOURCE_HANDSHAKE_BURST, nowMs)) return false;
    const [perSecond, burst] = [STRANGER_HANDSHAKES_PER_SECOND, STRANGER_HANDSHAKE_BURST];
    return take(this.#allStrangers, perSecond, burst, nowMs);
  }

  leave(source: string, one: Unfinished): void {
    this.#strangers.delete(one);
    const own = this.#unfinished.get(source);
    own?.delete(one);
    if (own?.size === 0) this.#unfinished.delete(source);
  }

  #bucketOf(source: string, nowMs: number): Bucket {
    const bucket = this.#buckets.get(source) ??
      { tokens: SOURCE_HANDSHAKE_BURST, filledAtMs: nowMs };
    this.#buckets.delete(source);
    this.#buckets.set(source, bucket);
    if (this.#buckets.size > SOURCES_MAX) {
      for (const longest of this.#buckets.keys()) {
        this.#buckets.delete(longest);
        break;
      }
    }
    return bucket;
  }
}

function take(bucket: Bucket, perSecond: number, burst: number, nowMs: number): boolean {
  const gained = (nowMs - bucket.filledAtMs) * perSecond / 1_000;
  bucket.tokens = Math.min(burst, bucket.tokens + gained);
  bucket.filledAtMs = nowMs;
  if (bucket.tokens < 1) return false;
  bucket.tokens--;
  return true;
}

/** Makes room for one more; who ends leaves the gate. */
function endOldestOf(ones: ReadonlySet<Unfinished> | undefined, most: number): void {
  if (ones === undefined || ones.size < most) return;
  for (const oldest of ones) {
    oldest.end();
    break;
  }
}
