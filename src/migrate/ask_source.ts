import * as z from "zod";
import { messageOf, SvcError } from "../errors.ts";
import { askJson, type HttpAsk } from "../http/mod.ts";
import { describeProblems, parseWith } from "../model/mod.ts";
import {
  ANSWER_BYTES_MAX,
  ANSWERS_BYTES_MAX,
  HEAD_MS_MAX,
  IDLE_MS_MAX,
  PACE,
  READ_MS_MAX,
  TEXT_LENGTH_MAX,
} from "./limits.ts";

/** Where a product is, and who asks. */
export interface SourceRequest {
  readonly product: Product;
  /** http or https, without credentials. */
  readonly url: string;
  readonly user: string | null;
  readonly password: string | null;
}

export const PRODUCTS = ["adguard", "pihole"] as const;
export type Product = typeof PRODUCTS[number];
export const PRODUCT_NAMES: Readonly<Record<Product, string>> = {
  adguard: "AdGuard Home",
  pihole: "Pi-hole",
};

const PATHS: Readonly<Record<Product, RegExp>> = {
  // What people copy from a browser: a page of the product, behind what a proxy may have before it.
  adguard: /\/(?:(?:index|login|install)\.html|control(?:\/.*)?)?$/,
  pihole: /\/(?:(?:admin|api)(?:\/.*)?)?$/,
};

/**
 * Where the API of a product is, by the address that people know.
 *
 * @throws {SvcError} `invalid`, if it is no such address.
 */
export function sourceBase(product: Product, text: string): URL {
  const refused = (reason: string) => new SvcError("invalid", `url: ${reason}`);
  const url = URL.parse(text);
  if (url === null) throw refused("it cannot be read as a URL: write http://192.168.1.2");
  if (!/^https?:$/.test(url.protocol)) throw refused("it is no http or https URL");
  if (url.username !== "" || url.password !== "") {
    throw refused("it holds a user name or password: give them by themselves");
  }
  return new URL(`${url.pathname.replace(PATHS[product], "")}/`, url.origin);
}

/** The API of another product, of which nothing is changed. Credentials stay in it. */
export class Source {
  /** Which one, for messages. */
  readonly name: string;
  readonly #ask: HttpAsk;
  readonly #base: URL;
  readonly #signal: AbortSignal;
  #headers: Readonly<Record<string, string>>;
  #bytesLeft = ANSWERS_BYTES_MAX;

  constructor(
    ask: HttpAsk,
    { product, url }: SourceRequest,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ) {
    this.#ask = ask;
    this.#base = sourceBase(product, url);
    this.name = `${PRODUCT_NAMES[product]} at ${this.#base.host}`;
    this.#headers = headers;
    this.#signal = signal;
  }

  /** What goes with every further request. */
  set headers(headers: Readonly<Record<string, string>>) {
    this.#headers = headers;
  }

  /** @throws {SvcError} `unavailable`, unless what is answered is of that shape. */
  async get<S extends z.ZodType>(path: string, schema: S): Promise<z.output<S>> {
    const { status, json } = await this.call("GET", path);
    if (status === 200) return this.#shaped(path, schema, json);
    throw this.failure(path, `it answers ${status}: is this its address, and its version known?`);
  }

  /** As `get`; `null` where it has no such thing, or does not give it away. */
  async getIfThere<S extends z.ZodType>(path: string, schema: S): Promise<z.output<S> | null> {
    const { status, json } = await this.call("GET", path);
    return status === 200 ? this.#shaped(path, schema, json) : null;
  }

  /** @throws {SvcError} `unavailable`, without an answer. */
  async call(
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: unknown,
    signal: AbortSignal = this.#signal,
  ): Promise<{ readonly status: number; readonly json: unknown }> {
    try {
      const answer = await askJson(this.#ask, {
        method,
        url: new URL(path, this.#base),
        headers: this.#headers,
        ...(body !== undefined && { body }),
        limits: {
          headTimeoutMs: HEAD_MS_MAX,
          idleTimeoutMs: IDLE_MS_MAX,
          pace: PACE,
          totalTimeoutMs: READ_MS_MAX,
          bytesMax: Math.min(ANSWER_BYTES_MAX, this.#bytesLeft),
        },
        signal,
      });
      this.#bytesLeft -= answer.lengthBytes;
      return answer;
    } catch (error) {
      const reason = this.#signal.aborted
        ? `not all of it came in ${READ_MS_MAX / 1_000} s`
        : messageOf(error);
      throw this.failure(path, reason);
    }
  }

  failure(path: string, reason: string): SvcError {
    return new SvcError("unavailable", `${this.name}: ${path.split("?")[0]}: ${reason}`);
  }

  /** What was given is not what it lets in. */
  refusal(reason: string): SvcError {
    return new SvcError("invalid", `password: ${this.name}: ${reason}`);
  }

  #shaped<S extends z.ZodType>(path: string, schema: S, json: unknown): z.output<S> {
    const parsed = parseWith(schema, json);
    if (parsed.ok) return parsed.value;
    throw this.failure(path, describeProblems(parsed.problems, "answer"));
  }
}

/** Texts that are only carried on. */
export const text = z.string().max(TEXT_LENGTH_MAX);

/** An array that may be left out or `null`: one product writes an empty one so. */
export function many<S extends z.ZodType>(schema: S, max: number) {
  return z.array(schema).max(max).nullish().transform((all) => all ?? []);
}
