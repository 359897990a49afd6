import { formatHostPort, type HostPort } from "../../addr/mod.ts";
import { log } from "../../log.ts";
import { closeSocket, type Native, openListener, portOf } from "../../native/mod.ts";

/** Tries to find one free port for UDP and TCP, where any will do. */
const PORT_TRIES_MAX = 16;

/** Sockets of one dns isolate, which outlive it: who takes its place gets the same. */
export interface Seat {
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
  readonly dot: readonly number[];
  readonly doh: readonly number[];
}

/** Addresses to listen on, each by every dns isolate. */
export interface SeatAddresses {
  /** Over UDP and TCP. */
  readonly listen: readonly HostPort[];
  readonly dot: readonly HostPort[];
  readonly doh: readonly HostPort[];
}

/** What the dns isolates listen on: addresses, with the ports that the system gave for 0, and sockets. */
export interface DnsSeats extends SeatAddresses {
  /** One for each isolate; its sockets are in the order of the addresses. */
  readonly seats: readonly Seat[];
}

/** What a socket is for. */
export type SocketUse = keyof Seat;

/**
 * Gives a socket that another process opened for an address as it is configured; `null`: there is
 * none, or none any more.
 */
export type TakeSocket = (use: SocketUse, address: HostPort) => number | null;

type OpenSeat = { readonly [kind in keyof Seat]: number[] };

/**
 * Takes the sockets of every dns isolate, and opens those that there are none of; all, or none.
 *
 * @throws {SvcError} `unavailable`, with the address that can't be listened on.
 */
export function openSeats(
  native: Native,
  addresses: SeatAddresses,
  isolates: number,
  take: TakeSocket = () => null,
): DnsSeats {
  const seats: OpenSeat[] = Array.from(
    { length: isolates },
    () => ({ udp: [], tcp: [], dot: [], doh: [] }),
  );
  try {
    return {
      listen: addresses.listen.map((address) => openAddress(native, address, seats, take)),
      dot: addresses.dot.map((address) => openStream(native, "dot", address, seats, take)),
      doh: addresses.doh.map((address) => openStream(native, "doh", address, seats, take)),
      seats,
    };
  } catch (error) {
    closeSeats(native, seats);
    throw error;
  }
}

/** Closes them; nobody may read them any more. */
export function closeSeats(native: Native, seats: readonly Seat[]): void {
  for (const { udp, tcp, dot, doh } of seats) {
    for (const fd of [...udp, ...tcp, ...dot, ...doh]) closeSocket(native, fd);
  }
}

/** Opens TCP sockets of one address for every seat; returns it with its real port. */
function openStream(
  native: Native,
  kind: "dot" | "doh",
  address: HostPort,
  seats: readonly OpenSeat[],
  take: TakeSocket,
): HostPort {
  let bound = address;
  for (const seat of seats) {
    const fd = take(kind, address) ?? openListener(native, "tcp", bound);
    seat[kind].push(fd);
    bound = { ip: address.ip, port: portOf(native, fd) };
  }
  return bound;
}

/** Opens UDP and TCP sockets of one address for every seat; returns it with its real port. */
function openAddress(
  native: Native,
  address: HostPort,
  seats: readonly OpenSeat[],
  take: TakeSocket,
): HostPort {
  for (let i = 1;; i++) {
    const opened: number[] = [];
    const open = (kind: "udp" | "tcp", at: HostPort, seat: number) => {
      const fd = take(kind, address) ??
        openListener(native, kind, at, address.port === 0 && seat === 0);
      opened.push(fd);
      return fd;
    };
    try {
      const udp = open("udp", address, 0);
      const bound = { ip: address.ip, port: portOf(native, udp) };
      const rows = seats.map((_, seat) => ({
        udp: seat === 0 ? udp : open("udp", bound, seat),
        tcp: open("tcp", bound, seat),
      }));
      for (const [seat, row] of rows.entries()) {
        seats[seat].udp.push(row.udp);
        seats[seat].tcp.push(row.tcp);
      }
      return bound;
    } catch (error) {
      for (const fd of opened) closeSocket(native, fd);
      // A port that is free for UDP may be taken for TCP: another one is drawn.
      if (address.port !== 0 || i === PORT_TRIES_MAX) throw error;
      log.info("drawing another port", { address: formatHostPort(address) });
    }
  }
}
