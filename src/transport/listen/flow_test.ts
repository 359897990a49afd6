// Goal: what a client sends to a listener that does not read waits with the system and with the
// client, decrypted or not. Method: a flood over each, against a service that is busy for ever.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { parseIp } from "../../addr/mod.ts";
import { Client, DOMAIN, EchoHandler, identityOf, until } from "../fakes.ts";
import { DotListener } from "./dot.ts";
import { TcpListener } from "./tcp.ts";

const net = { permissions: { net: true } } as const;
const LIMITS = {
  connectionsMax: 20,
  connectionsPerClientMax: 10,
  queriesMax: 2,
  idleMs: 60_000,
  unreadBytesMax: 1024 * 1024,
  handshakeMs: 10_000,
  handshakesMax: 10,
};
const IDENTITY = await identityOf(DOMAIN);
const FLOOD_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** Sends until nothing has left for a while, or all has; returns how much that was. */
async function flood(socket: Socket): Promise<number> {
  let given = 0;
  const send = () => {
    while (given < FLOOD_BYTES && socket.write(new Uint8Array(CHUNK_BYTES).fill(119))) {
      given += CHUNK_BYTES;
    }
  };
  socket.on("drain", () => {
    given += CHUNK_BYTES; // The one that did not fit.
    send();
  });
  send();
  for (let before = -1; before < given;) {
    before = given;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return given;
}

for (
  const [name, make, open] of [
    [
      "TcpListener",
      (handler: EchoHandler) => new TcpListener(handler, LIMITS),
      (port: number) => Client.to(port),
    ],
    [
      "DotListener",
      (handler: EchoHandler) => new DotListener(IDENTITY, handler, LIMITS),
      (port: number) => Client.toTls(port),
    ],
  ] as const
) {
  Deno.test(`${name} leaves what it does not read with the system`, net, async () => {
    const handler = new EchoHandler();
    const listener = make(handler);
    await listener.listenAt({ ip: parseIp("127.0.0.1")!, port: 0 });
    const client = await open(listener.port);
    client.send("w1", "w2"); // As many as may wait.
    await until("both wait", () => handler.waiting.length === 2);
    const sent = await flood(client.socket);
    assert.ok(sent < FLOOD_BYTES / 2, `${sent} bytes were taken`);
    client.socket.destroy();
    await listener.close();
    await until("closed", () => listener.connections === 0 && client.closed);
  });
}
