import { messageOf } from "../../errors.ts";
import { log } from "../../log.ts";
import type { ObliviousHandler } from "./doh.ts";
import { type HttpClient, HttpFailure, type HttpRequest, MediaType, Method } from "./http.ts";
import { ResponseHead } from "./http.ts";
import { Oblivious, ObliviousKeys, ObliviousQuery, type OpenedQuery } from "./odoh.ts";

/** Queries that are being decrypted at a time; the next one is told to come again. */
const PENDING_MAX = 256;

const ANSWER = new ResponseHead(200, {
  "content-type": "application/oblivious-dns-message",
  "cache-control": "no-store",
});
const FAILURES = {
  malformed: new HttpFailure(400, "the message is no oblivious query, or its key is not ours"),
  unknownKey: new HttpFailure(401, "the key is not known: fetch /.well-known/odohconfigs again"),
  internal: new HttpFailure(500, "the service failed"),
  busy: new HttpFailure(503, "too many oblivious queries at a time", { "retry-after": "1" }),
} as const;

export interface ObliviousAsker {
  /** A DNS message out of an oblivious one; see `DohHandler.onQuery`. */
  onObliviousQuery(request: HttpRequest, message: Uint8Array): void;
  /** A request was no query. */
  onRejected(): void;
}

/** The request that an oblivious query came in: its response is encrypted. */
class ObliviousRequest implements HttpRequest {
  readonly method: Method = Method.Post;
  readonly mediaType: MediaType = MediaType.Oblivious;
  readonly target: Uint8Array = new Uint8Array(0);
  readonly targetStart = 0;
  readonly targetEnd = 0;

  constructor(private readonly outer: HttpRequest, private readonly opened: OpenedQuery) {}

  get from(): HttpClient {
    return this.outer.from;
  }

  respond(
    head: ResponseHead,
    maxAge: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    if (head.status !== 200) {
      this.outer.respond(head, maxAge, bytes, offset, length);
      return;
    }
    const sealed = this.opened.seal(bytes, offset, length);
    this.outer.respond(ANSWER, -1, sealed, 0, sealed.length);
  }
}

/** A target for Oblivious DoH (RFC 9230 §4.3, §6). */
export class ObliviousTarget implements ObliviousHandler {
  readonly #asker: ObliviousAsker;
  #keys: ObliviousKeys;
  #pending = 0;

  private constructor(asker: ObliviousAsker, keys: ObliviousKeys) {
    this.#asker = asker;
    this.#keys = keys;
  }

  /** `seeds` are those of the keys, the current one first; see `ODOH_SEED_BYTES`. */
  static async open(
    seeds: readonly Uint8Array[],
    asker: ObliviousAsker,
  ): Promise<ObliviousTarget> {
    return new ObliviousTarget(asker, await ObliviousKeys.derive(seeds));
  }

  get configs(): Uint8Array {
    return this.#keys.configs;
  }

  /** Goes on with other keys. */
  async renew(seeds: readonly Uint8Array[]): Promise<void> {
    this.#keys = await ObliviousKeys.derive(seeds);
  }

  onMessage(request: HttpRequest, message: Uint8Array, start: number, end: number): void {
    const query = this.#keys.find(message, start, end);
    if (!(query instanceof ObliviousQuery)) {
      const isUnknown = query === Oblivious.UnknownKey;
      this.#refuse(request, isUnknown ? FAILURES.unknownKey : FAILURES.malformed);
    } else if (this.#pending >= PENDING_MAX) {
      this.#refuse(request, FAILURES.busy);
    } else {
      this.#pending++;
      void this.#open(request, query);
    }
  }

  async #open(request: HttpRequest, query: ObliviousQuery): Promise<void> {
    let opened: OpenedQuery | null;
    try {
      opened = await query.open();
    } catch (error) {
      log.error("an oblivious query could not be decrypted", { error: messageOf(error) });
      FAILURES.internal.answer(request);
      return;
    } finally {
      this.#pending--;
    }
    if (opened === null) this.#refuse(request, FAILURES.malformed);
    else this.#asker.onObliviousQuery(new ObliviousRequest(request, opened), opened.message);
  }

  #refuse(request: HttpRequest, failure: HttpFailure): void {
    this.#asker.onRejected();
    failure.answer(request);
  }
}
