/** Where DNS over HTTPS meets the resolver. */
import {
  ClientAddress,
  clientIdOf,
  type Reply,
  type Responder,
  streamReply,
  Transport,
  Verdict,
} from "../../resolver/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import { answerQuery, refuseQuery } from "../../transport/listen_encrypted.ts";
import type {
  DohListenerHandler,
  HttpClient,
  HttpRequest,
  ObliviousAsker,
  ObliviousHandler,
} from "../../transport/mod.ts";
import { clientAddress, type FrontOptions } from "./fronts.ts";

/** One buffer for answers: each is taken from it before the next is written. */
const shared = streamReply();

/** What is known of a connection's client. */
interface Client {
  readonly address: ClientAddress;
  /** The client ID of its TLS server name. */
  readonly serverNameId: Uint8Array | null;
}

/** The answer to one request, which waits. */
class RequestAnswer implements Responder {
  constructor(private readonly request: HttpRequest) {}

  room(): Reply {
    return shared;
  }

  send(): void {
    answerQuery(this.request, shared.bytes, shared.offset, shared.length);
  }
}

/** DNS over HTTPS, and Oblivious DoH once `oblivious` is set. */
export class DohFront implements DohListenerHandler, ObliviousAsker {
  oblivious: ObliviousHandler | null = null;
  readonly #options: FrontOptions;
  readonly #clients = new WeakMap<HttpClient, Client>();

  constructor(options: FrontOptions) {
    this.#options = options;
  }

  admits(client: string): boolean {
    return this.#options.admits(Transport.Doh, clientAddress(client));
  }

  onOpen(): void {
    this.#options.counts[Counter.DohConnections]++;
  }

  onRefused(): void {
    this.#options.counts[Counter.DohRefused]++;
  }

  onHandshakeFailure(): void {
    this.#options.counts[Counter.TlsHandshakeFailures]++;
  }

  onRejected(): void {
    this.#options.counts[Counter.HttpsRejected]++;
  }

  onQuery(
    request: HttpRequest,
    message: Uint8Array,
    start: number,
    end: number,
    clientId: Uint8Array | null,
  ): void {
    const { address, serverNameId } = this.#clientOf(request.from);
    // The path speaks for one query, the server name for the connection.
    address.id = clientId ?? serverNameId;
    this.#options.counts[Counter.QueriesDoh]++;
    this.#ask(Transport.Doh, request, address, message, start, end);
  }

  /** The address is the proxy's, and no name or path says who asks through it (RFC 9230 §1). */
  onObliviousQuery(request: HttpRequest, message: Uint8Array): void {
    const { address } = this.#clientOf(request.from);
    address.id = null;
    this.#options.counts[Counter.QueriesOdoh]++;
    this.#ask(Transport.Odoh, request, address, message, 0, message.length);
  }

  #ask(
    transport: Transport,
    request: HttpRequest,
    client: ClientAddress,
    message: Uint8Array,
    start: number,
    end: number,
  ): void {
    const { resolver, counts, turn } = this.#options;
    turn();
    const before = counts[Counter.RateLimitedDoh];
    const verdict = resolver.decide(transport, client, message, start, end, shared);
    if (counts[Counter.RateLimitedDoh] !== before) request.from.overLimit();
    if (verdict === Verdict.Drop) {
      // Each request gets an answer, and there is none of DNS.
      this.onRejected();
      refuseQuery(request);
      return;
    }
    if (verdict === Verdict.Resolve) {
      const waiter = resolver.wait(new RequestAnswer(request), shared);
      if (waiter !== null) {
        resolver.resolve(waiter);
        return;
      }
    }
    answerQuery(request, shared.bytes, shared.offset, shared.length);
  }

  #clientOf(from: HttpClient): Client {
    const known = this.#clients.get(from);
    if (known !== undefined) return known;
    const client = {
      address: clientAddress(from.client),
      serverNameId: clientIdOf(from.serverName, this.#options.serverName),
    };
    this.#clients.set(from, client);
    return client;
  }
}
