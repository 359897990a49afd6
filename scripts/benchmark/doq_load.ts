/**
 * Asks a server over QUIC as fast as it answers: several connections with several queries each, a
 * stream a query. `doq_load.ts PORT NAME CA_FILE NAMES_FILE SECONDS`; writes the count of answers.
 */
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";

const CONNECTIONS = 8;
/** Queries of one connection on their way. */
const OUTSTANDING = 16;
/** Length field and header: a whole answer has at least these. */
const ANSWER_BYTES_MIN = 2 + 12;
const RCODE_OFFSET = 2 + 3;

const [port, serverName, caFile, namesFile, seconds] = Deno.args;
const caCerts = [Deno.readTextFileSync(caFile)];
const queries = Deno.readTextFileSync(namesFile).trim().split("\n").map((line) => {
  const message = encodeQuery(line.split(" ")[0], Qtype.A, { id: 0 });
  return Uint8Array.of(message.length >> 8, message.length & 0xff, ...message);
});
const endsAtMs = performance.now() + 1_000 * Number(seconds);
let next = 0;
let completed = 0;

async function ask(conn: Deno.QuicConn): Promise<void> {
  const query = queries[next++ % queries.length];
  const { readable, writable } = await conn.createBidirectionalStream({ waitUntilAvailable: true });
  const writer = writable.getWriter();
  await writer.write(query);
  await writer.close();
  let length = 0;
  let rcode: number = Rcode.ServFail;
  for await (const chunk of readable) {
    if (length <= RCODE_OFFSET && length + chunk.length > RCODE_OFFSET) {
      rcode = chunk[RCODE_OFFSET - length] & 0x0f;
    }
    length += chunk.length;
  }
  if (length < ANSWER_BYTES_MIN || rcode !== Rcode.NoError) {
    throw new Error(`query ${next}: ${length} bytes with RCODE ${rcode} came back`);
  }
  completed++;
}

const conns = await Promise.all(
  Array.from({ length: CONNECTIONS }, () =>
    Deno.connectQuic<false>({
      hostname: "127.0.0.1",
      port: Number(port),
      serverName,
      caCerts,
      alpnProtocols: ["doq"],
    })),
);
await Promise.all(conns.flatMap((conn) =>
  Array.from({ length: OUTSTANDING }, async () => {
    while (performance.now() < endsAtMs) await ask(conn);
  })
));
for (const conn of conns) conn.close();
console.log(completed);
