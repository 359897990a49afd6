import type {
  BackupFile,
  ClientSpec,
  ClientsSeen,
  ClusterReport,
  Envelope,
  ErrorAnswer,
  Explanation,
  GroupSpec,
  Health,
  ListSpec,
  ListStatus,
  Me,
  Migrated,
  NewToken,
  Pause,
  QuerylogPage,
  Restored,
  RuleSpec,
  Services,
  Statistics,
  Status,
  Token,
  UpdateCheck,
} from "../api/mod.ts";
import { ERROR_CODES, type ErrorCode, messageOf, SvcError } from "../errors.ts";
import { FarClock } from "./far_clock.ts";
import { readEvents, type ServerEvent } from "./read_events.ts";

/** Longest wait for an answer, its body included. */
const ANSWER_MS_MAX = 10_000;
/** Longest answer: a backup's; no page of the API comes near. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

const NO_CONTENT = 204;
/** Longest silence of a stream: the service gives a sign of life each 15 seconds. */
const STREAM_SILENCE_MS_MAX = 40_000;

export type ListEnvelope = Envelope<ListSpec> & { readonly status: ListStatus };
interface Items<T> {
  readonly items: readonly T[];
}

/** What is answered, by method and path below `/api/v1`. */
export interface Answers {
  "GET auth/me": Me;
  "GET backup": BackupFile;
  "GET clients": Items<Envelope<ClientSpec>>;
  "POST clients": Envelope<ClientSpec>;
  "GET clients/{id}": Envelope<ClientSpec>;
  "PUT clients/{id}": Envelope<ClientSpec>;
  "DELETE clients/{id}": null;
  "GET clients/seen": ClientsSeen;
  "GET cluster": ClusterReport;
  "GET explain": Explanation;
  "GET groups": Items<Envelope<GroupSpec>>;
  "GET groups/{id}": Envelope<GroupSpec>;
  "PUT groups/{id}": Envelope<GroupSpec>;
  "GET health": Health;
  "GET lists": Items<ListEnvelope>;
  "GET lists/{id}": ListEnvelope;
  "PUT lists/{id}": ListEnvelope;
  "PUT pause": Pause;
  "DELETE pause": Pause;
  "POST migrate": Migrated;
  "GET querylog": QuerylogPage;
  "POST rules": Envelope<RuleSpec>;
  "DELETE rules/{id}": null;
  "GET services": Services;
  "GET tokens": Items<Token>;
  "POST tokens": NewToken;
  "DELETE tokens/{id}": null;
  "GET stats": Statistics;
  "GET status": Status;
  "POST restore": Restored;
  "POST update/check": UpdateCheck;
}

/** What is told as server-sent events. */
export type Streams = "events" | "querylog/stream";

/** What goes with a request. */
export interface Question {
  /** In the place of `{id}`. */
  readonly id?: string;
  /** The revision that is to be replaced. */
  readonly ifMatch?: number;
  /** Left out of the query where it is undefined. */
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Of a backup's secrets. */
  readonly passphrase?: string | undefined;
}

/** What goes with a stream, and who is told what comes. */
export interface Watched {
  readonly query?: NonNullable<Question["query"]>;
  /** The stream begins behind this event. */
  readonly lastEventId?: string | null;
  readonly signal: AbortSignal;
  readonly onOpen: () => void;
  readonly onEvent: (event: ServerEvent) => void;
}

export interface ClientOptions {
  /** Where the API is; http or https. A path of it is not looked at. */
  readonly base: URL;
  /** `null`: requests carry none. */
  readonly token: string | null;
  /** Longest wait for an answer, its body included. */
  readonly timeoutMs?: number;
  /** Longest answer. */
  readonly bytesMax?: number;
}

/** Asks one service. A request is sent once, whatever comes of it. */
export class ApiClient {
  /** Where the API is. */
  get origin(): string {
    return this.#base.origin;
  }

  /** What time it is there. */
  readonly clock = new FarClock();
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #bytesMax: number;

