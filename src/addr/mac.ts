const MAC = /^[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}$/;
/** Of a first byte: the address is of a group of devices. */
const GROUP = 1;

/**
 * The MAC address of one device, in lower case with colons, of six bytes with colons or hyphens
 * between; `null`: it is none.
 */
export function parseMac(text: string): string | null {
  const lower = text.toLowerCase();
  if (!MAC.test(lower) || (parseInt(lower.slice(0, 2), 16) & GROUP) !== 0) return null;
  const mac = lower.replaceAll("-", ":");
  return mac === "00:00:00:00:00:00" ? null : mac;
}

export function formatMac(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(":");
}
