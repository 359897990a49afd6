import type { Config } from "../config/mod.ts";
import { type Native, openNative } from "../native/mod.ts";
import { ApiListeners, LateListeners, openSockets, type Sockets } from "./sockets.ts";

/** The sockets of a node, and who takes those of TLS and HTTP. */
export class Listening {
  readonly native: Native;
  readonly sockets: Sockets;
  readonly api: ApiListeners;
  readonly channel: LateListeners;
  readonly acme: LateListeners;

  private constructor(native: Native, sockets: Sockets) {
    this.native = native;
    this.api = new ApiListeners(native, sockets);
    this.channel = new LateListeners(native, sockets.cluster, "cluster.listen");
    this.acme = new LateListeners(native, sockets.acme, "acme.listen");
    this.sockets = { ...sockets, cluster: this.channel.opened, acme: this.acme.opened };
  }

  /**
   * With the sockets that are open, or new ones; `null`: the C library can't be had.
   *
   * @throws {SvcError} `unavailable`, with the address of DNS that can't be listened on.
   */
  static open(config: Config, isolates: number, opened: Sockets | null): Listening | null {
    const native = openNative();
    if (native === null) return null;
    return new Listening(native, opened ?? openSockets(native, config, isolates));
  }

  /** Closes those but of DNS, whose isolates may still be in them. */
  close(): void {
    this.api.close();
    this.channel.close();
    this.acme.close();
  }
}
