/**
 * The floor under every figure: the same sockets, wait and batches as the program's, and of a query
 * nothing but the bit that makes it a response. `echo.ts PORT`. @module
 */
import { getU16, setU16 } from "../../src/bytes/mod.ts";
import { QR_BIT } from "../../src/dns/mod.ts";
import { EventQueue, openEpoll, openListener, openNative, UdpBatch } from "../../src/native/mod.ts";

/** As in the program: then the event loop gets its turn. */
const BATCHES_PER_TURN = 16;

const native = openNative();
if (native === null) throw new Error("echo: there is no C library to call here");
const listen = { ip: new Uint8Array([127, 0, 0, 1]), port: Number(Deno.args[0]) };
const fd = openListener(native, "udp", listen);
const memory = new SharedArrayBuffer(EventQueue.MEMORY_BYTES);
const queue = new EventQueue(native, openEpoll(native), memory);
if (!queue.add(fd, 0)) throw new Error("echo: the socket can't be waited for");
const batch = new UdpBatch(native, fd);

function echo(): void {
  const { bytes } = batch;
  for (let turn = 0; turn < BATCHES_PER_TURN; turn++) {
    const count = batch.receive();
    for (let i = 0; i < count; i++) {
      const from = batch.packetOffset(i);
      const length = Math.min(batch.packetLength(i), UdpBatch.SEND_BYTES);
      const to = batch.responseOffset();
      for (let k = 0; k < length; k++) bytes[to + k] = bytes[from + k];
      setU16(bytes, to + 2, getU16(bytes, to + 2) | QR_BIT);
      batch.queueReply(i, length);
    }
    if (count > 0) batch.flush();
    if (count < UdpBatch.BATCH) return;
  }
}

for (;;) {
  await queue.wait(-1);
  echo();
}
