/** A TCP connection whose bytes are the test's own: for what no HTTP client would send. */
const encoder = new TextEncoder();

export class RawClient implements Disposable {
  readonly #conn: Deno.TcpConn;
  readonly #openedMs = performance.now();

  private constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
  }

  static async open(port: number, hostname = "127.0.0.1"): Promise<RawClient> {
    return new RawClient(await Deno.connect({ hostname, port }));
  }

  /** Sends all of a text, or of bytes. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? encoder.encode(data) : data;
    for (let sent = 0; sent < bytes.length;) sent += await this.#conn.write(bytes.subarray(sent));
  }

  /** Sends no more. */
  async closeWrite(): Promise<void> {
    await this.#conn.closeWrite();
  }

  /** Reads once; "" at the end. */
  async read(): Promise<string> {
    const buffer = new Uint8Array(65_536);
    try {
      const length = await this.#conn.read(buffer);
      return new TextDecoder().decode(buffer.subarray(0, length ?? 0));
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionReset) return "";
      throw error;
    }
  }

  /** Reads until all of it matches, or the end; what came. */
  async readUntil(pattern: RegExp): Promise<string> {
    let text = "";
    while (!pattern.test(text)) {
      const piece = await this.read();
      if (piece === "") break;
      text += piece;
    }
    return text;
  }

  /** Reads to the end; resolves with what came and how long after the opening it ended. */
  async ended(): Promise<{ text: string; afterMs: number }> {
    const text = await this.readUntil(/(?!)/);
    return { text, afterMs: performance.now() - this.#openedMs };
  }

  [Symbol.dispose](): void {
    try {
      this.#conn.close();
    } catch {
      // It was closed from the other side.
    }
  }
}
