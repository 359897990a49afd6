import { formatIp, type HostPort } from "../addr/mod.ts";
import type { VrrpConfig } from "./config.ts";
import { quote } from "./problem.ts";
import { boolean, integer, type IpBytes, ipv4, matching, text } from "./readers.ts";
import type { Place, Reader, Table } from "./table.ts";

/** The largest advertisement interval: 4095 centiseconds (RFC 5798 §5.2.7). */
const INTERVAL_MS_MAX = 40_950;
const INTERVAL_MS_MIN = 100;
/** Announcements count in centiseconds. */
const INTERVAL_STEP_MS = 10;
/** 255 is the address owner's and 0 says that a node stops (RFC 5798 §5.2.4). */
const PRIORITY_MAX = 254;
const ROUTER_ID_MAX = 255;

/** An IPv4 address that a node can have: no loopback, no group, none of "this network". */
const nodeAddress: Reader<IpBytes> = (value, place) => {
  const address = ipv4(value, place);
  if (address === null) return null;
  if (address[0] > 0 && address[0] < 224 && address[0] !== 127) return address;
  return place.problem(`is ${quote(formatIp(address))}, no address that a node of a network has`);
};

/** Reads `[vrrp]`. */
export function readVrrp(t: Table): VrrpConfig | null {
  const device = t.required(
    "interface",
    // Linux: IFNAMSIZ with its ending NUL, and no slash or space.
    matching(/^[^\s/:]{1,15}$/, 'a network interface: write one such as "eth0"'),
  );
  const floating = t.required("address", floatingAddress);
  const peer = t.required("peer", nodeAddress);
  const routerId = t.required("router_id", integer(1, ROUTER_ID_MAX));
  const intervalMs = t.read("interval_ms", integer(INTERVAL_MS_MIN, INTERVAL_MS_MAX), 1_000);
  if (intervalMs % INTERVAL_STEP_MS !== 0) {
    t.place.at("interval_ms").problem(`is ${intervalMs}, not a multiple of ${INTERVAL_STEP_MS}`);
  }
  const rest = {
    priority: t.read("priority", integer(1, PRIORITY_MAX), 100),
    preempt: t.read("preempt", boolean, true),
    intervalMs,
    unicast: t.read("unicast", boolean, false),
  };
  if (floating !== null && peer !== null && formatIp(floating.address) === formatIp(peer)) {
    t.place.at("peer").problem("is the floating address: write the other node's own address");
  }
  if (device === null || floating === null || peer === null || routerId === null) return null;
  return { interface: device, ...floating, peer, routerId, ...rest };
}

/** `192.0.2.53`, or `192.0.2.53/24` where the address brings its network to the interface. */
const floatingAddress: Reader<{
  address: Uint8Array<ArrayBuffer>;
  prefixLengthBits: number;
}> = (value, place) => {
  const checked = text(64)(value, place);
  if (checked === null) return null;
  const match = /^([^/]+)(?:\/(\d{1,2}))?$/.exec(checked);
  const prefixLengthBits = Number(match?.[2] ?? 32);
  if (match === null || prefixLengthBits > 32 || prefixLengthBits === 0) {
    return place.problem(`is ${quote(checked)}, not an IPv4 address with or without a length`);
  }
  const address = nodeAddress(match[1], place);
  if (address === null) return null;
  const hostBits = 0xffff_ffff >>> prefixLengthBits;
  const host = getHost(address, hostBits);
  // Networks of two addresses, and of one, have no others than their nodes'.
  if (prefixLengthBits < 31 && (host === 0 || host === hostBits)) {
    return place.problem(`is ${quote(checked)}, the network itself or all of it: name a node's`);
  }
  return { address, prefixLengthBits };
};

/** The bits of an address that tell a node of its network. */
function getHost(address: Uint8Array, hostBits: number): number {
  return (new DataView(address.buffer, address.byteOffset).getUint32(0) & hostBits) >>> 0;
}

/**
 * Holds `[vrrp]` against the listeners: DNS has to listen on the address wherever it is, and to be
 * within reach for the health check while it is elsewhere.
 */
export function checkListeners(
  { address }: VrrpConfig,
  listen: readonly HostPort[],
  vrrp: Place,
  server: Place,
): void {
  const isFloating = ({ ip }: HostPort) => formatIp(ip) === formatIp(address);
  const isEvery = ({ ip }: HostPort) => ip.length === 4 && ip.every((byte) => byte === 0);
  if (!listen.some((at) => isEvery(at) || isFloating(at))) {
    vrrp.at("address").problem(
      `is none that server.listen answers on: add "0.0.0.0:53" or "${formatIp(address)}:53" there`,
      "check",
    );
  }
  if (!listen.some((at) => at.port !== 0 && !isFloating(at))) {
    server.at("listen").problem(
      'leaves svc vrrp no address to check this node by: add "127.0.0.1:53"',
      "check",
    );
  }
}
