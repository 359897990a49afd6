import type { EncryptedExchange } from "../../transport/exchange_encrypted.ts";
import type { DnsStart } from "../messages.ts";
import type { EncryptedListeners } from "./encrypted.ts";
import type { RecursionSide } from "./recursion_side.ts";
import type { ValidationSide } from "./validation_side.ts";

/** Code for what not every configuration asks for; `null`: this one does not. */
export interface Loaded {
  readonly Listeners: typeof EncryptedListeners | null;
  readonly Exchange: typeof EncryptedExchange | null;
  readonly Recursion: typeof RecursionSide | null;
  readonly Validation: typeof ValidationSide | null;
}

/** Loads what `start` asks for. */
export async function loadFor({ tls, upstreams, trust, recursion }: DnsStart): Promise<Loaded> {
  const listens = tls !== null && [tls.dot, tls.doh, tls.doq].some(({ length }) => length > 0);
  const asks = upstreams.some(({ transport }) => transport !== "udp");
  const [listeners, exchange, validation, recursive] = await Promise.all([
    listens ? import("./encrypted.ts") : null,
    asks ? import("../../transport/exchange_encrypted.ts") : null,
    trust !== null ? import("./validation_side.ts") : null,
    recursion !== null ? import("./recursion_side.ts") : null,
  ]);
  return {
    Listeners: listeners?.EncryptedListeners ?? null,
    Exchange: exchange?.EncryptedExchange ?? null,
    Recursion: recursive?.RecursionSide ?? null,
    Validation: validation?.ValidationSide ?? null,
  };
}
