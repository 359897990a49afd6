import { equalBytes, getU16 } from "../bytes/mod.ts";
import type { HostPort } from "../addr/mod.ts";
import { decodeMessage, encodeQuery, HEADER_BYTES, Qtype, Rcode } from "../dns/mod.ts";

const HEALTH_NAME = "health.svc.test";
const LOOPBACK_4 = new Uint8Array([127, 0, 0, 1]);
const LOOPBACK_6 = new Uint8Array([...new Uint8Array(15), 1]);

const isWildcard = ({ ip }: HostPort) => ip.every((byte) => byte === 0);

/**
 * Where this node's own DNS is to be asked, of the addresses that it listens on: on loopback where a
 * wildcard is among them, IPv4 before IPv6; `null`: there is none. The floating address is no way to
 * this node, as the other one may answer there; nor is a port that only the system knows.
 */
export function healthTarget(
  listen: readonly HostPort[],
  floating: Uint8Array | null,
): HostPort | null {
  const usable = listen.filter(({ ip, port }) =>
    port !== 0 && (floating === null || !equalBytes(ip, floating))
  );
  const isV4 = ({ ip }: HostPort) => ip.length === 4;
  const found = usable.find((a) => isV4(a) && isWildcard(a)) ?? usable.find(isV4) ?? usable[0];
  if (found === undefined) return null;
  const loopback = isV4(found) ? LOOPBACK_4 : LOOPBACK_6;
  return isWildcard(found) ? { ip: loopback, port: found.port } : found;
}

export function healthQuery(id: number): Uint8Array<ArrayBuffer> {
  return encodeQuery(HEALTH_NAME, Qtype.A, { id });
}

/** Says whether a packet answers the query as a node does that can answer. */
export function isHealthy(packet: Uint8Array, query: Uint8Array): boolean {
  const response = decodeMessage(packet);
  if (response === null || !response.response || response.rcode !== Rcode.NoError) return false;
  // Of a query there is the header, and the question up to its end.
  const isOurs = response.id === getU16(query, 0) && response.questions.length === 1 &&
    equalBytes(packet.subarray(HEADER_BYTES, query.length), query.subarray(HEADER_BYTES));
  return isOurs && response.answers.length > 0;
}
