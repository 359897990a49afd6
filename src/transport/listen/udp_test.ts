import assert from "node:assert/strict";
import { parseIp } from "../../addr/mod.ts";
import {
  closeSocket,
  openListener,
  openNative,
  portOf,
  UdpBatch,
  UdpEphemeral,
} from "../../native/mod.ts";
import { UdpListener } from "./udp.ts";
import { PortableUdpListener } from "./udp_portable.ts";

const native = openNative();
const LOOPBACK = parseIp("127.0.0.1")!;
/** Longest wait for packets that are on their way within this machine. */
const WAIT_MS_MAX = 5_000;

Deno.test({
  name: "UdpListener takes what is there and sends all its answers",
  ignore: native === null,
  permissions: { ffi: true },
  fn: async () => {
    if (native === null) return;
    const fd = openListener(native, "udp", { ip: LOOPBACK, port: 0 });
    const clients = new UdpEphemeral(native);
    const remote = UdpEphemeral.remote({ ip: LOOPBACK, port: portOf(native, fd) });
    const client = clients.open(remote);
    const late = clients.open(remote);
    const sender = new Uint8Array(UdpBatch.SENDER_BYTES);
    let received = 0;
    const listener = new UdpListener(native, fd, {
      onPacket: ({ batch }, i) => {
        received++;
        assert.ok(batch.queued < batch.capacity, "there is room for one response");
        const at = batch.packetOffset(i);
        if (batch.bytes[at] === 0xff) {
          batch.saveSender(i, sender);
          return;
        }
        // Answers of queries that waited come in between.
        if (sender[0] !== 0 && received % 3 === 0) {
          batch.bytes[batch.responseOffset()] = 0xee;
          batch.queueTo(sender, 1);
          if (batch.queued === batch.capacity) batch.flush();
        }
        batch.bytes[batch.responseOffset()] = batch.bytes[at];
        batch.queueReply(i, 1);
      },
    });
    try {
      clients.send(late, Uint8Array.of(0xff), 1);
      for (let i = 0; i < 200; i++) assert.ok(clients.send(client, Uint8Array.of(i), 1));
      const endMs = performance.now() + WAIT_MS_MAX;
      listener.receive(0);
      assert.equal(received, 0);
      while (received < 70 && performance.now() < endMs) {
        const before: number = received;
        listener.receive(7);
        assert.ok(received - before <= 7, "no more than it is told");
      }
      assert.equal(received, 70);
      while (received < 201 && performance.now() < endMs) listener.receive();
      assert.equal(received, 201);
      assert.equal(listener.batch.queued, 0);
      assert.equal(listener.batch.unsent, 0);
      const answers: number[] = [];
      const target = new Uint8Array(4);
      while (answers.length < 200 && performance.now() < endMs) {
        if (clients.receive(client, target) === 1) answers.push(target[0]);
        else await new Promise((resolve) => setTimeout(resolve, 1));
      }
      assert.deepEqual(answers, Array.from({ length: 200 }, (_, i) => i));
      let others = 0;
      while (clients.receive(late, target) === 1) others += target[0] === 0xee ? 1 : 0;
      assert.equal(others, 67);
    } finally {
      for (const socket of [fd, client, late]) closeSocket(native, socket);
    }
  },
});

Deno.test("PortableUdpListener answers datagrams", { permissions: { net: true } }, async () => {
  const listener = new PortableUdpListener({ ip: LOOPBACK, port: 0 }, (packet, client, reply) => {
    assert.equal(client, "127.0.0.1");
    if (packet[0] === 0) return;
    reply(Uint8Array.from(packet, (byte) => byte + 1));
  });
  const running = listener.run();
  const client = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  const to = { transport: "udp", hostname: "127.0.0.1", port: listener.port } as const;
  for (const bytes of [[0, 9], [1, 2], [7]]) await client.send(Uint8Array.from(bytes), to);
  assert.deepEqual((await client.receive())[0], Uint8Array.of(2, 3));
  assert.deepEqual((await client.receive())[0], Uint8Array.of(8));
  listener.close();
  client.close();
  await running;
});
