import { SvcError } from "../errors.ts";
import { askText, type DownloadLimits, type HttpAsk } from "../http/mod.ts";
import { AccountKey, type ExternalAccount } from "./jws.ts";

const LIMITS: DownloadLimits = {
  headTimeoutMs: 30_000,
  idleTimeoutMs: 15_000,
  totalTimeoutMs: 60_000,
  bytesMax: 256 * 1024,
};
/** A nonce that somebody else has used up is no failure; one each time is. */
const NONCE_TRIES_MAX = 4;
const NONCE = /^[A-Za-z0-9_-]{1,256}$/;
const URL_LENGTH_MAX = 2_048;
const DETAIL_LENGTH_MAX = 300;
/** Longest wait that an authority may ask for. */
const RETRY_AFTER_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
const ERROR_PREFIX = "urn:ietf:params:acme:error:";

/** An authority says no. */
export class Refusal extends SvcError {
  /** `type` is the last word of the URN, such as `rateLimited`. */
  constructor(readonly type: string, message: string, readonly retryAfterMs: number | null) {
    super("unavailable", message);
  }
}

/** What an authority answers. */
export interface Answer {
  readonly json: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** Of what was made by the request. */
  readonly location: string | null;
  readonly retryAfterMs: number | null;
}

interface Directory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
}

export interface SessionOptions {
  readonly ask: HttpAsk;
  readonly directory: string;
  readonly key: AccountKey;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
}

/** Signed requests to one authority. Every URL that it names has to be its own. */
export class Session {
  readonly #options: SessionOptions;
  readonly #directory: Directory;
  #nonce: string | null = null;
  /** The account's URL. */
  kid: string | null = null;
  /** By how much the authority's clock is ahead; `null`: it does not tell. */
  readonly aheadMs: number | null;

  private constructor(options: SessionOptions, directory: Directory, aheadMs: number | null) {
    this.#options = options;
    this.#directory = directory;
    this.aheadMs = aheadMs;
  }

  /** @throws {SvcError} For what is no directory. */
  static async open(options: SessionOptions): Promise<Session> {
    const { directory: url, nowMs } = options;
    const { status, headers, text } = await send(options, "GET", url);
    if (status !== 200) {
      throw refusalOf(status, text, url, retryAfter(headers["retry-after"], nowMs()));
    }
    const json = objectOf(text, url);
    const part = (name: string) => urlOf(json[name], `${url}: ${name}`, url);
    const dateMs = Date.parse(headers["date"] ?? "");
    return new Session(
      options,
      { newNonce: part("newNonce"), newAccount: part("newAccount"), newOrder: part("newOrder") },
      Number.isNaN(dateMs) ? null : dateMs - nowMs(),
    );
  }

  /** Makes the account, or finds the one that the key has; returns its URL. */
  async account(email: string | null, external: ExternalAccount | null): Promise<string> {
    const url = this.#directory.newAccount;
    const answer = await this.post(url, {
      termsOfServiceAgreed: true,
      ...(email !== null && { contact: [`mailto:${email}`] }),
      ...(external !== null && {
        externalAccountBinding: this.#options.key.bind(external, url),
      }),
    });
    this.kid = this.urlOf(answer.location, "the account");
    return this.kid;
  }

