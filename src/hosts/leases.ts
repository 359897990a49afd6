import { parseMac } from "../addr/mod.ts";
import { addressOf, type Device, hostnameOf } from "./device.ts";

/** Where Kea's columns are, by the first line of its file. */
const KEA_HEADER = "address,";
/** Kea writes what would end a field so. */
const KEA_ESCAPE = /&#x([0-9a-f]{2})/gi;
/** Of a lease that somebody has. */
const KEA_STATE_ASSIGNED = "0";
const ISC_LEASE = /^[ \t]*lease[ \t]+(\S+)[ \t]*\{([^}]*)\}/gm;

/**
 * The devices of a file of leases, of dnsmasq, Kea or ISC dhcpd: which of them is seen by what is in
 * it. Ends of leases are not looked at: of an address the last one stands, and a clock may be wrong.
 */
export function readLeases(text: string): Device[] {
  const found = text.startsWith(KEA_HEADER)
    ? keaLeases(text)
    : /^[ \t]*lease[ \t]/m.test(text)
    ? iscLeases(text)
    : dnsmasqLeases(text);
  const last = new Map<string, Device>();
  for (const { address, device } of found) {
    if (device === null) last.delete(address);
    else last.set(address, device);
  }
  return [...last.values()];
}

/** What a line says of an address; `null`: nobody has it. */
interface Lease {
  readonly address: string;
  readonly device: Device | null;
}

function leaseOf(
  addressText: string,
  macText: string,
  nameText: string,
  isHeld = true,
): Lease[] {
  const address = addressOf(addressText);
  if (address === null) return [];
  const device = { address, hostname: hostnameOf(nameText), mac: parseMac(macText) };
  return [{ address, device: isHeld ? device : null }];
}

/** Expiry, MAC address (or the number of an IPv6 binding), address, name (or `*`), client ID. */
function dnsmasqLeases(text: string): Lease[] {
  return text.split("\n").flatMap((line) => {
    const [, mac = "", address = "", name = ""] = line.trim().split(/\s+/);
    // The hardware's type stands before an address that is not of Ethernet.
    return leaseOf(address, mac.replace(/^01-/, ""), name === "*" ? "" : name);
  });
}

function keaLeases(text: string): Lease[] {
  const [header, ...lines] = text.split("\n");
  const columns = header.trim().split(",");
  const at = (name: string) => columns.indexOf(name);
  const [address, mac, name, state] = ["address", "hwaddr", "hostname", "state"].map(at);
  return lines.flatMap((line) => {
    const fields = line.trim().split(",").map((field) =>
      field.replace(KEA_ESCAPE, (_, code) => String.fromCharCode(parseInt(code, 16)))
    );
    const isHeld = (fields[state] ?? KEA_STATE_ASSIGNED) === KEA_STATE_ASSIGNED;
    return leaseOf(fields[address] ?? "", fields[mac] ?? "", fields[name] ?? "", isHeld);
  });
}

function iscLeases(text: string): Lease[] {
  return [...text.matchAll(ISC_LEASE)].flatMap(([, address, body]) => {
    const mac = /^[ \t]*hardware[ \t]+ethernet[ \t]+([0-9a-f:]+)\s*;/im.exec(body)?.[1] ?? "";
    const name = /^[ \t]*client-hostname[ \t]+"([^"]*)"\s*;/m.exec(body)?.[1] ?? "";
    const state = /^[ \t]*binding[ \t]+state[ \t]+(\w+)\s*;/m.exec(body)?.[1] ?? "active";
    return leaseOf(address, mac, name, state === "active");
  });
}
