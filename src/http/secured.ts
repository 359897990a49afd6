/**
 * TLS over a connection that is there, for who is to give up in time. Scope: net. RFC 8446. @module
 */

/** Shakes hands; the connection is closed where that fails, or is called off. */
export async function secured(
  tcp: Deno.TcpConn,
  options: Deno.StartTlsOptions,
  signal: AbortSignal,
): Promise<Deno.TlsConn> {
  const tls = await Deno.startTls(tcp, options);
  let isOpen = true;
  const close = () => {
    if (isOpen) tls.close();
    isOpen = false;
  };
  signal.addEventListener("abort", close);
  try {
    signal.throwIfAborted();
    await tls.handshake();
  } catch (error) {
    close();
    throw error;
  } finally {
    signal.removeEventListener("abort", close);
  }
  return tls;
}
