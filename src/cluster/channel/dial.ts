import { X509Certificate } from "node:crypto";
import { connect, type TLSSocket } from "node:tls";
import { formatIp, type HostPort } from "../../addr/mod.ts";
import { memberNameOf } from "../../config/mod.ts";
import { messageOf } from "../../errors.ts";
import type { Identity } from "./identity.ts";
import type { ChannelLimits } from "./limits.ts";

/** A member of the configuration file. */
export interface Peer {
  readonly name: string;
  readonly address: HostPort;
}

/** A connection that was not made; the message stands behind the member's name. */
export class DialError extends Error {
  override readonly name = "DialError";
}

/**
 * Connects to a member: TLS 1.3, its certificate is of the cluster's CA and for its name, and this
 * member's is shown. What it thinks of that is heard only later.
 *
 * @throws {DialError}
 */
export function dial(
  { name, address }: Peer,
  { ca, cert, key }: Identity,
  { connectMs, handshakeMs }: ChannelLimits,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({
    host: formatIp(address.ip),
    port: address.port,
    servername: name,
    minVersion: "TLSv1.3",
    ca,
    cert,
    key,
  });
  const fail = (reason: string) => {
    socket.destroy();
    reject(new DialError(reason));
  };
  let timer = setTimeout(() => fail("takes no connection"), connectMs);
  const onAbort = () => fail("is not asked any more");
  const onError = (error: unknown) => fail(faultOf(error));
  const onClose = () => fail("closes connections before they are secure");
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("connect", () => {
    clearTimeout(timer);
    timer = setTimeout(() => fail("does not end a handshake"), handshakeMs);
  });
  socket.on("error", onError);
  socket.on("close", onClose);
  socket.once("secureConnect", () => {
    if (!socket.authorized) return fail(UNTRUSTED);
    // The library is content with one of several names.
    const certificate = new X509Certificate(socket.getPeerCertificate(true).raw);
    if (memberNameOf(certificate) !== name) return fail(FAULTS.ERR_TLS_CERT_ALTNAME_INVALID);
    socket.off("error", onError);
    socket.off("close", onClose);
    resolve(socket);
  });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    socket.on("error", () => {}); // Whoever has the socket listens too.
  });
}

/** The runtime's codes tell no two of these apart for certain. */
const UNTRUSTED =
  "shows a certificate that is not of this cluster's CA, or not valid at this node's time";

const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "refuses connections: nothing listens there",
  ECONNRESET: "closes connections before they are secure",
  ETIMEDOUT: "takes no connection",
  ENETUNREACH: "can't be reached from here",
  EHOSTUNREACH: "can't be reached from here",
  EADDRNOTAVAIL: "can't be reached from here",
  ERR_TLS_CERT_ALTNAME_INVALID: "shows the certificate of another member",
  ERR_SSL_WRONG_VERSION_NUMBER: "does not speak TLS on this port",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "does not speak TLS 1.3",
};

function faultOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (FAULTS[code] !== undefined) return FAULTS[code];
  if (/^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|CERT_)/.test(code)) return UNTRUSTED;
  return `takes no connection (${code === "" ? messageOf(error).split("\n", 1)[0] : code})`;
}