  /** Places an order; returns its URL. */
  async order(domains: readonly string[]): Promise<string> {
    const identifiers = domains.map((value) => ({ type: "dns", value }));
    const answer = await this.post(this.#directory.newOrder, { identifiers });
    return this.urlOf(answer.location, "the order");
  }

  /**
   * Sends a request; `payload` is `null` where something is only read.
   *
   * @throws {Refusal} With the authority's own words.
   */
  async post(url: string, payload: unknown, accept = "application/json"): Promise<Answer> {
    for (let tries = 1;; tries++) {
      const nonce = this.#nonce ?? await this.#newNonce();
      this.#nonce = null;
      const signed = this.#options.key.sign({ url, nonce, kid: this.kid, payload });
      const body = new TextEncoder().encode(JSON.stringify(signed));
      const { status, headers, text } = await send(this.#options, "POST", url, body, accept);
      this.#keepNonce(headers);
      const retryAfterMs = retryAfter(headers["retry-after"], this.#options.nowMs());
      if (status >= 200 && status < 300) {
        const isJson = headers["content-type"]?.includes("json") === true;
        const json = isJson ? objectOf(text, url) : {};
        return { json, text, location: headers["location"] ?? null, retryAfterMs };
      }
      const refusal = refusalOf(status, text, url, retryAfterMs);
      if (refusal.type !== "badNonce" || tries === NONCE_TRIES_MAX) throw refusal;
    }
  }

  /** A URL of this authority's. @throws {SvcError} For anything else. */
  urlOf(value: unknown, what: string): string {
    return urlOf(value, what, this.#options.directory);
  }

  async #newNonce(): Promise<string> {
    const { headers } = await send(this.#options, "GET", this.#directory.newNonce);
    this.#keepNonce(headers);
    if (this.#nonce === null) throw new SvcError("unavailable", "the authority gives no nonce");
    return this.#nonce;
  }

  #keepNonce(headers: Readonly<Record<string, string>>): void {
    const nonce = headers["replay-nonce"];
    this.#nonce = nonce !== undefined && NONCE.test(nonce) ? nonce : null;
  }
}

function send(
  { ask, signal }: SessionOptions,
  method: "GET" | "POST",
  url: string,
  body?: Uint8Array,
  accept = "application/json",
) {
  return askText(ask, {
    method,
    url: new URL(url),
    headers: { accept, ...(body !== undefined && { "content-type": "application/jose+json" }) },
    limits: LIMITS,
    signal,
    ...(body !== undefined && { body }),
  });
}

function urlOf(value: unknown, what: string, directory: string): string {
  const url = typeof value === "string" && value.length <= URL_LENGTH_MAX ? URL.parse(value) : null;
  if (url === null) throw new SvcError("unavailable", `${what}: the authority names no URL`);
  // What it names is asked next: it must not lead anywhere else, such as into this network.
  if (url.origin === new URL(directory).origin) return url.href;
  throw new SvcError(
    "unavailable",
    `${what}: the authority names ${url.origin}, which is not its own`,
  );
}

function objectOf(text: string, url: string): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && !Array.isArray(json)) {
      return json as Readonly<Record<string, unknown>>;
    }
  } catch {
    // The same.
  }
  throw new SvcError("unavailable", `${url}: what it answers is no JSON object`);
}

/** A text of somebody else's, as one short line. */
export function shown(text: unknown): string {
  const line = String(text).replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  return line.length > DETAIL_LENGTH_MAX ? `${line.slice(0, DETAIL_LENGTH_MAX)}…` : line;
}

/** What a problem document says (RFC 7807), in one line. */
export function detailOf(problem: unknown): string {
  const { type, detail } = Object(problem) as { type?: unknown; detail?: unknown };
  return shown(typeof detail === "string" ? detail : type ?? "it says nothing about why");
}

function refusalOf(
  status: number,
  text: string,
  url: string,
  retryAfterMs: number | null,
): Refusal {
  let problem: { type?: unknown } = {};
  try {
    problem = Object(JSON.parse(text));
  } catch {
    return new Refusal("", `${url}: it answers ${status}`, retryAfterMs);
  }
  const type = typeof problem.type === "string" ? problem.type.replace(ERROR_PREFIX, "") : "";
  return new Refusal(shown(type), `the authority refuses: ${detailOf(problem)}`, retryAfterMs);
}

/** Milliseconds of a `Retry-After` (RFC 9110 §10.2.3); `null`: there is none that can be read. */
function retryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs;
  return Number.isNaN(ms) ? null : Math.min(Math.max(0, ms), RETRY_AFTER_MS_MAX);
}
