import type { Clock } from "../clock/mod.ts";
import { SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { Credential, CredentialSpec } from "../model/mod.ts";
import type { Identity } from "./access.ts";
import { isSameSha256 } from "./secrets.ts";

type Token = Credential<"tokens">;
type Tokens = ReadonlyMap<string, Token>;

/** Of each map of tokens, which never changes: them by their hashes. */
const INDEXES = new WeakMap<Tokens, ReadonlyMap<string, Token>>();

/**
 * The token that has this SHA-256, be it over; `null`: none has. How long that takes tells nothing of
 * a token: nobody who does not have it can choose what it hashes to.
 */
export function findToken(tokens: Tokens, sha256: string): Token | null {
  let index = INDEXES.get(tokens);
  if (index === undefined) {
    index = new Map([...tokens.values()].map((token) => [token.secret.sha256, token]));
    INDEXES.set(tokens, index);
  }
  const found = index.get(sha256);
  return found !== undefined && isSameSha256(found.secret.sha256, sha256) ? found : null;
}

export function hasEnded({ spec: { expires_at } }: Token, nowMs: number): boolean {
  return expires_at !== null && nowMs >= Date.parse(expires_at);
}

/**
 * Refuses a token that is over when it is made, or that would let in more or longer than what it is
 * made with.
 *
 * @throws {SvcError} `invalid`, `forbidden`.
 */
export function checkNewToken(
  { role, expires_at }: CredentialSpec<"tokens">,
  caller: Identity,
  nowMs: number,
): void {
  const endsAtMs = expires_at === null ? Infinity : Date.parse(expires_at);
  if (endsAtMs <= nowMs) throw new SvcError("invalid", "expires_at: it is over already");
  if (role === "admin" && caller.role !== "admin") {
    throw new SvcError("forbidden", "role: it is more than the caller's own");
  }
  const own = caller.token?.spec.expires_at ?? null;
  if (own !== null && endsAtMs > Date.parse(own)) {
    throw new SvcError(
      "forbidden",
      `expires_at: a token that ends makes none that outlives it, ${own}`,
    );
  }
}

/** When a token was used is told to this step. */
export const USE_STEP_MS = 60_000;
/** How often it is written down, all in one. */
export const USES_WRITE_MS = 5 * 60_000;

/** Where a node keeps when tokens were used; the store's `LocalStore` is one. */
export interface UsesStore {
  localValue(name: "token_uses"): Promise<unknown>;
  putLocalValue(name: "token_uses", value: unknown): Promise<void>;
}

/**
 * When tokens were last used on this node, to the minute: in memory for each request, and written to
 * disk once in a while, so that no request waits for it. A crash forgets the last of it.
 */
export class TokenUses {
  readonly #store: UsesStore;
  readonly #clock: Clock;
  readonly #tokens: () => Tokens;
  readonly #usedAtMs: Map<string, number>;
  #writtenAtMs: number;
  #isDirty = false;
  /** Ends when nothing is being written. */
  #last: Promise<void> = Promise.resolve();

  private constructor(
    store: UsesStore,
    clock: Clock,
    tokens: () => Tokens,
    usedAtMs: Map<string, number>,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#tokens = tokens;
    this.#usedAtMs = usedAtMs;
    this.#writtenAtMs = clock.nowMs();
  }

  /** `tokens` are those that there are. What can't be read counts as not used. */
  static async open(store: UsesStore, clock: Clock, tokens: () => Tokens): Promise<TokenUses> {
    const known = await store.localValue("token_uses").catch(() => null);
    const times = Object.entries(known ?? {}).filter(([, ms]) => Number.isSafeInteger(ms));
    return new TokenUses(store, clock, tokens, new Map(times));
  }

  /** Notes who it is, if it is a token. */
  used({ token }: Identity): void {
    if (token === null) return;
    const nowMs = this.#clock.nowMs();
    const stepMs = nowMs - nowMs % USE_STEP_MS;
    if (this.#usedAtMs.get(token.id) !== stepMs) {
      this.#usedAtMs.set(token.id, stepMs);
      this.#isDirty = true;
    }
    if (!this.#isDirty || Math.abs(nowMs - this.#writtenAtMs) < USES_WRITE_MS) return;
    this.#writtenAtMs = nowMs;
    void this.save();
  }

  /** `null`: never, as far as this node knows. */
  lastUsedMs(id: string): number | null {
    return this.#usedAtMs.get(id) ?? null;
  }

  /** Writes down what is new. Never throws: it is tried again later. */
  save(): Promise<void> {
    this.#last = this.#last.then(() => this.#write());
    return this.#last;
  }

  async #write(): Promise<void> {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#writtenAtMs = this.#clock.nowMs();
    const tokens = this.#tokens();
    for (const id of this.#usedAtMs.keys()) if (!tokens.has(id)) this.#usedAtMs.delete(id);
    try {
      await this.#store.putLocalValue("token_uses", Object.fromEntries(this.#usedAtMs));
    } catch (error) {
      this.#isDirty = true;
      log.warn("when tokens were used is not written down", { error });
    }
  }
}
