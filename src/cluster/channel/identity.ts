import { createPrivateKey, X509Certificate } from "node:crypto";
import { type ClusterConfig, isIssuedBy, keyWeakness, memberFault } from "../../config/mod.ts";
import { messageOf, SvcError } from "../../errors.ts";
import { log } from "../../log.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A certificate that ends sooner than this is a problem: nobody renews one of ten years in a hurry. */
const RENEW_BEFORE_MS = 90 * DAY_MS;

/** The files of `[cluster]`. */
export type IdentityFiles = Pick<ClusterConfig, "caFile" | "certFile" | "keyFile">;

/** What a member shows, and whom it believes. All PEM. */
export interface Identity {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly authorities: readonly X509Certificate[];
  readonly validFromMs: number;
  readonly validToMs: number;
  /** Of the authority that made it, which is believed no longer. */
  readonly authorityValidToMs: number;
}

/**
 * Reads the files and holds them against each other and against the member's name.
 *
 * @throws {SvcError} `invalid` or `unavailable`, with the key of the configuration.
 */
export async function readIdentity(files: IdentityFiles, node: string): Promise<Identity> {
  const { caFile, certFile, keyFile } = files;
  const ca = await readFile("ca", caFile);
  const cert = await readFile("cert", certFile);
  const key = await readFile("key", keyFile);
  const authorities = certificatesOf(ca, "ca", caFile);
  const [certificate] = certificatesOf(cert, "cert", certFile);
  let isPair: boolean;
  let weakness: string | null;
  try {
    const privateKey = createPrivateKey(key);
    isPair = certificate.checkPrivateKey(privateKey);
    weakness = keyWeakness(privateKey);
  } catch (error) {
    throw unusable("key", keyFile, `is no PEM private key: ${firstLine(error)}`);
  }
  if (!isPair) throw unusable("key", keyFile, `is not the key of ${certFile}: name one pair`);
  if (weakness !== null) throw unusable("key", keyFile, weakness);
  const fault = memberFault(certificate, authorities, node);
  if (fault !== null) throw unusable("cert", certFile, fault);
  return {
    ca,
    cert,
    key,
    authorities,
    validFromMs: certificate.validFromDate.getTime(),
    validToMs: certificate.validToDate.getTime(),
    authorityValidToMs: Math.max(
      ...authorities.filter((one) => isIssuedBy(certificate, one))
        .map(({ validToDate }) => validToDate.getTime()),
    ),
  };
}

function certificatesOf(text: string, key: string, file: string): X509Certificate[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw unusable(key, file, "holds no PEM certificate");
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    throw unusable(key, file, `holds a certificate that can't be read: ${firstLine(error)}`);
  }
}

async function readFile(key: string, file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    throw new SvcError("unavailable", `cluster.${key}: ${file} can't be read: ${firstLine(error)}`);
  }
}

function unusable(key: string, file: string, fact: string): SvcError {
  return new SvcError("invalid", `cluster.${key}: ${file} ${fact}`);
}

function firstLine(error: unknown): string {
  return messageOf(error).split("\n", 1)[0];
}

/** The identity in force. It is read again when one of its files has changed. */
export class KeptIdentity {
  readonly #files: IdentityFiles;
  readonly #node: string;
  readonly #nowMs: () => number;
  #current: Identity;
  /** Why the files as they are now are of no use. */
  #failure: string | null = null;
  /** The same as of the last look: the files may just be being written. */
  #suspicion: string | null = null;

  private constructor(
    files: IdentityFiles,
    node: string,
    nowMs: () => number,
    current: Identity,
  ) {
    this.#files = files;
    this.#node = node;
    this.#nowMs = nowMs;
    this.#current = current;
  }

  /** @throws {SvcError} As `readIdentity`. */
  static async open(
    files: IdentityFiles,
    node: string,
    nowMs: () => number,
  ): Promise<KeptIdentity> {
    return new KeptIdentity(files, node, nowMs, await readIdentity(files, node));
  }

  get current(): Identity {
    return this.#current;
  }

  /**
   * Reads the files again: three small ones, by content, as a change may keep a file's time. Returns
   * whether something else holds from now on; what can't be used twice in a row is logged and left.
   */
  async renew(): Promise<boolean> {
    try {
      const read = await readIdentity(this.#files, this.#node);
      this.#failure = this.#suspicion = null;
      const { ca, cert, key } = this.#current;
      if (read.ca === ca && read.cert === cert && read.key === key) return false;
      this.#current = read;
      log.info("the certificate of the cluster is shown as it is now", {
        certificate: this.#files.certFile,
      });
      return true;
    } catch (error) {
      const reason = messageOf(error);
      if (reason === this.#suspicion && reason !== this.#failure) {
        this.#failure = reason;
        log.error("the certificate of the cluster is not renewed: the former one stays", { error });
      }
      this.#suspicion = reason;
      return false;
    }
  }

  /** What is wrong with it at the moment. */
  get problems(): string[] {
    const found: string[] = [];
    if (this.#failure !== null) {
      found.push(`${this.#failure}; the cluster's former certificate is still shown`);
    }
    const { validFromMs, validToMs, authorityValidToMs } = this.#current;
    const { caFile, certFile } = this.#files;
    const nowMs = this.#nowMs();
    if (authorityValidToMs - nowMs < RENEW_BEFORE_MS) {
      const end = endOf(authorityValidToMs, nowMs);
      const mend = "make another with svc cluster init, and certificates of it for all members";
      found.push(`cluster.ca: ${caFile} ${end}: ${mend}`);
    }
    const mend = `make another with svc cluster cert ${this.#node} --force`;
    if (nowMs < validFromMs) {
      const from = new Date(validFromMs).toISOString();
      found.push(`cluster.cert: ${certFile} is not valid before ${from}: set this node's clock`);
    } else if (validToMs - nowMs < RENEW_BEFORE_MS) {
      found.push(`cluster.cert: ${certFile} ${endOf(validToMs, nowMs)}: ${mend}`);
    }
    return found;
  }
}

function endOf(validToMs: number, nowMs: number): string {
  const verb = nowMs > validToMs ? "expired" : "expires";
  return `${verb} at ${new Date(validToMs).toISOString()}`;
}
