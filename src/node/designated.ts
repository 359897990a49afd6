import type { HostPort } from "../addr/mod.ts";
import type { ServerTlsConfig } from "../config/mod.ts";
import type { RecordSpec } from "../model/mod.ts";

/** Seconds for which a client keeps them: a listener may be gone after a restart. */
const TTL = 300;
const DOT_PORT = 853;
const HTTPS_PORT = 443;

/**
 * Records by which a client of plain DNS finds the encrypted listeners of the same resolver (RFC 9462
 * §4, RFC 9461): at `_dns.resolver.arpa`, and at `_dns` below the listeners' name. None without a
 * name for the certificate to cover, and none where only known client IDs are answered: whoever
 * asks there would carry none.
 */
export function designatedRecords(
  { files, serverName, dot, doh, doq, requireClientId }: ServerTlsConfig,
): RecordSpec[] {
  if (files === null || serverName === null || requireClientId) return [];
  const ways: readonly (readonly [readonly HostPort[], string, number])[] = [
    [doq, "alpn=doq", DOT_PORT],
    [dot, "alpn=dot", DOT_PORT],
    [doh, "alpn=h2 dohpath=/dns-query{?dns}", HTTPS_PORT],
  ];
  const values = ways.flatMap(([listen, params, usual], i) => {
    const port = listen.find(({ port }) => port !== 0)?.port;
    if (port === undefined) return [];
    return [`${i + 1} ${serverName} ${params}${port === usual ? "" : ` port=${port}`}`];
  });
  return ["_dns.resolver.arpa", `_dns.${serverName}`].flatMap((name) =>
    values.map((value) => ({
      ...{ name, type: "SVCB" as const, value, ttl: TTL },
      ...{ enabled: true, comment: "", managed_by: "config" },
    }))
  );
}
