import type { HostPort } from "../../addr/mod.ts";
import type { Occupancy } from "./connection_table.ts";
import type { StreamServer } from "./stream_server.ts";
import type { TlsIdentity, TlsListener } from "./tls.ts";

/** What serves the connections that a server has taken. */
interface StreamService {
  /** Ends each connection behind the answers to its next queries. */
  retire(): void;
  /** Takes no more queries; those that wait are answered. */
  drain(): void;
  /** Ends every connection. */
  close(): void | Promise<void>;
}

/** A server that takes connections, and the service that they are handed to. */
export abstract class StreamListener<Server extends StreamServer = StreamServer> {
  protected constructor(
    protected readonly server: Server,
    private readonly service: StreamService,
  ) {}

  /** See `StreamServer.listenOn`. */
  listenOn(open: () => number): Promise<void> {
    return this.server.listenOn(open);
  }

  /** See `StreamServer.listenAt`. */
  listenAt(address: HostPort): Promise<void> {
    return this.server.listenAt(address);
  }

  /** The port listened on. */
  get port(): number {
    return this.server.port;
  }

  /** Connections at this moment, those in a handshake among them. */
  get connections(): number {
    return this.server.connections;
  }

  /** Who has them. */
  get occupancy(): Occupancy {
    return this.server.occupancy;
  }

  /** Leaves new connections to another process, and ends those there are as they come to rest. */
  retire(): void {
    this.server.retire();
    this.service.retire();
  }

  /** Takes no more connections and queries; those that wait are answered. */
  drain(): void {
    this.server.close();
    this.service.drain();
  }

  /** Closes every connection; where the service sees to it, once the last answers have left. */
  async close(): Promise<void> {
    this.drain();
    await this.service.close();
  }
}

/** As `StreamListener`, for connections that begin with a handshake. */
export abstract class TlsStreamListener extends StreamListener<TlsListener> {
  /** Handshakes under way. */
  get handshakes(): number {
    return this.server.handshakes;
  }

  /** See `TlsListener.renew`. */
  renew(identity: TlsIdentity): void {
    this.server.renew(identity);
  }
}
