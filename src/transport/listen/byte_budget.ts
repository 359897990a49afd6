/** A connection whose bytes count. */
export interface Account {
  /** See `clientOf`. */
  readonly network: string;
  /** Bytes that are held for it at this moment. */
  readonly heldBytes: number;
  /** Ends the connection, and with it what is held. */
  cut(): void;
}

/** Share of the bound that counts as all of it. */
const FULL_SHARE = 3 / 4;

/**
 * A bound on the bytes that many connections have an isolate hold, all of them together. What is
 * held shrinks by itself, in the system's time, and is not watched: only growth is told, and the
 * connections are looked through when there was enough of that. If most of it is still held then,
 * clients lose the connections for which something is held, the client that holds most first, until
 * half is free: the next look is never near.
 */
export class ByteBudget {
  readonly #limitBytes: number;
  readonly #accounts = new Set<Account>();
  /** No more than this is held. */
  #boundBytes = 0;
  /** Connections that were cut off. */
  cutOff = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  open(account: Account): void {
    this.#accounts.add(account);
  }

  close(account: Account): void {
    this.#accounts.delete(account);
  }

  /** More is held than before. */
  grew(bytes: number): void {
    this.#boundBytes += bytes;
    if (this.#boundBytes > this.#limitBytes) this.#settle();
  }

  /** Finds out what is held, and makes room. */
  #settle(): void {
    const byClient = new Map<string, { bytes: number; accounts: Account[] }>();
    let heldBytes = 0;
    for (const account of this.#accounts) {
      const bytes = account.heldBytes;
      if (bytes === 0) continue;
      heldBytes += bytes;
      let client = byClient.get(account.network);
      if (client === undefined) {
        byClient.set(account.network, client = { bytes: 0, accounts: [] });
      }
      client.bytes += bytes;
      client.accounts.push(account);
    }
    if (heldBytes > this.#limitBytes * FULL_SHARE) {
      const clients = [...byClient.values()].sort((a, b) => b.bytes - a.bytes);
      for (const { bytes, accounts } of clients) {
        if (heldBytes <= this.#limitBytes / 2) break;
        heldBytes -= bytes;
        this.cutOff += accounts.length;
        for (const account of accounts) account.cut();
      }
    }
    this.#boundBytes = heldBytes;
  }
}
