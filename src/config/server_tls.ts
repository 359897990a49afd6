import type { HostPort } from "../addr/mod.ts";
import type { AcmeConfig, ServerTlsConfig, TlsFiles } from "./config.ts";
import { boolean, domain, path, type Sockets } from "./readers.ts";
import { arrayOf, type Table } from "./table.ts";

/** Most entries of any array of addresses. */
const ENTRY_COUNT_MAX = 1_000;
const TLS_PORT = 853;
const HTTPS_PORT = 443;

export function readServerTls(
  t: Table,
  directory: string,
  sockets: Sockets,
  acme: AcmeConfig | null,
): ServerTlsConfig {
  const listen = (key: string, port: number, ...transports: ("udp" | "tcp")[]): HostPort[] =>
    t.read(key, arrayOf(sockets.listen(port, ...transports), ENTRY_COUNT_MAX), []);
  const tls = {
    files: readTlsFiles(t, "cert", "key", directory, acme),
    serverName: t.optional("server_name", domain),
    dot: listen("dot", TLS_PORT, "tcp"),
    doh: listen("doh", HTTPS_PORT, "tcp"),
    doq: listen("doq", TLS_PORT, "udp"),
    odoh: t.read("odoh", boolean, false),
    requireClientId: t.read("require_client_id", boolean, false),
  };
  if (!t.has("cert") && !t.has("key") && acme === null) {
    for (const key of ["dot", "doh", "doq"] as const) {
      if (tls[key].length === 0) continue;
      t.place.at(key).problem(
        "needs a certificate: set server.tls.cert and server.tls.key, or [acme]",
      );
    }
  }
  if (tls.odoh && tls.doh.length === 0) {
    t.place.at("odoh").problem("needs a DNS over HTTPS listener: set server.tls.doh");
  }
  const hasNamed = t.has("server_name") && tls.dot.length + tls.doq.length > 0;
  if (tls.requireClientId && tls.doh.length === 0 && !hasNamed) {
    t.place.at("require_client_id").problem(
      "leaves nobody to answer, as no client can tell its ID: set server.tls.doh, or " +
        "server.tls.server_name with dot or doq",
    );
  }
  return tls;
}

/** A certificate and its key; one without the other is a problem. */
export function readTlsFiles(
  t: Table,
  certKey: string,
  keyKey: string,
  directory: string,
  acme: AcmeConfig | null,
): TlsFiles | null {
  const certFile = t.optional(certKey, path(directory));
  const keyFile = t.optional(keyKey, path(directory));
  if (t.has(certKey) !== t.has(keyKey)) {
    const [given, missing] = t.has(certKey) ? [certKey, keyKey] : [keyKey, certKey];
    t.place.at(given).problem(`goes together with ${missing}: set that as well`);
  }
  if (acme !== null && t.has(certKey)) {
    t.place.at(certKey).problem("is a second certificate beside that of [acme]: take one away");
  }
  if (acme !== null) return acme.files;
  return certFile === null || keyFile === null ? null : { certFile, keyFile };
}
