/** Where a transport meets the resolver: each front hands packets in and takes answers back. */
import { parseIp } from "../../addr/mod.ts";
import type { UdpBatch } from "../../native/mod.ts";
import {
  ClientAddress,
  clientIdOf,
  Reply,
  type Resolver,
  type Responder,
  streamReply,
  Transport,
  Verdict,
  type Waiter,
} from "../../resolver/mod.ts";
import { Counter } from "../../telemetry/mod.ts";
import type {
  DnsStream,
  DoqClient,
  DoqExchange,
  DoqHandler,
  DotHandler,
  UdpHandler,
  UdpListener,
} from "../../transport/mod.ts";

/** An address that is known as text. One of a zone (`fe80::1%eth0`) is read without it. */
export function clientAddress(text: string): ClientAddress {
  const client = new ClientAddress();
  const ip = parseIp(text.split("%")[0]);
  if (ip !== null) client.aim(ip, 0, ip.length);
  return client;
}

/** A UDP socket in batches. Nothing is allocated for a query that is answered at once. */
export class UdpFront implements UdpHandler, Responder {
  readonly #reply = new Reply();
  readonly #client = new ClientAddress();
  #batch: UdpBatch | null = null;

  constructor(private readonly resolver: Resolver, private readonly counts: Float64Array) {}

  onPacket({ batch }: UdpListener, i: number): void {
    this.counts[Counter.QueriesUdp]++;
    const reply = this.#aim(batch);
    const start = batch.packetOffset(i);
    const end = start + batch.packetLength(i);
    const { bytes } = batch;
    this.#client.aim(bytes, batch.senderOffset(i), batch.senderLength(i));
    const verdict = this.resolver.decide(Transport.Udp, this.#client, bytes, start, end, reply);
    if (verdict === Verdict.Send) {
      batch.queueReply(i, reply.length);
    } else if (verdict === Verdict.Resolve) {
      const waiter = this.resolver.wait(this, reply);
      if (waiter === null) {
        batch.queueReply(i, reply.length);
      } else {
        batch.saveSender(i, waiter.sender);
        this.resolver.resolve(waiter);
      }
    }
  }

  /** A waiter came through this front, so there is a batch. */
  room(): Reply {
    const batch = this.#batch!;
    if (batch.queued === batch.capacity) batch.flush();
    return this.#aim(batch);
  }

  send({ sender }: Waiter): void {
    this.#batch!.queueTo(sender, this.#reply.length);
  }

  /** Has responses written to the next place of the batch. */
  #aim(batch: UdpBatch): Reply {
    const reply = this.#reply;
    this.#batch = batch;
    reply.bytes = batch.bytes;
    reply.words = batch.words;
    reply.offset = batch.responseOffset();
    return reply;
  }
}

/** One buffer for answers to streams: each is taken from it before the next is written. */
const shared = streamReply();

/** Answers of one connection, in whatever order they come. */
class StreamAnswers implements Responder {
  readonly client: ClientAddress;

  constructor(private readonly stream: DnsStream) {
    this.client = clientAddress(stream.client);
  }

  room(): Reply {
    return shared;
  }

  send(): void {
    this.stream.send(shared.bytes, shared.offset, shared.length);
    this.stream.settled();
  }
}

/** Which stream a front is for, and where its queries and connections are counted. */
interface StreamKind {
  readonly transport: Transport;
  readonly queries: Counter;
  readonly limited: Counter;
  readonly connections: Counter;
  readonly refused: Counter;
}

export const OVER_TCP: StreamKind = {
  transport: Transport.Tcp,
  queries: Counter.QueriesTcp,
  limited: Counter.RateLimitedTcp,
  connections: Counter.TcpConnections,
  refused: Counter.TcpRefused,
};
export const OVER_DOT: StreamKind = {
  transport: Transport.Dot,
  queries: Counter.QueriesDot,
  limited: Counter.RateLimitedDot,
  connections: Counter.DotConnections,
  refused: Counter.DotRefused,
};

/** What every front of an isolate is handed. */
export interface FrontOptions {
  readonly resolver: Resolver;
  readonly counts: Float64Array;
  /** Called before a message is looked at. */
  readonly turn: () => void;
  /** Says whether an address may connect, before anything of it is read. */
  readonly admits: (transport: Transport, client: ClientAddress) => boolean;
  /** The domain that client IDs stand before in a TLS server name. */
  readonly serverName: string | null;
}

