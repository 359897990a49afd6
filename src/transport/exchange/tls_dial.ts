import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { formatIp, parseIp } from "../../addr/mod.ts";
import { messageOf } from "../../errors.ts";
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
  type TlsTarget,
  UNTRUSTED,
  untrusted,
} from "./dial.ts";

/**
 * Connects and makes sure of whom to: the certificate is valid now, comes from a trusted authority,
 * and covers the name (RFC 8310 §8.1). Nothing is sent before that. `session` resumes an earlier
 * connection where server and runtime can; `onSession` is told of new ones.
 *
 * @throws {DialError}
 */
export async function dialTls(
  target: TlsTarget,
  ip: Uint8Array,
  session: Uint8Array | null,
  signal: AbortSignal,
  onSession: (session: Uint8Array) => void = () => {},
): Promise<TLSSocket> {
  try {
    return await handshake(target, ip, session, signal, onSession);
  } catch (error) {
    const code = codeOf(error);
    if (code !== UNVERIFIED || signal.aborted) throw described(target, error);
    throw new DialError(await findFault(target, ip, signal), { cause: error });
  }
}

/** The one code for every certificate that does not lead to a trusted authority at this time. */
const UNVERIFIED = "UNABLE_TO_VERIFY_LEAF_SIGNATURE";

function handshake(
  { serverName, port, ca, alpn }: TlsTarget,
  ip: Uint8Array,
  session: Uint8Array | null,
  signal: AbortSignal,
  /** `null`: a server that is not the right one is looked at all the same. */
  onSession: ((session: Uint8Array) => void) | null,
): Promise<TLSSocket> {
  const rejectUnauthorized = onSession !== null;
  const options: ConnectionOptions = {
    host: formatIp(ip),
    port,
    minVersion: "TLSv1.2",
    ALPNProtocols: [...alpn],
    rejectUnauthorized,
    // A server that is known by its address is checked by it, and gets no name (RFC 6066 §3).
    ...(parseIp(serverName) === null && { servername: serverName }),
    ...(ca !== null && { ca }),
    ...(session !== null && { session: session as Buffer }),
  };
  if (signal.aborted) return Promise.reject(new DialError(NOT_WANTED));
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect(options);
  socket.setNoDelay(true);
  const fail = (error: unknown) => {
    socket.destroy();
    reject(error);
  };
  const unbind = boundDial(signal, fail);
  const onClose = () => fail(new DialError(HUNG_UP));
  // From the beginning to the end: the runtime may tell in the same turn as either.
  if (onSession !== null) socket.on("session", onSession);
  socket.on("error", fail);
  socket.on("close", onClose);
  socket.on("secureConnect", () => {
    socket.off("close", onClose);
    if (rejectUnauthorized && !socket.authorized) fail(new DialError(UNTRUSTED));
    else resolve(socket);
  });
  return promise.finally(unbind);
}

/** Says what is wrong with a certificate. Looks at it on a connection that carries nothing else. */
async function findFault(target: TlsTarget, ip: Uint8Array, signal: AbortSignal): Promise<string> {
  let socket: TLSSocket;
  try {
    socket = await handshake(target, ip, null, signal, null);
  } catch {
    return UNTRUSTED; // The first connection came as far as the certificate.
  }
  const { valid_from: from, valid_to: to } = socket.getPeerCertificate();
  socket.destroy();
  const [fromMs, toMs, nowMs] = [Date.parse(from), Date.parse(to), Date.now()];
  if (nowMs > toMs) return expired(toMs);
  if (nowMs < fromMs) return notYetValid(fromMs);
  return untrusted(target);
}

function described(target: TlsTarget, error: unknown): DialError {
  if (error instanceof DialError) return error;
  const code = codeOf(error);
  const text = messageOf(error).split("\n", 1)[0];
  const fact = FACTS[code];
  const message = fact !== undefined
    ? fact
    : code === "ERR_TLS_CERT_ALTNAME_INVALID"
    ? notFor(target)
    : code.includes("NO_APPLICATION_PROTOCOL")
    ? doesNotSpeak(target)
    : code.startsWith("ERR_SSL")
    ? `and this service find no common way to TLS 1.2 or later (${text})`
    : `took no connection (${code === "" ? text : code})`;
  return new DialError(message, { cause: error });
}

/** What the codes of the system mean. */
const FACTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: REFUSED,
  ECONNRESET: HUNG_UP,
  ETIMEDOUT: "took no connection in time",
  ENETUNREACH: "can't be reached from here",
  EHOSTUNREACH: "can't be reached from here",
  EADDRNOTAVAIL: "can't be reached from here",
  ERR_SSL_WRONG_VERSION_NUMBER: "does not speak TLS on this port",
};

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : "";
}
