import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { parseIp } from "../addr/mod.ts";
import { setU16 } from "../bytes/mod.ts";
import { MessageWriter, parseName, QR_BIT, Qtype } from "../dns/mod.ts";
import { ownLookup } from "./own_lookup.ts";

const net = { permissions: { net: true } } as const;

/** The answer to a query: its question, and a record of 192.0.2.7 or 2001:db8::7. */
function answer(query: Uint8Array): Uint8Array {
  const target = new Uint8Array(512);
  const writer = new MessageWriter();
  const type = query[query.length - 3];
  const name = parseName("lists.example")!;
  writer.start(target, 0, 512, (query[0] << 8) | query[1], QR_BIT);
  writer.question(name, type);
  // A chain: only what was asked for is an address.
  writer.record(0, name, Qtype.CNAME, 1, 60, parseName("cdn.example")!);
  const rdata = parseIp(type === Qtype.A ? "192.0.2.7" : "2001:db8::7")!;
  writer.record(0, parseName("cdn.example")!, type, 1, 60, rdata);
  return target.slice(0, writer.lengthBytes);
}

async function withServer(
  behave: (query: Uint8Array, reply: (response: Uint8Array) => void) => void,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const socket = createSocket("udp4");
  socket.on("message", (query: Uint8Array, from) => {
    behave(query, (response) => socket.send(response, from.port, from.address));
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  try {
    await use(socket.address().port);
  } finally {
    socket.close();
  }
}

Deno.test(
  "ownLookup() asks this service's own listener for both families",
  net,
  () =>
    withServer((query, reply) => {
      const forged = answer(query);
      setU16(forged, 0, ((query[0] << 8) | query[1]) ^ 1);
      for (const packet of [forged, Uint8Array.of(1), answer(query)]) reply(packet);
    }, async (port) => {
      const never = new AbortController().signal;
      for (const listen of ["127.0.0.1", "0.0.0.0"]) {
        const lookup = ownLookup(() => [{ ip: parseIp(listen)!, port }]);
        assert.deepEqual(await lookup("lists.example", never), ["192.0.2.7", "2001:db8::7"]);
      }
    }),
);

Deno.test(
  "ownLookup() gives up when it is told to",
  net,
  () =>
    withServer(() => {}, async (port) => {
      const stop = new AbortController();
      const lookup = ownLookup(() => [{ ip: parseIp("127.0.0.1")!, port }]);
      const found = lookup("lists.example", stop.signal);
      setTimeout(() => stop.abort(), 20);
      assert.deepEqual(await found, []);
      assert.deepEqual(await lookup("lists.example", stop.signal), [], "and asks no more");
    }),
);
