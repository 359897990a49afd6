import { createPrivateKey, X509Certificate } from "node:crypto";
import { messageOf, SvcError } from "../errors.ts";
import type { HttpAsk } from "../http/mod.ts";
import { log } from "../log.ts";
import { AccountKey, type ExternalAccount, newKeyPem } from "./jws.ts";
import { type ChallengeKind, complete, DeadOrder, type OrderPorts } from "./order.ts";
import { Refusal, Session } from "./session.ts";
import { type AcmeState, newState, type PlacedOrder, readState } from "./state.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Orders in a day, whatever fails: authorities count them too. */
const ORDERS_MAX = 5;
/** Attempts at one order. */
const ORDER_TRIES_MAX = 4;
/** After a failure it is tried again so much later, twice as much after each further one. */
const AGAIN_MS = MINUTE_MS;
const AGAIN_MS_MAX = DAY_MS;
/** An authority that counts too many is left alone for so long at least. */
const LIMITED_MS_MIN = HOUR_MS;
/** An attempt takes no longer. */
const ATTEMPT_MS_MAX = 10 * MINUTE_MS;
/** Nothing is ordered while the clock is off by more: what came of it would seem out of time. */
const CLOCK_MS_MAX = HOUR_MS;
/** The clock may be set at any time: it is looked at this often. */
const LOOK_MS_MAX = 6 * HOUR_MS;
/** Share of a certificate's life after which it is renewed, less up to so much by chance. */
const RENEW_SHARE = 2 / 3;
const RENEW_CHANCE = 0.05;
const AGAIN_CHANCE = 0.25;

export interface AcmeOptions {
  /** URL of the authority's directory. */
  readonly directory: string;
  readonly email: string | null;
  readonly external: ExternalAccount | null;
  /** Of the certificate; the first one is what it is called by. */
  readonly domains: readonly string[];
  readonly challenge: ChallengeKind;
}

export interface AcmePorts extends OrderPorts {
  readonly ask: HttpAsk;
  readonly nowMs: () => number;
  /** Given after so long. */
  readonly deadline: (ms: number) => AbortSignal;
  /** From 0 to below 1. */
  readonly chance: () => number;
  readonly files: {
    /** `null`: there is none yet. */
    readState(): Promise<string | null>;
    /** Resolves once it is durable. */
    writeState(text: string): Promise<void>;
    readCertificate(): Promise<string | null>;
    writeCertificate(pem: string): Promise<void>;
  };
  /** There is another certificate to show. */
  readonly onRenewed: () => Promise<void>;
}

export interface AcmeStatus {
  /** What is shown: one of the authority's, or the service's own until there is one. */
  readonly certificate: "issued" | "stand_in";
  readonly domains: readonly string[];
  readonly directory: string;
  readonly notAfterMs: number | null;
  /** When it is renewed, or tried again. */
  readonly nextAtMs: number;
  readonly isOrdering: boolean;
  readonly failures: number;
  readonly failure: string | null;
}

/** The certificate at hand. */
interface Held {
  readonly isStandIn: boolean;
  readonly validFromMs: number;
  readonly validToMs: number;
  readonly coversAll: boolean;
}

/** Has a certificate, and a new one in time. */
export class AcmeKeeper {
  readonly #options: AcmeOptions;
  readonly #ports: AcmePorts;
  readonly #stopped = new AbortController();
  /** A part of each life that chance takes off it: not all renew at the same time. */
  readonly #early: number;
  #held: Held | null = null;
  #state: AcmeState | null = null;
  #isOrdering = false;
  /** Why nothing can be kept. */
  #fault: string | null = null;
  /** Certificates that came, and attempts that failed, since the start. */
  readonly counts = { issued: 0, failed: 0 };

  constructor(options: AcmeOptions, ports: AcmePorts) {
    this.#options = options;
    this.#ports = ports;
    this.#early = RENEW_CHANCE * ports.chance();
  }

