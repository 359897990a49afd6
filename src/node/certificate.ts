import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Clock } from "../clock/mod.ts";
import { coversClientIds, coversName, keyWeakness } from "../config/mod.ts";
import type { TlsFiles } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import type { TlsIdentity } from "../transport/mod.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A certificate that ends sooner than this is a problem: whoever renews it has failed by now. */
export const RENEW_BEFORE_MS = 14 * DAY_MS;

/** Where a certificate is configured, and what it is for. */
export interface CertificatePlace {
  /** The keys of the configuration that name its files. */
  readonly certKey: string;
  readonly keyKey: string;
  /** What the lack of one means, and what is to be done. */
  readonly effect: string;
}

/** Of the encrypted listeners. */
export const DNS_CERTIFICATE: CertificatePlace = {
  certKey: "server.tls.cert",
  keyKey: "server.tls.key",
  effect: "encrypted listeners refuse every connection: mend it and send SIGHUP",
};

/** Of the API. */
export const API_CERTIFICATE: CertificatePlace = {
  certKey: "api.tls_cert",
  keyKey: "api.tls_key",
  effect: "the API is not served: mend it and start svc again",
};

export interface CertificateOptions {
  readonly place: CertificatePlace;
  /** `null`: none is configured. */
  readonly files: TlsFiles | null;
  /** The name that it has to cover; `null`: whichever it likes. */
  readonly serverName: string | null;
}

/** A certificate that goes with its key. */
interface Loaded {
  readonly identity: TlsIdentity;
  readonly certificate: X509Certificate;
  readonly validFromMs: number;
  readonly validToMs: number;
}

/** A certificate of the service: read from its files, and read again when asked to. */
export class ServerCertificate {
  readonly #place: CertificatePlace;
  readonly #files: TlsFiles;
  readonly #serverName: string | null;
  readonly #clock: Clock;
  #loaded: Loaded | null = null;
  /** Why the last reading was of no use. */
  #failure: string | null = null;

  private constructor(
    { place, serverName }: CertificateOptions,
    files: TlsFiles,
    clock: Clock,
  ) {
    this.#place = place;
    this.#files = files;
    this.#serverName = serverName;
    this.#clock = clock;
  }

  /**
   * Reads the certificate; `null` where none is configured. What is wrong with it is logged, and
   * told by `problems`.
   */
  static async open(options: CertificateOptions, clock: Clock): Promise<ServerCertificate | null> {
    const { files, place } = options;
    if (files === null) return null;
    const certificate = new ServerCertificate(options, files, clock);
    try {
      // An expired one is better than none: some clients ask for secrecy only (RFC 8310 §5).
      certificate.#loaded = await certificate.#read();
    } catch (error) {
      certificate.#failure = messageOf(error);
    }
    for (const problem of certificate.problems) {
      log.error("there is a problem with a certificate", { certificate: place.certKey, problem });
    }
    return certificate;
  }

  /** What is shown; `null` as long as there is none that can be used. */
  get identity(): TlsIdentity | null {
    return this.#loaded?.identity ?? null;
  }

  /** When that ends, in milliseconds since 1970. */
  get validToMs(): number | null {
    return this.#loaded?.validToMs ?? null;
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

  /** Reads the files again and has the new certificate shown; a bad one is logged and left. */
  async renewFor(show: (identity: TlsIdentity) => void): Promise<void> {
    const certificate = this.#place.certKey;
    try {
      show(await this.renew());
      log.info("the certificate is shown as it is now", { certificate });
    } catch (error) {
      log.error("the certificate is not renewed: the former one stays", { certificate, error });
    }
  }

  /** What is wrong with the certificate at the moment, for the status. */
  get problems(): string[] {
    const found: string[] = [];
    const loaded = this.#loaded;
    if (this.#failure !== null) {
      const effect = loaded === null
        ? this.#place.effect
        : "the former certificate is still shown: mend it and send SIGHUP";
      found.push(`${this.#failure}; ${effect}`);
    }
    if (loaded === null) return found;
    const outOfTime = this.#outOfTime(loaded);
    const leftMs = loaded.validToMs - this.#clock.nowMs();
    if (outOfTime !== null) {
      found.push(`${outOfTime}: renew it and send SIGHUP`);
    } else if (leftMs < RENEW_BEFORE_MS) {
      const days = Math.floor(leftMs / DAY_MS);
      found.push(
        `${this.#place.certKey}: the certificate expires in ${days} day${
          days === 1 ? "" : "s"
        }, at ` +
          `${instant(loaded.validToMs)}: renew it and send SIGHUP`,
      );
    }
    const name = this.#serverName;
    const { certificate } = loaded;
    if (name !== null && !coversName(certificate, name) && !coversClientIds(certificate, name)) {
      found.push(
        `${this.#place.certKey}: ${this.#files.certFile} covers neither ${name} nor *.${name}: clients ` +
          "refuse it, get one for that name and send SIGHUP",
      );
    }
    return found;
  }

  #outOfTime({ validFromMs, validToMs }: Loaded): string | null {
    const nowMs = this.#clock.nowMs();
    const { certKey } = this.#place;
    const { certFile } = this.#files;
    if (nowMs < validFromMs) {
      return `${certKey}: ${certFile} is not valid before ${instant(validFromMs)}`;
    }
    return nowMs > validToMs ? `${certKey}: ${certFile} expired at ${instant(validToMs)}` : null;
  }

  async #read(): Promise<Loaded> {
    const { certFile, keyFile } = this.#files;
    const { certKey, keyKey } = this.#place;
    const text = new TextDecoder();
    let cert = await readBytes(certKey, certFile);
    let key = await readBytes(keyKey, keyFile);
    if (certFile === keyFile) [cert, key] = [blocksOf(cert, CERTIFICATE), blocksOf(key, KEY)];
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(text.decode(cert)); // The first: the chain is behind it.
    } catch (error) {
      throw unusable(certKey, `${certFile} is no PEM certificate`, error);
    }
    let isPair: boolean;
    let weakness: string | null;
    try {
      const privateKey = createPrivateKey(text.decode(key));
      isPair = certificate.checkPrivateKey(privateKey);
      weakness = keyWeakness(privateKey);
    } catch (error) {
      throw unusable(keyKey, `${keyFile} is no PEM private key`, error);
    }
    if (!isPair) {
      throw new SvcError("invalid", `${keyKey}: ${keyFile} is not the key of ${certFile}`);
    }
    if (weakness !== null) throw new SvcError("invalid", `${keyKey}: ${keyFile}: ${weakness}`);
    return {
      identity: { cert, key },
      certificate,
      validFromMs: certificate.validFromDate.getTime(),
      validToMs: certificate.validToDate.getTime(),
    };
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;
const KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----\n?/g;

/** Those of one kind, of a file that holds a certificate and its key. */
function blocksOf(pem: Uint8Array, kind: RegExp): Uint8Array<ArrayBuffer> {
  const found = new TextDecoder().decode(pem).match(kind) ?? [];
  return new TextEncoder().encode(found.join("\n"));
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

async function readBytes(key: string, file: string): Promise<Uint8Array> {
  try {
    return await Deno.readFile(file);
  } catch (error) {
    const reason = messageOf(error).split("\n", 1)[0];
    throw new SvcError("unavailable", `${key}: ${file} can't be read: ${reason}`);
  }
}

function unusable(key: string, fact: string, cause: unknown): SvcError {
  const reason = messageOf(cause).split("\n", 1)[0];
  return new SvcError("invalid", `${key}: ${fact}: ${reason}`);
}
