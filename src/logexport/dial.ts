import { messageOf, SvcError } from "../errors.ts";
import { secured } from "../http/secured.ts";

/** Longest wait for a connection and its handshake, at one address. */
const DIAL_MS_MAX = 5_000;

/** Where a receiver is. */
export type Place =
  | { readonly kind: "unix"; readonly path: string }
  | {
    readonly kind: "tcp" | "tls";
    /** IP addresses in the order to try them. */
    readonly addresses: readonly string[];
    readonly port: number;
    /** What the certificate has to cover. */
    readonly serverName: string;
    /** PEM of an authority that is trusted beside the public ones, or `null`. */
    readonly caPem: string | null;
  };

/** A connection, as far as exports need one. `close` may be called more than once. */
export interface Connection {
  readonly read: (target: Uint8Array) => Promise<number | null>;
  readonly write: (bytes: Uint8Array) => Promise<number>;
  readonly close: () => void;
}

/**
 * Connects, and makes sure of whom to where that is wanted.
 *
 * @throws {SvcError} `unavailable`, with what the last address said.
 */
export async function dial(place: Place, signal: AbortSignal): Promise<Connection> {
  if (place.kind === "unix") {
    return await inTime(signal, () => Deno.connect({ transport: "unix", path: place.path }));
  }
  let last: unknown = new SvcError("unavailable", "the host has no address");
  for (const hostname of place.addresses) {
    try {
      return await inTime(signal, (timely) => connect(place, hostname, timely));
    } catch (error) {
      last = error;
      if (signal.aborted) break;
    }
  }
  throw last;
}

async function connect(
  { kind, port, serverName, caPem }: Extract<Place, { port: number }>,
  hostname: string,
  signal: AbortSignal,
): Promise<Deno.Conn> {
  const tcp = await Deno.connect({ hostname, port, signal });
  tcp.setNoDelay(true);
  if (kind === "tcp") return tcp;
  const caCerts = caPem === null ? [] : [caPem];
  return await secured(tcp, { hostname: serverName, caCerts }, signal);
}

/** Gives up after a time; a connection that is made all the same is closed. */
async function inTime(
  signal: AbortSignal,
  make: (signal: AbortSignal) => Promise<Deno.Conn>,
): Promise<Connection> {
  const timely = AbortSignal.any([signal, AbortSignal.timeout(DIAL_MS_MAX)]);
  const made = make(timely);
  const { promise, reject } = Promise.withResolvers<never>();
  const give = () => {
    const why = signal.aborted ? "is not wanted any more" : `took more than ${DIAL_MS_MAX} ms`;
    reject(new SvcError("unavailable", `the connection ${why}`));
  };
  timely.addEventListener("abort", give);
  try {
    const conn = await Promise.race([made, promise]);
    return {
      read: (target) => conn.read(target),
      write: (bytes) => conn.write(bytes),
      close: closing(conn),
    };
  } catch (error) {
    made.then((conn) => conn.close(), () => {});
    throw new SvcError("unavailable", messageOf(error), { cause: error });
  } finally {
    timely.removeEventListener("abort", give);
  }
}

/** Closes once. */
function closing(conn: Pick<Deno.Conn, "close">): () => void {
  let isOpen = true;
  return () => {
    if (!isOpen) return;
    isOpen = false;
    conn.close();
  };
}
