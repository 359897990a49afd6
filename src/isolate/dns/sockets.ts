/** Sockets of the main isolate, as a listener takes them. */
import { SvcError } from "../../errors.ts";
import { dupSocket, type Native } from "../../native/mod.ts";
import type { DnsSockets } from "../messages.ts";

/** The main isolate's sockets, and what duplicates them. */
export interface OpenedSockets {
  readonly native: Native;
  readonly sockets: DnsSockets;
}

/**
 * A number of a socket that a listener may close; the main isolate's own one stays.
 *
 * @throws {SvcError} `unavailable`.
 */
export function ownCopy(native: Native, fd: number): number {
  const copy = dupSocket(native, fd);
  if (copy < 0) throw new SvcError("unavailable", "a listener: no more file descriptors");
  return copy;
}
