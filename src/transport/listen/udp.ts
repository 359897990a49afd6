import { type Native, UdpBatch } from "../../native/mod.ts";

/** Batches taken from one socket before the others, timers and TCP get their turn. */
const BATCHES_PER_TURN = 16;

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
  receive(): void {
    const { batch } = this;
    for (let turn = 0; turn < BATCHES_PER_TURN; turn++) {
      const count = batch.receive();
      for (let i = 0; i < count; i++) {
        // Responses of queries that waited share the room with those of this batch.
        if (batch.queued === batch.capacity) batch.flush();
        this.#handler.onPacket(this, i);
      }
      if (batch.queued > 0) batch.flush();
      if (count < UdpBatch.BATCH) return; // The socket was empty.
    }
  }
}
