import { addressOf, type Device, hostnameOf } from "./device.ts";

/** The devices of a file like `/etc/hosts`: the first name of an address is what it is called. */
export function readHosts(text: string): Device[] {
  return text.split("\n").flatMap((line) => {
    const [first, name = ""] = line.replace(/#.*/s, "").trim().split(/\s+/);
    const [address, hostname] = [addressOf(first), hostnameOf(name)];
    return address === null || hostname === null ? [] : [{ address, hostname, mac: null }];
  });
}
