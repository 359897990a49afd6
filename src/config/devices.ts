import type { DevicesConfig } from "./config.ts";
import { boolean, path } from "./readers.ts";
import { arrayOf, type Table } from "./table.ts";

/** Nearly every system has it; one that has none has no names in it. */
export const HOSTS_FILE = "/etc/hosts";
/** Each is looked at now and then. */
const FILE_COUNT_MAX = 16;

/** `[devices]`: who is on the network. */
export function readDevices(t: Table, directory: string): DevicesConfig {
  const files = arrayOf(path(directory), FILE_COUNT_MAX, String);
  return {
    hostsFiles: t.read("hosts_files", files, [HOSTS_FILE]),
    leaseFiles: t.read("lease_files", files, []),
    neighbours: t.read("neighbours", boolean, true),
  };
}
