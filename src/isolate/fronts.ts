/** Where a transport meets the resolver: each front hands packets in and takes answers back. */
import { parseIp } from "../addr/mod.ts";
import type { UdpBatch } from "../native/mod.ts";
import {
  ClientAddress,
  Reply,
  type Resolver,
  type Responder,
  streamReply,
  Transport,
  Verdict,
  type Waiter,
} from "../resolver/mod.ts";
import { Counter } from "../telemetry/mod.ts";
import type { TcpConnection, TcpHandler, UdpHandler, UdpListener } from "../transport/mod.ts";

// Where a `sockaddr` has its parts: the family in the machine's order, then port, then the address.
const SOCKADDR_IPV4_OFFSET = 4;
const SOCKADDR_IPV6_OFFSET = 8;
const AF_INET = 2;

/** An address that is known as text. One of a zone (`fe80::1%eth0`) is read without it. */
function clientAddress(text: string): ClientAddress {
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
    const peer = batch.peerOffset(i);
    const isIpv4 = (bytes[peer] | (bytes[peer + 1] << 8)) === AF_INET;
    const at = peer + (isIpv4 ? SOCKADDR_IPV4_OFFSET : SOCKADDR_IPV6_OFFSET);
    this.#client.aim(bytes, at, isIpv4 ? 4 : 16);
    const verdict = this.resolver.decide(Transport.Udp, this.#client, bytes, start, end, reply);
    if (verdict === Verdict.Send) {
      batch.queueReply(i, reply.length);
    } else if (verdict === Verdict.Resolve) {
      const waiter = this.resolver.wait(this, reply);
      if (waiter === null) {
        batch.queueReply(i, reply.length);
      } else {
        batch.savePeer(i, waiter.peer);
        this.resolver.resolve(waiter);
      }
    }
  }

  respond(waiter: Waiter, entry: number, ede: number): void {
    const reply = this.#aimAtRoom();
    this.resolver.writeEntry(waiter, entry, ede, reply);
    this.#batch!.queueTo(waiter.peer, reply.length);
  }

  fail(waiter: Waiter, ede: number, text: string): void {
    const reply = this.#aimAtRoom();
    this.resolver.writeFailure(waiter, ede, text, reply);
    this.#batch!.queueTo(waiter.peer, reply.length);
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

  /** A waiter came through this front, so there is a batch. */
  #aimAtRoom(): Reply {
    const batch = this.#batch!;
    if (batch.queued === batch.capacity) batch.flush();
    return this.#aim(batch);
  }
}

/** One buffer for answers to streams: each is taken from it before the next is written. */
const shared = streamReply();

/** Answers of one TCP connection, in whatever order they come. */
class ConnectionAnswers implements Responder {
  readonly client: ClientAddress;

  constructor(private readonly resolver: Resolver, private readonly connection: TcpConnection) {
    this.client = clientAddress(connection.client);
  }

  respond(waiter: Waiter, entry: number, ede: number): void {
    this.resolver.writeEntry(waiter, entry, ede, shared);
    this.#send();
  }

  fail(waiter: Waiter, ede: number, text: string): void {
    this.resolver.writeFailure(waiter, ede, text, shared);
    this.#send();
  }

  #send(): void {
    this.connection.send(shared.bytes, shared.offset, shared.length);
    this.connection.settled();
  }
}

/** DNS over TCP. `turn` is called before a message is looked at. */
export class TcpFront implements TcpHandler {
  readonly #answers = new WeakMap<TcpConnection, ConnectionAnswers>();

  constructor(
    private readonly resolver: Resolver,
    private readonly counts: Float64Array,
    private readonly turn: () => void,
  ) {}

  onOpen(connection: TcpConnection): void {
    this.counts[Counter.TcpConnections]++;
    this.#answers.set(connection, new ConnectionAnswers(this.resolver, connection));
  }

  onRefused(): void {
    this.counts[Counter.TcpRefused]++;
  }

  onMessage(connection: TcpConnection, message: Uint8Array): boolean {
    this.turn();
    this.counts[Counter.QueriesTcp]++;
    const answers = this.#answers.get(connection)!;
    const { length } = message;
    const verdict = this.resolver.decide(
      Transport.Tcp,
      answers.client,
      message,
      0,
      length,
      shared,
    );
    if (verdict === Verdict.Drop) return false;
    const waiter = verdict === Verdict.Resolve ? this.resolver.wait(answers, shared) : null;
    if (waiter === null) {
      connection.send(shared.bytes, shared.offset, shared.length);
      return false;
    }
    this.resolver.resolve(waiter);
    return true;
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
    if (waiter === null) this.#send();
    else this.resolver.resolve(waiter);
  }

  respond(waiter: Waiter, entry: number, ede: number): void {
    this.resolver.writeEntry(waiter, entry, ede, shared);
    this.#send();
  }

  fail(waiter: Waiter, ede: number, text: string): void {
    this.resolver.writeFailure(waiter, ede, text, shared);
    this.#send();
  }

  #send(): void {
    this.reply(shared.bytes.slice(shared.offset, shared.offset + shared.length));
  }
}
