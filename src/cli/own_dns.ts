import type { HostPort } from "../addr/mod.ts";
import type { Config } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import { healthTarget, type Libc } from "../floating/mod.ts";
import { openNative } from "../native/mod.ts";
import { openPackets } from "../native/system.ts";

/**
 * Where the DNS of this machine is to be asked how it is.
 *
 * @throws {SvcError} `invalid`, if it listens nowhere that can be asked.
 */
export function ownDns({ server, vrrp }: Config): HostPort {
  const target = healthTarget(server.listen, vrrp?.address ?? null);
  if (target !== null) return target;
  throw new SvcError(
    "invalid",
    "server.listen: names no address where this node's own DNS can be asked: add 127.0.0.1:53",
  );
}

/** @throws {SvcError} `unavailable`, where there is no such C library. */
export function openLibc(): Libc {
  const [native, packets] = [openNative(), openPackets()];
  if (native !== null && packets !== null) return { native, packets };
  throw new SvcError("unavailable", "this needs Linux with the GNU C library");
}
