import { createPrivateKey, X509Certificate } from "node:crypto";
import { coversClientIds, coversName, keyWeakness } from "../config/mod.ts";
import type { ServerTlsConfig, TlsFiles } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import type { TlsIdentity } from "../transport/mod.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A certificate that ends sooner than this is a problem: whoever renews it has failed by now. */
export const RENEW_BEFORE_MS = 14 * DAY_MS;

interface Clock {
  nowMs(): number;
}

/** A certificate that goes with its key. */
interface Loaded {
  readonly identity: TlsIdentity;
  readonly certificate: X509Certificate;
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** The certificate of the encrypted listeners: read from its files, and read again when asked to. */
export class ServerCertificate {
  readonly #files: TlsFiles;
  readonly #serverName: string | null;
  readonly #clock: Clock;
  #loaded: Loaded | null = null;
  /** Why the last reading was of no use. */
  #failure: string | null = null;

  private constructor(files: TlsFiles, serverName: string | null, clock: Clock) {
    this.#files = files;
    this.#serverName = serverName;
    this.#clock = clock;
  }

  /**
   * Reads the certificate; `null` where none is configured. One that can't be used is a problem,
   * and plain DNS goes on: see `problems`.
   */
  static async open(
    { files, serverName }: Pick<ServerTlsConfig, "files" | "serverName">,
    clock: Clock,
  ): Promise<ServerCertificate | null> {
    if (files === null) return null;
    const certificate = new ServerCertificate(files, serverName, clock);
    try {
      // An expired one is better than none: some clients ask for secrecy only (RFC 8310 §5).
      certificate.#loaded = await certificate.#read();
    } catch (error) {
      certificate.#failure = messageOf(error);
    }
    return certificate;
  }

  /** What listeners show; `null` as long as there is none that can be used. */
  get identity(): TlsIdentity | null {
    return this.#loaded?.identity ?? null;
  }

  /**
   * Reads the files again. The former certificate stays unless the new one can be used now.
   *
   * @throws {SvcError} `invalid` or `unavailable`: what is wrong with the new one.
   */
  async renew(): Promise<TlsIdentity> {
    try {
      const loaded = await this.#read();
      const problem = this.#outOfTime(loaded);
      if (problem !== null && this.#loaded !== null) throw new SvcError("invalid", problem);
      this.#loaded = loaded;
      this.#failure = null;
      return loaded.identity;
    } catch (error) {
      this.#failure = messageOf(error);
      throw error;
    }
  }

  /** What is wrong with the certificate at the moment, for the status. */
  get problems(): string[] {
    const found: string[] = [];
    const loaded = this.#loaded;
    if (this.#failure !== null) {
      const effect = loaded === null
        ? "encrypted listeners refuse every connection"
        : "the former certificate is still shown";
      found.push(`${this.#failure}; ${effect}: mend it and send SIGHUP`);
    }
    if (loaded === null) return found;
    const outOfTime = this.#outOfTime(loaded);
    const leftMs = loaded.validToMs - this.#clock.nowMs();
    if (outOfTime !== null) {
      found.push(`${outOfTime}: renew it and send SIGHUP`);
    } else if (leftMs < RENEW_BEFORE_MS) {
      const days = Math.floor(leftMs / DAY_MS);
      found.push(
        `server.tls.cert: the certificate expires in ${days} day${days === 1 ? "" : "s"}, at ` +
          `${instant(loaded.validToMs)}: renew it and send SIGHUP`,
      );
    }
    const name = this.#serverName;
    const { certificate } = loaded;
    if (name !== null && !coversName(certificate, name) && !coversClientIds(certificate, name)) {
      found.push(
        `server.tls.cert: ${this.#files.certFile} covers neither ${name} nor *.${name}: clients ` +
          "refuse it, get one for that name and send SIGHUP",
      );
    }
    return found;
  }

  #outOfTime({ validFromMs, validToMs }: Loaded): string | null {
    const nowMs = this.#clock.nowMs();
    const { certFile } = this.#files;
    if (nowMs < validFromMs) {
      return `server.tls.cert: ${certFile} is not valid before ${instant(validFromMs)}`;
    }
    return nowMs > validToMs
      ? `server.tls.cert: ${certFile} expired at ${instant(validToMs)}`
      : null;
  }

  async #read(): Promise<Loaded> {
    const { certFile, keyFile } = this.#files;
    const cert = await readBytes("cert", certFile);
    const key = await readBytes("key", keyFile);
    const text = new TextDecoder();
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(text.decode(cert)); // The first: the chain is behind it.
    } catch (error) {
      throw unusable("cert", `${certFile} is no PEM certificate`, error);
    }
    let isPair: boolean;
    let weakness: string | null;
    try {
      const privateKey = createPrivateKey(text.decode(key));
      isPair = certificate.checkPrivateKey(privateKey);
      weakness = keyWeakness(privateKey);
    } catch (error) {
      throw unusable("key", `${keyFile} is no PEM private key`, error);
    }
    if (!isPair) {
      throw new SvcError("invalid", `server.tls.key: ${keyFile} is not the key of ${certFile}`);
    }
    if (weakness !== null) throw new SvcError("invalid", `server.tls.key: ${keyFile}: ${weakness}`);
    return {
      identity: { cert, key },
      certificate,
      validFromMs: certificate.validFromDate.getTime(),
      validToMs: certificate.validToDate.getTime(),
    };
  }
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

async function readBytes(key: string, file: string): Promise<Uint8Array> {
  try {
    return await Deno.readFile(file);
  } catch (error) {
    const reason = messageOf(error).split("\n", 1)[0];
    throw new SvcError("unavailable", `server.tls.${key}: ${file} can't be read: ${reason}`);
  }
}

function unusable(key: string, fact: string, cause: unknown): SvcError {
  const reason = messageOf(cause).split("\n", 1)[0];
  return new SvcError("invalid", `server.tls.${key}: ${fact}: ${reason}`);
}
