import type { TLSSocket } from "node:tls";
import type { ChannelLimits } from "./limits.ts";
import { QUEUE_BYTES_MAX } from "./limits.ts";
import { MessageReader, MessageType, type OnMessage, writeMessage } from "./messages.ts";

const NOTHING = new Uint8Array(0);

/** Who a connection is for. */
export interface ConnectionHandler {
  /** Whether a message of this type is taken now. */
  takes(type: number): boolean;
  readonly onMessage: OnMessage;
  /** It has ended, whoever ended it; `reason` is this side's, or what the system says. */
  onEnd(reason: string): void;
}

/** One TLS connection after its handshake: messages in and out, bounded and watched. */
export class Connection {
  readonly #socket: TLSSocket;
  readonly #limits: ChannelLimits;
  readonly #reader: MessageReader;
  #queuedBytes = 0;
  #silentTicks = 0;
  #messageTicks = 0;
  #hasHeard = false;
  #reason = "closed the connection";
  #isOpen = true;

  constructor(socket: TLSSocket, limits: ChannelLimits, handler: ConnectionHandler) {
    this.#socket = socket;
    this.#limits = limits;
    this.#reader = new MessageReader(
      (type) => handler.takes(type),
      (type, payload) => this.#isOpen && handler.onMessage(type, payload) && this.#isOpen,
    );
    socket.setNoDelay(true);
    socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    socket.on("error", (error) => this.end(codeOf(error)));
    socket.once("end", () => this.end("closed the connection"));
    socket.once("close", () => {
      this.#isOpen = false;
      handler.onEnd(this.#reason);
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends a message; `false`: it is dropped, as too much waits or the connection has ended. */
  send(type: MessageType, payload: Uint8Array = NOTHING): boolean {
    if (!this.#isOpen || this.#queuedBytes + payload.length > QUEUE_BYTES_MAX) return false;
    const message = writeMessage(type, payload);
    this.#queuedBytes += message.length;
    this.#socket.write(message, () => {
      this.#queuedBytes -= message.length;
    });
    return true;
  }

  /**
   * Says a last word, as far as that leaves at once, and ends the connection. Who does not read is
   * not waited for.
   */
  endWith(type: MessageType, payload: Uint8Array, reason: string): void {
    if (!this.#isOpen) return;
    this.#reason = reason;
    this.#isOpen = false;
    this.#socket.end(writeMessage(type, payload));
    const timer = setTimeout(() => this.#socket.destroy(), this.#limits.tickMs);
    this.#socket.once("close", () => clearTimeout(timer));
  }

  end(reason: string): void {
    if (this.#isOpen) this.#reason = reason;
    this.#isOpen = false;
    this.#socket.destroy();
  }

  /**
   * Some time has passed: says that this side is there, in the way of who connected (`Ping`) or of
   * who was connected to (`Pong`, where something was heard), and ends what is silent.
   */
  tick(mine: typeof MessageType.Ping | typeof MessageType.Pong): void {
    if (!this.#isOpen) return;
    if (mine === MessageType.Ping || this.#hasHeard) this.send(mine);
    this.#hasHeard = false;
    this.#messageTicks = this.#reader.isInMessage ? this.#messageTicks + 1 : 0;
    if (++this.#silentTicks > this.#limits.silentTicksMax) this.end("has fallen silent");
    else if (this.#messageTicks > this.#limits.messageTicksMax) {
      this.end("does not end a message that it began");
    }
  }

  #read(chunk: Uint8Array): void {
    this.#silentTicks = 0;
    this.#hasHeard = true;
    if (!this.#isOpen || this.#reader.read(chunk)) return;
    // Whoever ended it in between has given the reason, and perhaps a last word that is to leave.
    if (this.#isOpen) this.end("says what is no message of ours");
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return code === "ECONNRESET" ? "closed the connection" : `lost the connection (${code})`;
}
