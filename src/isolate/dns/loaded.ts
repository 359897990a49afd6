import type { EncryptedExchange } from "../../transport/exchange_encrypted.ts";
import type { QuicDialer } from "../../transport/exchange_quic.ts";
import type { DnsStart } from "../messages.ts";
import type { EncryptedListeners } from "./encrypted.ts";
import type { RecursionSide } from "./recursion_side.ts";
import type { ValidationSide } from "./validation_side.ts";

/** Code for what not every configuration asks for; `null`: this one does not. */
export interface Loaded {
  readonly Listeners: typeof EncryptedListeners | null;
  readonly Exchange: typeof EncryptedExchange | null;
  readonly Quic: typeof QuicDialer | null;
  readonly Recursion: typeof RecursionSide | null;
  readonly Validation: typeof ValidationSide | null;
}

/** Loads what `start` asks for. */
export async function loadFor({ tls, upstreams, trust, recursion }: DnsStart): Promise<Loaded> {
  const listens = tls !== null && [tls.dot, tls.doh, tls.doq].some(({ length }) => length > 0);
  const asks = upstreams.some(({ transport }) => transport !== "udp");
  const asksQuic = upstreams.some(({ transport }) => transport === "quic");
  const [listeners, exchange, quic, validation, recursive] = await Promise.all([
    listens ? import("./encrypted.ts") : null,
    asks ? import("../../transport/exchange_encrypted.ts") : null,
    asksQuic ? import("../../transport/exchange_quic.ts") : null,
    trust !== null ? import("./validation_side.ts") : null,
    recursion !== null ? import("./recursion_side.ts") : null,
  ]);
  return {
    Listeners: listeners?.EncryptedListeners ?? null,
    Exchange: exchange?.EncryptedExchange ?? null,
    Quic: quic?.QuicDialer ?? null,
    Recursion: recursive?.RecursionSide ?? null,
    Validation: validation?.ValidationSide ?? null,
  };
}
