/** Whom to connect to, and why a connection was not made, whichever protocol it was to be. */

/** Longest wait for a connection and its handshake, at one address. */
const DIAL_MS_MAX = 3_000;

/** Whom to connect to, and whom to find there. */
export interface TlsTarget {
  /** The name or address that the certificate has to cover. */
  readonly serverName: string;
  readonly port: number;
  /** PEM of the authorities of a private server, or `null`. */
  readonly ca: string | null;
  /** Protocols offered (RFC 7301). */
  readonly alpn: readonly string[];
  /** What the server is to speak, for messages: "DNS over TLS". */
  readonly protocol: string;
}

/** A connection that was not made. The message stands behind the server's name: "refused …". */
export class DialError extends Error {
  override readonly name = "DialError";
}

export const NOT_WANTED = "is not asked any more";
export const SILENT = `took no connection within ${DIAL_MS_MAX} ms`;
export const REFUSED = "refused the connection";
export const HUNG_UP = "closed the connection before it was secure";
export const UNTRUSTED = "shows a certificate of an authority that is not trusted";

export function untrusted({ ca }: TlsTarget): string {
  return ca === null ? UNTRUSTED : `${UNTRUSTED}: the file of \`ca\` does not lead to it`;
}

export function notFor({ serverName }: TlsTarget): string {
  return `shows a certificate that is not valid for ${serverName}`;
}

export function expired(ms: number): string {
  return `shows a certificate that expired at ${instant(ms)}`;
}

export function notYetValid(ms: number): string {
  return `shows a certificate that is not valid before ${instant(ms)}`;
}

export function doesNotSpeak({ protocol }: TlsTarget): string {
  return `does not speak ${protocol}`;
}

/** A time as ISO text; one beyond all calendars as a number. */
function instant(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}

/** Has a dial fail that takes too long, or is not wanted any more; returns what ends that. */
export function boundDial(signal: AbortSignal, fail: (error: DialError) => void): () => void {
  const timer = setTimeout(() => fail(new DialError(SILENT)), DIAL_MS_MAX);
  const onAbort = () => fail(new DialError(NOT_WANTED));
  signal.addEventListener("abort", onAbort, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  };
}
