import { formatIp } from "../../addr/mod.ts";
import { messageOf } from "../../errors.ts";
import { DoqError } from "../quic_message.ts";
import type { Channel, ChannelEvents } from "./channel.ts";
import {
  boundDial,
  DialError,
  doesNotSpeak,
  expired,
  HUNG_UP,
  NOT_WANTED,
  notFor,
  notYetValid,
  REFUSED,
  SILENT,
  type TlsTarget,
  untrusted,
} from "./dial.ts";
import { DoqChannel } from "./doq_channel.ts";

/** An idle connection gives a sign this often: routers forget a UDP flow after half a minute. */
const KEEP_ALIVE_MS = 5_000;
/** The runtime gives a connection up after this long without a word, and a handshake as well. */
const SILENT_MS_MAX = 2 * KEEP_ALIVE_MS;
/** A closed connection's last packet leaves within this long, while the event loop turns. */
const LINGER_MS = 100;

const IPV4_BYTES = 4;
const ANY_IPV4 = "0.0.0.0";
const ANY_IPV6 = "::";

/** Connects over QUIC, from one socket for IPv4 and one for IPv6. Neither is opened before its use. */
export class QuicDialer {
  readonly #endpoints = new Map<string, Deno.QuicEndpoint>();
  #lingersUntilMs = 0;

  /** There are last words to be sent. */
  get isInUse(): boolean {
    return performance.now() < this.#lingersUntilMs;
  }

  /**
   * Connects and makes sure of whom to: the certificate is valid now, comes from a trusted authority,
   * and covers the name. Nothing is sent before that (no 0-RTT). The runtime trusts the authorities
   * of `ca` beside the public ones.
   *
   * @throws {DialError}
   */
  async dial(target: TlsTarget, ip: Uint8Array, signal: AbortSignal): Promise<Deno.QuicConn> {
    if (signal.aborted) throw new DialError(NOT_WANTED);
    const { promise, resolve, reject } = Promise.withResolvers<Deno.QuicConn>();
    const unbind = boundDial(signal, reject);
    let isOver = false;
    const connecting = this.#connect(target, ip);
    connecting.then((conn) => {
      const linger = () => this.#lingersUntilMs = performance.now() + LINGER_MS;
      conn.closed.then(linger, linger);
      // The runtime can't be told to stop: what it makes too late is closed.
      if (isOver) closeConn(conn);
      else resolve(conn);
    }, (error) => reject(this.#described(target, error)));
    try {
      const conn = await promise;
      if (conn.protocol === target.alpn[0]) return conn;
      closeConn(conn);
      throw new DialError(doesNotSpeak(target));
    } finally {
      isOver = true;
      unbind();
    }
  }

  /** What sends queries over a connection. */
  open(conn: Deno.QuicConn, events: ChannelEvents): Channel {
    return new DoqChannel(conn, events);
  }

  close(): void {
    for (const endpoint of this.#endpoints.values()) {
      endpoint.close({ closeCode: DoqError.NoError, reason: "" });
    }
    this.#endpoints.clear();
  }

  async #connect(
    { serverName, port, ca, alpn }: TlsTarget,
    ip: Uint8Array,
  ): Promise<Deno.QuicConn> {
    return await Deno.connectQuic<false>({
      hostname: formatIp(ip),
      port,
      serverName,
      alpnProtocols: [...alpn],
      ...(ca !== null && { caCerts: [ca] }),
      endpoint: this.#endpointFor(ip),
      keepAliveInterval: KEEP_ALIVE_MS,
      maxIdleTimeout: SILENT_MS_MAX,
      // A server has nothing to ask (RFC 9250 §4.2).
      maxConcurrentBidirectionalStreams: 0,
      maxConcurrentUnidirectionalStreams: 0,
    });
  }

  #endpointFor(ip: Uint8Array): Deno.QuicEndpoint {
    const hostname = ip.length === IPV4_BYTES ? ANY_IPV4 : ANY_IPV6;
    let endpoint = this.#endpoints.get(hostname);
    if (endpoint === undefined) {
      endpoint = new Deno.QuicEndpoint({ hostname, port: 0 });
      this.#endpoints.set(hostname, endpoint);
    }
    return endpoint;
  }

  #described(target: TlsTarget, cause: unknown): DialError {
    const text = messageOf(cause).split("\n", 1)[0];
    // Its socket has failed: the next connection gets another.
    if (/\bendpoint\b/i.test(text)) this.#endpoints.clear();
    return new DialError(reasonOf(target, text), { cause });
  }
}

/** What the runtime's words mean; those of the server itself are not repeated. */
function reasonOf(target: TlsTarget, text: string): string {
  if (/\bpeer doesn't support any known protocol|no.application.protocol/i.test(text)) {
    return doesNotSpeak(target);
  }
  if (/server refused to accept/.test(text)) return REFUSED;
  if (/^(aborted|closed) by peer|^reset by peer/.test(text)) return HUNG_UP;
  if (/not valid for name/.test(text)) return notFor(target);
  const end = /certificate expired.*not valid after (\d+)/.exec(text);
  if (end !== null) return expired(1_000 * Number(end[1]));
  const start = /not valid yet.*not valid before (\d+)/.exec(text);
  if (start !== null) return notYetValid(1_000 * Number(start[1]));
  if (/UnknownIssuer/.test(text)) return untrusted(target);
  if (/^timed out/.test(text)) return SILENT;
  return `took no connection (${text})`;
}

function closeConn(conn: Deno.QuicConn): void {
  conn.close({ closeCode: DoqError.NoError, reason: "" });
}