/** DNS over TCP or TLS. */
export class StreamFront implements DotHandler {
  readonly #answers = new WeakMap<DnsStream, StreamAnswers>();

  constructor(private readonly kind: StreamKind, private readonly options: FrontOptions) {}

  admits(client: string): boolean {
    return this.options.admits(this.kind.transport, clientAddress(client));
  }

  onOpen(stream: DnsStream): void {
    const { counts, serverName } = this.options;
    counts[this.kind.connections]++;
    const answers = new StreamAnswers(stream);
    answers.client.id = clientIdOf(stream.serverName, serverName);
    this.#answers.set(stream, answers);
  }

  onRefused(): void {
    this.options.counts[this.kind.refused]++;
  }

  onHandshakeFailure(): void {
    this.options.counts[Counter.TlsHandshakeFailures]++;
  }

  onMessage(stream: DnsStream, message: Uint8Array): boolean {
    const { resolver, counts, turn } = this.options;
    turn();
    counts[this.kind.queries]++;
    const answers = this.#answers.get(stream)!;
    const { transport, limited } = this.kind;
    const { length } = message;
    const before = counts[limited];
    const verdict = resolver.decide(transport, answers.client, message, 0, length, shared);
    if (counts[limited] !== before) stream.overLimit();
    if (verdict === Verdict.Drop) return false;
    const waiter = verdict === Verdict.Resolve ? resolver.wait(answers, shared) : null;
    if (waiter === null) {
      stream.send(shared.bytes, shared.offset, shared.length);
      return false;
    }
    resolver.resolve(waiter);
    return true;
  }
}

/** The answer to one query over QUIC. */
class DoqAnswer implements Responder {
  constructor(private readonly exchange: DoqExchange) {}

  room(): Reply {
    return shared;
  }

  send(): void {
    this.exchange.send(shared.bytes, shared.offset, shared.length);
  }
}

/** DNS over QUIC. */
export class DoqFront implements DoqHandler {
  readonly #clients = new WeakMap<DoqClient, ClientAddress>();

  constructor(private readonly options: FrontOptions) {}

  admits(client: string): boolean {
    return this.options.admits(Transport.Doq, clientAddress(client));
  }

  onOpen(from: DoqClient): void {
    this.options.counts[Counter.DoqConnections]++;
    const client = clientAddress(from.client);
    client.id = clientIdOf(from.serverName, this.options.serverName);
    this.#clients.set(from, client);
  }

  onRefused(): void {
    this.options.counts[Counter.DoqRefused]++;
  }

  onHandshakeFailure(): void {
    this.options.counts[Counter.TlsHandshakeFailures]++;
  }

  onMessage(exchange: DoqExchange, message: Uint8Array): void {
    const { resolver, counts, turn } = this.options;
    turn();
    counts[Counter.QueriesDoq]++;
    const client = this.#clients.get(exchange.from)!;
    const before = counts[Counter.RateLimitedDoq];
    const verdict = resolver.decide(Transport.Doq, client, message, 0, message.length, shared);
    if (counts[Counter.RateLimitedDoq] !== before) exchange.from.overLimit();
    if (verdict === Verdict.Drop) {
      exchange.cancel();
      return;
    }
    const waiter = verdict === Verdict.Resolve
      ? resolver.wait(new DoqAnswer(exchange), shared)
      : null;
    if (waiter === null) exchange.send(shared.bytes, shared.offset, shared.length);
    else resolver.resolve(waiter);
  }
}

/** A datagram of the portable listener: its answer goes back by a call of its own. */
export class DatagramFront implements Responder {
  readonly #client: ClientAddress;

  constructor(
    private readonly resolver: Resolver,
    client: string,
    private readonly reply: (response: Uint8Array) => void,
  ) {
    this.#client = clientAddress(client);
  }

  onPacket(packet: Uint8Array): void {
    const { length } = packet;
    const verdict = this.resolver.decide(
      Transport.Udp,
      this.#client,
      packet,
      0,
      length,
      shared,
    );
    if (verdict === Verdict.Drop) return;
    const waiter = verdict === Verdict.Resolve ? this.resolver.wait(this, shared) : null;
    if (waiter === null) this.send();
    else this.resolver.resolve(waiter);
  }

  room(): Reply {
    return shared;
  }

  send(): void {
    this.reply(shared.bytes.slice(shared.offset, shared.offset + shared.length));
  }
}
