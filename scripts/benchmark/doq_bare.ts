/**
 * DNS over QUIC as the runtime allows it at its barest: reads each query to its end, and answers it
 * with its own bytes as a response; no limits, no rules, no DNS. `doq_bare.ts PORT CERT_FILE KEY_FILE`
 * says when it listens.
 */
const [port, certFile, keyFile] = Deno.args;

/** Room for a query of the load. */
const ROOM_BYTES = 512;
/** Where the bit of a response is, behind the length. */
const FLAGS_OFFSET = 2 + 2;
const QR_BITS = 0x80;
/** As svc has it. */
const STREAMS_MAX = 16;

async function answer({ readable, writable }: Deno.QuicBidirectionalStream): Promise<void> {
  const reader = readable.getReader({ mode: "byob" });
  const { value } = await reader.read(new Uint8Array(ROOM_BYTES), { min: ROOM_BYTES });
  if (value === undefined) return;
  value[FLAGS_OFFSET] |= QR_BITS;
  const writer = writable.getWriter();
  writer.write(value).catch(() => {}); // Where it fails, so does the end.
  await writer.close();
}

async function serve(conn: Deno.QuicConn): Promise<void> {
  try {
    const streams = conn.incomingBidirectionalStreams.getReader();
    for (let next = await streams.read(); !next.done; next = await streams.read()) {
      answer(next.value).catch(() => {});
    }
  } catch {
    // The client has gone.
  }
}

const endpoint = new Deno.QuicEndpoint({ hostname: "127.0.0.1", port: Number(port) });
const listener = endpoint.listen({
  cert: Deno.readTextFileSync(certFile),
  key: Deno.readTextFileSync(keyFile),
  alpnProtocols: ["doq"],
  maxConcurrentBidirectionalStreams: STREAMS_MAX,
});
console.error("listening");
for (;;) {
  const conn = (await listener.incoming()).accept({ zeroRtt: true });
  conn.closed.catch(() => {});
  void serve(conn);
}
