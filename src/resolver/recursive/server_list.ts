import type { NameServer } from "./name_servers.ts";

/** A few servers, each as often as it was added. Emptied and used again. */
export class ServerList {
  readonly #servers: NameServer[] = [];
  #length = 0;

  clear(): void {
    this.#length = 0;
  }

  add(server: NameServer): void {
    this.#servers[this.#length++] = server;
  }

  /** Takes the one added last out again. */
  drop(): void {
    this.#length--;
  }

  /** How often it was added. */
  count(server: NameServer): number {
    let count = 0;
    for (let i = 0; i < this.#length; i++) if (this.#servers[i] === server) count++;
    return count;
  }

  has(server: NameServer): boolean {
    for (let i = 0; i < this.#length; i++) if (this.#servers[i] === server) return true;
    return false;
  }
}