  /** Works until `stop`. Never throws. */
  async run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const waitMs = await this.step();
      await this.#ports.sleep(Math.min(waitMs, LOOK_MS_MAX), signal);
    }
  }

  /** What is under way is left as it is written down. */
  stop(): void {
    this.#stopped.abort(new SvcError("unavailable", "the service stops"));
  }

  get status(): AcmeStatus {
    const { domains, directory } = this.#options;
    return {
      certificate: this.#held === null || this.#held.isStandIn ? "stand_in" : "issued",
      ...{ domains, directory, isOrdering: this.#isOrdering },
      notAfterMs: this.#held?.validToMs ?? null,
      nextAtMs: Math.max(this.#dueAtMs(), this.#ports.nowMs()),
      failures: this.#state?.failures ?? 0,
      failure: this.#fault ?? this.#state?.failure ?? null,
    };
  }

  /** For the status. */
  get problems(): string[] {
    const { certificate, failure, failures, domains, nextAtMs } = this.status;
    const found: string[] = [];
    if (failure !== null) {
      const again = new Date(nextAtMs).toISOString();
      const times = failures > 1 ? ` (${failures} times in a row)` : "";
      found.push(
        `acme: no certificate for ${domains.join(", ")} is had${times}: ${failure}; it is tried ` +
          `again at ${again}`,
      );
    } else if (certificate === "stand_in") {
      found.push(
        "acme: the authority has issued no certificate yet: the service shows one of its own, " +
          "which clients that look refuse",
      );
    }
    return found;
  }

  /** Does what is due; returns the milliseconds until something is. Never throws. */
  async step(): Promise<number> {
    const { nowMs } = this.#ports;
    try {
      await this.#load();
      if (nowMs() >= this.#dueAtMs()) await this.#attempt();
      this.#fault = null;
    } catch (error) {
      if (this.#stopped.signal.aborted) return 0;
      // The files are at fault: nothing is ordered that could not be written down.
      this.#fault = `[store] path: ${messageOf(error)}: see that it can be written`;
      log.error("what ACME keeps can't be read or written", { error });
      return AGAIN_MS;
    }
    return Math.max(0, this.#dueAtMs() - nowMs());
  }

  async #load(): Promise<void> {
    const { files } = this.#ports;
    const { directory } = this.#options;
    this.#held = heldOf(await files.readCertificate(), this.#options.domains);
    if (this.#state !== null) return;
    const text = await files.readState();
    const state = text === null ? null : readState(text);
    if (text !== null && state === null) log.warn("what ACME kept can't be read: begun anew");
    this.#state = state?.directory === directory ? state : newState(directory, newKeyPem());
  }

  #dueAtMs(): number {
    const { failures = 0, failedAtMs = 0, nextAtMs = 0, hasIssued = true } = this.#state ?? {};
    // The clock was set back since: nothing waits for a day that may not come for years.
    if (failures > 0) return this.#ports.nowMs() < failedAtMs ? 0 : nextAtMs;
    const held = this.#held;
    if (held === null || held.isStandIn || !held.coversAll || !hasIssued) return 0;
    const lifeMs = held.validToMs - held.validFromMs;
    return held.validFromMs + lifeMs * (RENEW_SHARE - this.#early);
  }

  async #save(change: Partial<AcmeState>): Promise<void> {
    if (this.#state === null) return;
    const state = { ...this.#state, ...change };
    await this.#ports.files.writeState(JSON.stringify(state));
    this.#state = state;
  }

  /** One attempt, whose failure is written down. @throws {Error} When that can't be. */
  async #attempt(): Promise<void> {
    const { nowMs } = this.#ports;
    this.#isOrdering = true;
    const late = this.#ports.deadline(ATTEMPT_MS_MAX);
    try {
      await this.#save({}); // What can't be written down is not begun.
      const pem = await this.#obtain(AbortSignal.any([this.#stopped.signal, late]));
      await this.#ports.files.writeCertificate(pem);
      this.#held = heldOf(pem, this.#options.domains);
      this.counts.issued++;
      await this.#save({ order: null, hasIssued: true, failures: 0, failure: null });
      log.info("the authority has issued a certificate", {
        domains: this.#options.domains,
        not_after: new Date(this.#held?.validToMs ?? 0).toISOString(),
      });
      await this.#ports.onRenewed();
    } catch (error) {
      if (this.#stopped.signal.aborted) throw error;
      this.counts.failed++;
      const failures = (this.#state?.failures ?? 0) + 1;
      const failedAtMs = nowMs();
      const nextAtMs = failedAtMs + this.#againMs(failures, error);
      const failure = late.aborted ? "it took longer than ten minutes" : messageOf(error);
      log.error("no certificate is had", {
        error: failure,
        failures,
        next_try: new Date(nextAtMs).toISOString(),
      });
      // An order that leads nowhere, whatever the authority says of it, is given up now and then.
      const isDead = error instanceof DeadOrder || failures % ORDER_TRIES_MAX === 0;
      const failed = { failures, failure, failedAtMs, nextAtMs };
      await this.#save({ ...failed, ...(isDead && { order: null }) });
    } finally {
      this.#isOrdering = false;
    }
  }

  #againMs(failures: number, error: unknown): number {
    const backOffMs = Math.min(AGAIN_MS * 2 ** (failures - 1), AGAIN_MS_MAX);
    const { type, retryAfterMs } = error instanceof Refusal
      ? error
      : { type: "", retryAfterMs: error instanceof TooMany ? error.waitMs : null };
    const leastMs = type === "rateLimited" ? LIMITED_MS_MIN : 0;
    return Math.max(backOffMs, retryAfterMs ?? 0, leastMs) *
      (1 + AGAIN_CHANCE * this.#ports.chance());
  }

  async #obtain(signal: AbortSignal): Promise<string> {
    const { directory, email, external, domains, challenge } = this.#options;
    const { ask, nowMs } = this.#ports;
    const state = this.#state!;
    const key = new AccountKey(state.accountKey);
    const session = await Session.open({ ask, directory, key, nowMs, signal });
    const { aheadMs } = session;
    if (aheadMs !== null && Math.abs(aheadMs) > CLOCK_MS_MAX) {
      throw new SvcError(
        "unavailable",
        `the clock of this machine and the authority's differ by ${
          Math.round(Math.abs(aheadMs) / HOUR_MS)
        } hours: see that NTP keeps it`,
      );
    }
    session.kid = state.account;
    if (state.account === null) {
      await this.#save({ account: await session.account(email, external) });
    }
    const options = { session, key, challenge, domains, signal };
    const placed = await this.#order(session);
    try {
      return checked(
        await complete(placed.url, placed.csr, options, this.#ports),
        placed,
        domains,
        nowMs(),
      );
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // It has forgotten the account, or the order: both are made anew, the next time.
      if (error.type === "accountDoesNotExist") await this.#save({ account: null });
      if (["malformed", "orderNotReady"].includes(error.type)) await this.#save({ order: null });
      throw error;
    }
  }

  /** The order that is under way, or a new one, which is written down before it is placed. */
  async #order(session: Session): Promise<PlacedOrder & { readonly url: string }> {
    const { domains } = this.#options;
    const { order, orderedAtMs } = this.#state!;
    if (order !== null && order.url !== null && order.domains.join() === domains.join()) {
      return { ...order, url: order.url };
    }
    const nowMs = this.#ports.nowMs();
    const recent = orderedAtMs.map((ms) => Math.min(ms, nowMs)).filter((ms) => ms > nowMs - DAY_MS);
    if (recent.length >= ORDERS_MAX) throw new TooMany(Math.min(...recent) + DAY_MS - nowMs);
    const { makeRequest } = await import("./certificates.ts");
    const placed = { url: null, domains, ...await makeRequest(domains) };
    await this.#save({ order: placed, orderedAtMs: [...recent, nowMs] });
    log.info("a certificate is ordered", { domains, directory: this.#options.directory });
    const url = await session.order(domains);
    await this.#save({ order: { ...placed, url } });
    return { ...placed, url };
  }
}

/** The day's orders are used up. */
class TooMany extends SvcError {
  constructor(readonly waitMs: number) {
    super("unavailable", `${ORDERS_MAX} orders a day are the most that are placed`);
  }
}

const CERTIFICATES = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
/** A chain is no longer. */
const CHAIN_MAX = 10;

/** The certificate with its key in one text, if it is the one that was ordered. */
function checked(
  chain: string,
  { key }: PlacedOrder,
  domains: readonly string[],
  nowMs: number,
): string {
  const blocks = chain.match(CERTIFICATES)?.slice(0, CHAIN_MAX) ?? [];
  const pem = `${blocks.join("\n")}\n${key}`;
  const held = heldOf(pem, domains);
  if (held === null) throw new DeadOrder("unavailable", "what was issued is no certificate");
  if (!new X509Certificate(blocks[0]).checkPrivateKey(createPrivateKey(key))) {
    throw new DeadOrder("unavailable", "what was issued is for another key");
  }
  if (!held.coversAll) throw new DeadOrder("unavailable", "what was issued lacks a name");
  if (nowMs < held.validFromMs - CLOCK_MS_MAX || nowMs > held.validToMs) {
    throw new DeadOrder(
      "unavailable",
      "what was issued is out of its time by this machine's clock",
    );
  }
  return pem;
}

function heldOf(pem: string | null, domains: readonly string[]): Held | null {
  const block = pem?.match(CERTIFICATES)?.[0];
  if (block === undefined) return null;
  try {
    const certificate = new X509Certificate(block);
    const names =
      certificate.subjectAltName?.toLowerCase().replaceAll("dns:", "DNS:").split(", ") ??
        [];
    return {
      isStandIn: certificate.issuer === certificate.subject,
      validFromMs: certificate.validFromDate.getTime(),
      validToMs: certificate.validToDate.getTime(),
      coversAll: domains.every((name) => names.includes(`DNS:${name}`)),
    };
  } catch {
    return null;
  }
}
