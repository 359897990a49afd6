/** Client IDs have the form of a label: letters, digits and hyphens, 63 of them at most. */
const CLIENT_ID = /^[a-z0-9-]{1,63}$/i;

/** A client ID as it stands in a path or a server name, as bytes in lower case; `null` if it is none. */
export function readClientId(text: string): Uint8Array | null {
  return CLIENT_ID.test(text) ? new TextEncoder().encode(text.toLowerCase()) : null;
}

/**
 * The client ID of a TLS server name: `phone` of `phone.dns.example` where the configuration says
 * `dns.example`. Any other name carries none.
 */
export function clientIdOf(
  serverName: string | null,
  configuredServerName: string | null,
): Uint8Array | null {
  if (serverName === null || configuredServerName === null) return null;
  const at = serverName.length - configuredServerName.length - 1;
  if (at < 1 || serverName[at] !== ".") return null;
  if (serverName.slice(at + 1).toLowerCase() !== configuredServerName.toLowerCase()) return null;
  return readClientId(serverName.slice(0, at));
}
