import { type Native, UdpBatch } from "../../native/mod.ts";

/** Batches taken from one socket before the others, timers and TCP are looked at. */
const BATCHES_AT_ONCE = 16;

/** What is done with a received packet: `batch.queueReply(i, …)`, `saveSender`, or nothing. */
export interface UdpHandler {
  /** Packet `i` of the listener's batch. There is room for one response. */
  onPacket(listener: UdpListener, i: number): void;
}

/** One UDP socket of an isolate. */
export class UdpListener {
  readonly batch: UdpBatch;
  readonly #handler: UdpHandler;

  constructor(native: Native, fd: number, handler: UdpHandler) {
    this.batch = new UdpBatch(native, fd);
    this.#handler = handler;
  }

  /** Takes what is there, up to a bound, and sends the responses of each batch together. */
  receive(packetsMax: number = BATCHES_AT_ONCE * UdpBatch.BATCH): void {
    const { batch } = this;
    for (let left = packetsMax; left > 0;) {
      const most = Math.min(left, UdpBatch.BATCH);
      const count = batch.receive(most);
      for (let i = 0; i < count; i++) {
        // Responses of queries that waited share the room with those of this batch.
        if (batch.queued === batch.capacity) batch.flush();
        this.#handler.onPacket(this, i);
      }
      if (batch.queued > 0) batch.flush();
      if (count < most) return; // The socket was empty.
      left -= count;
    }
  }
}
