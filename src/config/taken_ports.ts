import { formatHostPort, type HostPort } from "../addr/mod.ts";
import { equalBytes } from "../bytes/mod.ts";

/** Where systemd-resolved answers programs of its own machine. */
const STUBS = [new Uint8Array([127, 0, 0, 53]), new Uint8Array([127, 0, 0, 54])];

/** What ends that and leaves the machine with names: this service is asked instead. */
export const STUB_MEND =
  "mkdir -p /etc/systemd/resolved.conf.d && printf '[Resolve]\\nDNS=127.0.0.1\\nDNSStubListener=no\\n' " +
  ">/etc/systemd/resolved.conf.d/svc.conf && " +
  "ln -sf /run/systemd/resolve/resolv.conf /etc/resolv.conf && systemctl restart systemd-resolved";

/** An address of ours that somebody else has. */
export interface TakenPort {
  /** In the list of ours. */
  readonly index: number;
  readonly message: string;
}

const isWildcard = (ip: Uint8Array) => ip.every((byte) => byte === 0);

/** Whether both can't be listened on: a family's wildcard is all of its addresses. */
function isSame(a: HostPort, b: HostPort): boolean {
  const isIp = a.ip.length === b.ip.length &&
    (isWildcard(a.ip) || isWildcard(b.ip) || equalBytes(a.ip, b.ip));
  return isIp && a.port === b.port && a.port !== 0;
}

/** The first of `listen` that systemd-resolved is in the way of, and the mend; or `null`. */
export function stubInTheWay(
  listen: readonly HostPort[],
  taken: readonly HostPort[],
): TakenPort | null {
  const stubs = taken.filter(({ ip }) => STUBS.some((stub) => equalBytes(stub, ip)));
  for (const [index, own] of listen.entries()) {
    const stub = stubs.find((one) => isSame(own, one));
    if (stub === undefined) continue;
    const [place, other] = [formatHostPort(own), formatHostPort(stub)];
    return { index, message: `${place} is taken by systemd-resolved at ${other}: ${STUB_MEND}` };
  }
  return null;
}

/** The first of `listen` that anybody has; or `null`. */
export function anybodyInTheWay(
  listen: readonly HostPort[],
  taken: readonly HostPort[],
): TakenPort | null {
  const stub = stubInTheWay(listen, taken);
  if (stub !== null) return stub;
  for (const [index, own] of listen.entries()) {
    if (!taken.some((one) => isSame(own, one))) continue;
    const place = formatHostPort(own);
    const mend = `stop the program that ss -lnptu 'sport = :${own.port}' shows, or change this`;
    return { index, message: `${place} is taken by another program: ${mend}` };
  }
  return null;
}