  constructor({ base, token, timeoutMs, bytesMax }: ClientOptions) {
    this.#base = base;
    this.#headers = {
      accept: "application/json",
      ...(token !== null && { authorization: `Bearer ${token}` }),
    };
    this.#timeoutMs = timeoutMs ?? ANSWER_MS_MAX;
    this.#bytesMax = bytesMax ?? ANSWER_BYTES_MAX;
  }

  /** @throws {SvcError} With the API's code and message, or `unavailable`; the service comes first. */
  async call<Line extends keyof Answers>(
    line: Line,
    { id = "", ifMatch, query = {}, body, passphrase }: Question = {},
  ): Promise<Answers[Line]> {
    const [method, path] = line.split(" ");
    const url = this.#url(path.replace("{id}", encodeURIComponent(id)), query);
    const { ok, status, text } = await this.#ask(url, {
      method,
      headers: {
        ...this.#headers,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }),
        // A header holds no other letters as they are.
        ...(passphrase !== undefined && { "svc-passphrase": encodeURIComponent(passphrase) }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: "error", // The token is for this address alone.
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    if (status === NO_CONTENT) return null as Answers[Line];
    const json = parseObject(text);
    if (ok && json !== null) return json as Answers[Line];
    throw failureOf(url.origin, status, json);
  }

  /**
   * Hands on what a stream tells until it ends, falls silent or is aborted; an end by `signal` is no
   * error.
   *
   * @throws {SvcError} As `call`.
   */
  async watch(
    path: Streams,
    { query = {}, lastEventId = null, signal, onOpen, onEvent }: Watched,
  ): Promise<void> {
    const url = this.#url(path, query);
    const silence = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const alive = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(new Error("it has fallen silent")), ms);
    };
    try {
      alive(this.#timeoutMs);
      const sentMs = Date.now();
      const request = fetch(url, {
        headers: {
          ...this.#headers,
          accept: "text/event-stream",
          ...(lastEventId !== null && { "last-event-id": lastEventId }),
        },
        redirect: "error",
        signal: AbortSignal.any([signal, silence.signal]),
      });
      const response = await answerFrom(url, request);
      const { ok, status, headers, body } = response;
      this.clock.learn(headers.get("date"), sentMs);
      if (!ok || body === null) {
        const text = await answerFrom(url, this.#readBody(response));
        throw failureOf(url.origin, status, parseObject(text));
      }
      onOpen();
      alive(STREAM_SILENCE_MS_MAX);
      await answerFrom(url, readEvents(body, onEvent, () => alive(STREAM_SILENCE_MS_MAX)));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #url(path: string, query: NonNullable<Question["query"]>): URL {
    const url = new URL(`/api/v1/${path}`, this.#base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    return url;
  }

  async #ask(url: URL, request: RequestInit) {
    const sentMs = Date.now();
    const response = await answerFrom(url, fetch(url, request));
    const { ok, status, headers } = response;
    this.clock.learn(headers.get("date"), sentMs);
    return { ok, status, text: await answerFrom(url, this.#readBody(response)) };
  }

  async #readBody({ body }: Response): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    let lengthBytes = 0;
    for await (const chunk of body ?? []) {
      lengthBytes += chunk.length;
      if (lengthBytes > this.#bytesMax) {
        throw new SvcError("unavailable", `its answer is longer than ${this.#bytesMax} bytes`);
      }
      text += decoder.decode(chunk, { stream: true });
    }
    return text + decoder.decode();
  }
}

/** What comes of asking there; a failure says where, and that there was no answer. */
async function answerFrom<T>({ origin }: URL, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    const reason = error instanceof SvcError
      ? error.message
      : `no answer: is svc running, and is this its api.listen? (${messageOf(error)})`;
    throw new SvcError("unavailable", `${origin}: ${reason}`, { cause: error });
  }
}

/** What an answer other than the expected one comes to. */
function failureOf(origin: string, status: number, json: object | null): SvcError {
  const { error } = (json ?? {}) as Partial<ErrorAnswer>;
  if (typeof error?.message !== "string") {
    return new SvcError("unavailable", `${origin}: it answers ${status}, and is no svc`);
  }
  // A service of another release may have codes that are not known here.
  const code: ErrorCode = ERROR_CODES.find((known) => known === error.code) ?? "bad_request";
  return new SvcError(code, `${origin}: ${error.message}`);
}

function parseObject(text: string): object | null {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" ? json : null;
  } catch {
    return null;
  }
}
