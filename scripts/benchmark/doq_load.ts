/**
 * Asks a server over QUIC as fast as it answers: several connections with several queries each, a
 * stream a query. `doq_load.ts PORT NAME CA_FILE NAMES_FILE SECONDS [RATE]`; writes the count of answers.
 * With a rate: so many queries a second on one connection; writes the microseconds of each.
 */
import { encodeQuery, Qtype, Rcode } from "../../src/dns/mod.ts";

const CONNECTIONS = 8;
/** Queries of one connection on their way. */
const OUTSTANDING = 12;
/** Length field and header: a whole answer has at least these. */
const ANSWER_BYTES_MIN = 2 + 12;
/** More than any answer of the load has. */
const ANSWER_BYTES_MAX = 1_024;
const RCODE_OFFSET = 2 + 3;

const [port, serverName, caFile, namesFile, seconds, rate] = Deno.args;
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
  writer.write(query).catch(() => {}); // Where it fails, so does the end.
  await writer.close();
  const { value: answer } = await readable.getReader({ mode: "byob" })
    .read(new Uint8Array(ANSWER_BYTES_MAX), { min: ANSWER_BYTES_MAX });
  const length = answer?.length ?? 0;
  const rcode = answer === undefined ? Rcode.ServFail : answer[RCODE_OFFSET] & 0x0f;
  if (length < ANSWER_BYTES_MIN || rcode !== Rcode.NoError) {
    throw new Error(`query ${next}: ${length} bytes with RCODE ${rcode} came back`);
  }
  completed++;
}

function connect(): Promise<Deno.QuicConn> {
  return Deno.connectQuic<false>({
    hostname: "127.0.0.1",
    port: Number(port),
    serverName,
    caCerts,
    alpnProtocols: ["doq"],
  });
}

async function askAsFast(): Promise<void> {
  const conns = await Promise.all(Array.from({ length: CONNECTIONS }, connect));
  await Promise.all(conns.flatMap((conn) =>
    Array.from({ length: OUTSTANDING }, async () => {
      while (performance.now() < endsAtMs) await ask(conn);
    })
  ));
  for (const conn of conns) conn.close();
  console.log(completed);
}

async function askPaced(perSecond: number): Promise<void> {
  const conn = await connect();
  const latenciesUs: number[] = [];
  for (let dueMs = performance.now(); performance.now() < endsAtMs; dueMs += 1_000 / perSecond) {
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const askedMs = performance.now();
    await ask(conn);
    latenciesUs.push(Math.round(1_000 * (performance.now() - askedMs)));
  }
  conn.close();
  console.log(latenciesUs.join("\n"));
}

if (rate === undefined) await askAsFast();
else await askPaced(Number(rate));
