/**
 * Ports for what takes no 0, or starts again where it was. They lie below those that the kernel gives to
 * whoever asks for any, and each of the runs side by side (`scripts/test`) has its own: so what one has
 * just freed comes to nobody else.
 */

/** The kernel's own begin at 32,768 (ip_local_port_range). */
const FIRST_PORT = 12_000;
const PORTS_OF_LANE = 10_000;
/** Read while the file is loaded: tests narrow what they may. */
const LANE = Number(Deno.env.get("SVC_TEST_LANE") ?? "0");

/** From anywhere on: those of the file before may still be closing. */
let next = Math.floor(Math.random() * PORTS_OF_LANE);

/** A port that nobody has at the moment at `hostname`, over UDP or TCP. */
export function freePort(hostname = "127.0.0.1"): number {
  for (let i = 0; i < PORTS_OF_LANE; i++) {
    const port = FIRST_PORT + LANE * PORTS_OF_LANE + next;
    next = (next + 1) % PORTS_OF_LANE;
    try {
      Deno.listenDatagram({ transport: "udp", hostname, port }).close();
      Deno.listen({ hostname, port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  throw new Error(`${hostname}: no port is free`);
}
