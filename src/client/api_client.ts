import type {
  BackupFile,
  ClusterReport,
  ErrorAnswer,
  Explanation,
  Health,
  QuerylogPage,
  Restored,
  Services,
  Statistics,
  Status,
  UpdateCheck,
} from "../api/mod.ts";
import { ERROR_CODES, type ErrorCode, messageOf, SvcError } from "../errors.ts";

/** Longest wait for an answer, its body included. */
const ANSWER_MS_MAX = 10_000;
/** Longest answer: a backup's; no page of the API comes near. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** What is answered, by method and path below `/api/v1`. */
export interface Answers {
  "GET backup": BackupFile;
  "GET cluster": ClusterReport;
  "GET explain": Explanation;
  "GET health": Health;
  "GET querylog": QuerylogPage;
  "GET services": Services;
  "GET stats": Statistics;
  "GET status": Status;
  "POST restore": Restored;
  "POST update/check": UpdateCheck;
}

/** What goes with a request. */
export interface Question {
  /** Left out of the query where it is undefined. */
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Of a backup's secrets. */
  readonly passphrase?: string | undefined;
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
    { query = {}, body, passphrase }: Question = {},
  ): Promise<Answers[Line]> {
    const [method, path] = line.split(" ");
    const url = new URL(`/api/v1/${path}`, this.#base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    const { ok, status, text } = await this.#ask(url, {
      method,
      headers: {
        ...this.#headers,
        ...(body !== undefined && { "content-type": "application/json" }),
        // A header holds no other letters as they are.
        ...(passphrase !== undefined && { "svc-passphrase": encodeURIComponent(passphrase) }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: "error", // The token is for this address alone.
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    const json = parseObject(text);
    if (ok && json !== null) return json as Answers[Line];
    throw failureOf(url.origin, status, json);
  }

  async #ask(url: URL, request: RequestInit) {
    try {
      const response = await fetch(url, request);
      const { ok, status } = response;
      return { ok, status, text: await this.#readBody(response) };
    } catch (error) {
      const reason = error instanceof SvcError
        ? error.message
        : `no answer: is svc running, and is this its api.listen? (${messageOf(error)})`;
      throw new SvcError("unavailable", `${url.origin}: ${reason}`, { cause: error });
    }
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
