import { dirname } from "node:path/posix";
import { AcmeKeeper, type AcmeStatus, makeStandIn, type Proof, PROOF_PATH } from "../acme/mod.ts";
import { serverAddresses } from "../addr/mod.ts";
import type { Clock } from "../clock/mod.ts";
import type { AcmeConfig } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import { type Lookup, nodeHttpAsk } from "../http/mod.ts";
import { pause } from "../isolate/mod.ts";
import { log } from "../log.ts";
import type { LateListeners } from "./sockets.ts";
import type { Problems } from "./problems.ts";
import { answerFramed, answerHttp, ProofServer } from "./proof_server.ts";
import { answerProof, proofZone } from "./proof_zone.ts";

const OWNER_ONLY = 0o600;
const FOLDER_MODE = 0o700;

export interface AcmePartOptions {
  readonly config: AcmeConfig;
  readonly clock: Clock;
  /** By this service's own upstreams. */
  readonly lookup: Lookup;
  readonly listeners: LateListeners | null;
}

/** What the configuration names files for. */
interface Secrets {
  readonly ca: { readonly caPem?: string };
  readonly external: { readonly kid: string; readonly hmacKey: string } | null;
}

/** The certificate that a node gets by itself: what it is proven with, kept and swapped. */
export class AcmePart {
  readonly #options: AcmePartOptions;
  readonly #secrets: Secrets;
  #server: ProofServer;
  #keeper: AcmeKeeper;
  /** By token. */
  readonly #http = new Map<string, string>();
  readonly #dns: Extract<Proof, { kind: "dns" }>[] = [];
  #running: Promise<void> | null = null;

  private constructor(options: AcmePartOptions, secrets: Secrets) {
    this.#options = options;
    this.#secrets = secrets;
    [this.#server, this.#keeper] = [this.#newServer(), this.#newKeeper(() => Promise.resolve())];
  }

  /**
   * Opens it; until the authority has issued a certificate, or where it was lost, there is one of the
   * service's own to show.
   *
   * @throws {SvcError} `unavailable`, for a file that can't be read or written.
   */
  static async open(options: AcmePartOptions): Promise<AcmePart> {
    const { config: { caFile, external } } = options;
    return new AcmePart(options, {
      ca: caFile === null ? {} : { caPem: await readText("acme.ca_file", caFile) },
      external: external === null ? null : {
        kid: external.kid,
        hmacKey: (await readText("acme.eab_key_file", external.hmacKeyFile)).trim(),
      },
    });
  }

  #newServer(): ProofServer {
    const { config: { listen, challenge, domains }, listeners } = this.#options;
    if (challenge === "dns-01") {
      const zones = domains.map(proofZone);
      const replyTo = (packet: Uint8Array) =>
        answerProof(
          packet,
          zones,
          (zone) => this.#dns.filter(({ name }) => name === zone).map(({ text }) => text),
        );
      const reply = (received: Uint8Array) => answerFramed(received, replyTo);
      return new ProofServer({ listen, copy: null, reply, replyTo });
    }
    return new ProofServer({
      listen: serverAddresses(listen),
      copy: (address) => {
        if (listeners !== null) return listeners.copy(address);
        throw new SvcError("unavailable", "this needs Linux with the GNU C library");
      },
      reply: (received, isWhole) => answerHttp(received, isWhole, (path) => this.proofAt(path)),
      replyTo: null,
    });
  }

  #newKeeper(onRenewed: () => Promise<void>): AcmeKeeper {
    const { config, clock, lookup } = this.#options;
    const { ca, external } = this.#secrets;
    return new AcmeKeeper({ ...config, external }, {
      ask: nodeHttpAsk({ lookup, ...ca }),
      nowMs: () => clock.nowMs(),
      deadline: (ms) => AbortSignal.timeout(ms),
      chance: Math.random,
      sleep: pause,
      show: (proof) => this.#show(proof),
      hide: (proof) => this.#hide(proof),
      files: filesOf(config),
      onRenewed,
    });
  }

  get status(): AcmeStatus {
    return this.#keeper.status;
  }

  get counts(): AcmeKeeper["counts"] {
    return this.#keeper.counts;
  }

  get problems(): string[] {
    return [...this.#keeper.problems, ...this.#server.problems];
  }

  /** What is shown at a path of HTTP; `null`: nothing. */
  proofAt(path: string): string | null {
    return path.startsWith(PROOF_PATH)
      ? this.#http.get(path.slice(PROOF_PATH.length)) ?? null
      : null;
  }

  /** Begins, or begins anew; `onRenewed` hears that the certificate is another one. */
  start(onRenewed: () => Promise<void>): void {
    if (this.#running !== null) return;
    [this.#server, this.#keeper] = [this.#newServer(), this.#newKeeper(onRenewed)];
    this.#server.start();
    this.#running = this.#keeper.run();
  }

  /** Ends it; what is under way is gone on with by who starts next. */
  async stop(): Promise<void> {
    this.#keeper.stop();
    this.#server.stop();
    await this.#running;
    this.#running = null;
  }

  #show(proof: Proof): Promise<void> {
    if (proof.kind === "http") this.#http.set(proof.token, proof.text);
    else this.#dns.push(proof);
    return Promise.resolve();
  }

  #hide(proof: Proof): Promise<void> {
    if (proof.kind === "http") this.#http.delete(proof.token);
    else this.#dns.splice(this.#dns.indexOf(proof), 1);
    return Promise.resolve();
  }
}

/**
 * Sees to it that there is a certificate to show: until the authority has issued one, and where it
 * was lost, the service's own. What is in the way is a problem, and no failed start.
 */
export async function standIn(
  config: AcmeConfig | null,
  nowMs: number,
  problems: Problems,
): Promise<void> {
  if (config === null) return;
  try {
    const files = filesOf(config);
    if (await files.readCertificate() !== null) return;
    await files.writeCertificate(await makeStandIn(config.domains, nowMs));
  } catch (error) {
    log.error("there is no certificate to show yet", { directory: config.dir, error });
    problems.add("acme", `[store] path: ${config.dir} can't be written: ${messageOf(error)}`);
  }
}

function filesOf({ dir, files: { certFile } }: AcmeConfig) {
  const stateFile = `${dir}/state.json`;
  return {
    readState: () => readIfThere(stateFile),
    writeState: (text: string) => writeWhole(stateFile, text),
    readCertificate: () => readIfThere(certFile),
    writeCertificate: (pem: string) => writeWhole(certFile, pem),
  };
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Nobody ever finds half of it, and none but the owner can read it. */
async function writeWhole(path: string, text: string): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  const draft = `${path}.new`;
  {
    using file = await Deno.open(draft, {
      ...{ write: true, create: true, truncate: true, mode: OWNER_ONLY },
    });
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
    await file.sync();
  }
  await Deno.rename(draft, path);
}

async function readText(key: string, path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    throw new SvcError("unavailable", `${key}: ${path} can't be read: ${messageOf(error)}`);
  }
}
