import type { Query } from "../query.ts";
import { BELIEVED_MAX } from "./limits.ts";
import type { NameServer } from "./name_servers.ts";

/** Who has answered questions for DS and DNSKEY of late, which others may ask anew. */
export class BelievedServers {
  readonly #servers = new Map<number, NameServer>();

  /** Whoever has answered a question, if that is known. */
  get({ keyHash }: Pick<Query, "keyHash">): NameServer | null {
    return this.#servers.get(keyHash) ?? null;
  }

  set({ keyHash }: Pick<Query, "keyHash">, server: NameServer): void {
    this.#servers.delete(keyHash);
    if (this.#servers.size >= BELIEVED_MAX) {
      for (const oldest of this.#servers.keys()) {
        this.#servers.delete(oldest);
        break;
      }
    }
    this.#servers.set(keyHash, server);
  }
}
