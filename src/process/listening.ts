import type { HostPort } from "../addr/mod.ts";
import type { Process } from "../native/system.ts";

/** Tables of the kernel, and the state of a socket there that listens (tcp_states.h). */
const TABLES = [["udp", "07"], ["udp6", "07"], ["tcp", "0A"], ["tcp6", "0A"]] as const;
/** Longest table that is read: some hundred thousand sockets. */
const TABLE_BYTES_MAX = 32 * 1024 * 1024;
const READ_BYTES = 64 * 1024;
const O_RDONLY_CLOEXEC = 0o2000000;

/** A socket of this machine that takes packets or connections from anybody. */
export interface ListeningSocket extends HostPort {
  readonly transport: "udp" | "tcp";
}

/** Those of this network namespace; a table that can't be read has none. */
export function listeningSockets(process: Process): ListeningSocket[] {
  return TABLES.flatMap(([table, state]) =>
    parseSocketTable(readTable(process, `/proc/net/${table}`), state).map((address) => ({
      ...address,
      transport: table.startsWith("udp") ? "udp" as const : "tcp" as const,
    }))
  );
}

/** The local addresses in a table, of the sockets in a state. */
export function parseSocketTable(table: string, state: string): HostPort[] {
  const row = /^ *\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /gm;
  return Array.from(table.matchAll(row), ([, ip, port, has]) => ({ ip, port, has }))
    .filter(({ has }) => has === state)
    // Words in the order of the machine's bytes, which is little-endian on all that this runs on.
    .map(({ ip, port }) => ({
      ip: Uint8Array.fromHex(ip.replace(/(..)(..)(..)(..)/g, "$4$3$2$1")),
      port: parseInt(port, 16),
    }));
}

function readTable({ symbols }: Process, path: string): string {
  const fd = symbols.open(new TextEncoder().encode(`${path}\0`), O_RDONLY_CLOEXEC);
  if (fd < 0) return "";
  const decoder = new TextDecoder();
  const piece = new Uint8Array(READ_BYTES);
  let text = "";
  while (text.length < TABLE_BYTES_MAX) {
    const count = Number(symbols.read(fd, piece, BigInt(piece.length)));
    if (count <= 0) break;
    text += decoder.decode(piece.subarray(0, count), { stream: true });
  }
  symbols.close(fd);
  return text;
}
