/**
 * Asks one address a DNS query every 20 ms until standard input ends, and prints what was not
 * answered: `gap_child.ts ADDRESS PORT`. Sockets of its own, so that no resolver comes between.
 */
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";

const EVERY_MS = 20;
const LATE_MS = 500;

/** What it prints, as JSON. */
export interface Gaps {
  readonly asked: number;
  readonly lost: number;
  /** Stretches without an answer, longer than one query: when on the wall clock, and how long. */
  readonly gaps: readonly { readonly atMs: number; readonly lengthMs: number }[];
}

if (import.meta.main) {
  const [hostname, port] = Deno.args;
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "0.0.0.0", port: 0 });
  const askedAtMs: number[] = [];
  const answered: boolean[] = [];
  const to = { transport: "udp" as const, hostname, port: Number(port) };
  const now = () => performance.timeOrigin + performance.now();
  const timer = setInterval(() => {
    const id = askedAtMs.length;
    askedAtMs.push(now());
    // No neighbour, no route: that is a lost query as well.
    socket.send(encodeQuery("health.svc.test", Qtype.A, { id }), to).catch(() => {});
  }, EVERY_MS);
  const received = (async () => {
    for (;;) {
      const [packet] = await socket.receive();
      answered[(packet[0] << 8) | packet[1]] = true;
    }
  })().catch(() => {}); // It is closed below.
  for await (const _ of Deno.stdin.readable);
  clearInterval(timer);
  await new Promise((resolve) => setTimeout(resolve, LATE_MS));
  socket.close();
  await received;
  const gaps: { atMs: number; lengthMs: number }[] = [];
  let lastMs = askedAtMs[0];
  for (const [id, atMs] of askedAtMs.entries()) {
    if (answered[id] !== true) continue;
    if (atMs - lastMs > 2 * EVERY_MS) gaps.push({ atMs: lastMs, lengthMs: atMs - lastMs });
    lastMs = atMs;
  }
  const lost = askedAtMs.filter((_, id) => answered[id] !== true).length;
  console.log(JSON.stringify({ asked: askedAtMs.length, lost, gaps } satisfies Gaps));
}
