import assert from "node:assert/strict";
import { type HostPort, parseIp } from "../../addr/mod.ts";
import { SvcError } from "../../errors.ts";
import { openNative } from "../../native/mod.ts";
import { closeSeats, type DnsSeats, openSeats } from "./seats.ts";

const native = Deno.build.os === "linux" ? openNative() : null;
const LOOPBACK: HostPort = { ip: parseIp("127.0.0.1")!, port: 0 };

/** Says whether nobody listens on a port any more, over UDP and TCP. */
function isFree({ port }: HostPort): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    assert.ok(error instanceof Deno.errors.AddrInUse, String(error));
    return false;
  }
}

Deno.test({
  name: "openSeats() gives every isolate sockets of each address, and tells the ports",
  permissions: { net: true, ffi: true },
  ignore: native === null,
  fn: () => {
    const addresses = { listen: [LOOPBACK, LOOPBACK], dot: [LOOPBACK], doh: [LOOPBACK] };
    const { seats, listen, dot, doh } = openSeats(native!, addresses, 2);
    for (const { udp, tcp, dot, doh } of seats) {
      assert.deepEqual([udp.length, tcp.length, dot.length, doh.length], [2, 2, 1, 1]);
    }
    const all = [...listen, ...dot, ...doh];
    assert.equal(new Set(all.map(({ port }) => port)).size, 4);
    assert.ok(all.every((address) => !isFree(address)));
    closeSeats(native!, seats);
    assert.ok(all.every(isFree));
  },
});

Deno.test({
  name: "openSeats() names an address that can't be listened on, and leaves no other open",
  permissions: { net: true, ffi: true },
  ignore: native === null,
  fn: () => {
    const probe = openSeats(native!, { listen: [LOOPBACK], dot: [], doh: [] }, 1);
    closeSeats(native!, probe.seats);
    const [free] = probe.listen;
    using other = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const taken = { ip: LOOPBACK.ip, port: other.addr.port };
    const rows: readonly Omit<DnsSeats, "seats">[] = [
      { listen: [free, taken], dot: [], doh: [] },
      { listen: [free], dot: [taken], doh: [] },
      { listen: [free], dot: [], doh: [taken] },
    ];
    for (const addresses of rows) {
      assert.throws(
        () => openSeats(native!, addresses, 2),
        (error) => error instanceof SvcError && error.message.includes(`:${taken.port}`),
      );
      assert.ok(isFree(free));
    }
  },
});
