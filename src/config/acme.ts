import type { AcmeConfig } from "./config.ts";
import {
  boolean,
  domain,
  matching,
  oneOf,
  path,
  resolvePath,
  type Sockets,
  text,
  url,
} from "./readers.ts";
import { arrayOf, type Reader, type Table } from "./table.ts";

const LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory";
const HTTP_PORT = 80;
const DNS_PORT = 53;
/** Authorities take a hundred; each is proven by itself. */
const DOMAIN_COUNT_MAX = 20;
const LISTEN_COUNT_MAX = 16;
const KID_LENGTH_MAX = 256;

/** A name, or, where it can be proven, a wildcard of one. */
function ordered(mayBeWildcard: boolean): Reader<string> {
  return (value, place) => {
    const isWildcard = typeof value === "string" && value.startsWith("*.");
    const name = domain(isWildcard ? value.slice(2) : value, place);
    if (name === null || !isWildcard) return name;
    if (mayBeWildcard) return `*.${name}`;
    return place.problem(
      'is a wildcard, which HTTP proves nothing of: write challenge = "dns-01"',
    );
  };
}

/** `storeDir`: what is kept of the authority lies in a folder of its own there. */
export function readAcme(
  t: Table,
  { directory, storeDir, sockets }: {
    readonly directory: string;
    readonly storeDir: string;
    readonly sockets: Sockets;
  },
): AcmeConfig | null {
  const challenge = t.read("challenge", oneOf("http-01", "dns-01"), "http-01");
  const isHttp = challenge === "http-01";
  const names = arrayOf(ordered(!isHttp), DOMAIN_COUNT_MAX, String);
  const domains = t.required("domains", names);
  if (domains?.length === 0) {
    t.place.at("domains").problem("names nothing: write the names of the certificate");
  }
  if (t.read("agree_tos", boolean, false) !== true) {
    t.place.at("agree_tos").problem(
      "is not true: read the authority's terms of service, and write true if you agree",
    );
  }
  const address = isHttp
    ? sockets.listen(HTTP_PORT, "tcp")
    : sockets.listen(DNS_PORT, "udp", "tcp");
  const listen = t.read(
    "listen",
    arrayOf(address, LISTEN_COUNT_MAX),
    isHttp ? ["0.0.0.0:80", "[::]:80"] : [],
  );
  if (!isHttp && listen.length === 0) {
    t.place.at("listen").problem(
      "names nothing: write the address that the zones _acme-challenge are delegated to",
    );
  }
  const kid = t.optional("eab_kid", text(KID_LENGTH_MAX));
  const hmacKeyFile = t.optional("eab_key_file", path(directory));
  if (t.has("eab_kid") !== t.has("eab_key_file")) {
    const [given, missing] = t.has("eab_kid")
      ? ["eab_kid", "eab_key_file"]
      : ["eab_key_file", "eab_kid"];
    t.place.at(given).problem(`goes together with ${missing}: set that as well`);
  }
  const dir = resolvePath(storeDir, "acme");
  const file = resolvePath(dir, "certificate.pem");
  return {
    directory: t.read("directory", url({ plainHttp: false }), LETS_ENCRYPT),
    email: t.optional(
      "email",
      matching(/^[^\s@<>,?&]+@[^\s@<>,?&]+$/, 'an address: write one such as "anna@example.org"'),
    ),
    domains: domains ?? [],
    challenge,
    listen,
    api: t.read("api", boolean, false),
    caFile: t.optional("ca_file", path(directory)),
    external: kid === null || hmacKeyFile === null ? null : { kid, hmacKeyFile },
    dir,
    // One file for both: a certificate never stands beside the key of another.
    files: { certFile: file, keyFile: file },
  };
}
