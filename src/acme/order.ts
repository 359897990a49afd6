import { SvcError } from "../errors.ts";
import { type AccountKey, sha256 } from "./jws.ts";
import { type Answer, detailOf, type Session, shown } from "./session.ts";

/** Where an authority looks for a proof over HTTP, before the token (RFC 8555 §8.3). */
export const PROOF_PATH = "/.well-known/acme-challenge/";
/** How often the state of something is asked for, and how long it is waited in between. */
const POLLS_MAX = 40;
const POLL_MS = 1_000;
const POLL_MS_MAX = 15_000;
const TOKEN = /^[A-Za-z0-9_-]{16,256}$/;
/** More are in no answer to an order of ours. */
const AUTHORIZATIONS_MAX = 100;
const PEM_TYPE = "application/pem-certificate-chain";

/** What an authority is shown while it looks whether a name is ours. */
export type Proof =
  | { readonly kind: "http"; readonly token: string; readonly text: string }
  /** A TXT record. */
  | { readonly kind: "dns"; readonly name: string; readonly text: string };

export type ChallengeKind = "http-01" | "dns-01";

export interface OrderPorts {
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Resolves once whoever asks is shown it. */
  readonly show: (proof: Proof) => Promise<void>;
  readonly hide: (proof: Proof) => Promise<void>;
}

export interface OrderOptions {
  readonly session: Session;
  readonly key: AccountKey;
  readonly challenge: ChallengeKind;
  readonly domains: readonly string[];
  readonly signal: AbortSignal;
}

/** An order that leads nowhere any more: the next one is a new one. */
export class DeadOrder extends SvcError {}

/**
 * Brings an order from whatever state it is in to its end; returns the certificate with its chain.
 *
 * @throws {DeadOrder} When it has failed.
 * @throws {SvcError} When it may be gone on with later.
 */
export async function complete(
  url: string,
  csr: string,
  options: OrderOptions,
  ports: OrderPorts,
): Promise<string> {
  const { session } = options;
  let { json } = await session.post(url, null);
  if (json.status === "pending") {
    const authorizations = arrayOf(json.authorizations).slice(0, AUTHORIZATIONS_MAX);
    for (const one of authorizations) {
      await authorize(session.urlOf(one, "an authorization"), options, ports);
    }
    json = await settled(url, "pending", options, ports);
  }
  if (json.status === "ready") {
    json = (await session.post(session.urlOf(json.finalize, "the order's end"), { csr })).json;
    if (json.status !== "valid") json = await settled(url, "processing", options, ports, "ready");
  } else if (json.status === "processing") {
    json = await settled(url, "processing", options, ports);
  }
  if (json.status !== "valid") {
    const reason = json.error === undefined ? `it is ${shown(json.status)}` : detailOf(json.error);
    throw new DeadOrder("unavailable", `the order has failed: ${reason}`);
  }
  const place = session.urlOf(json.certificate, "the certificate");
  return (await session.post(place, null, PEM_TYPE)).text;
}

/** Proves one name, unless it is known to be ours. */
async function authorize(url: string, options: OrderOptions, ports: OrderPorts): Promise<void> {
  const { session, key, challenge: wanted, domains } = options;
  const { json } = await session.post(url, null);
  if (json.status === "valid") return;
  const name = Object(json.identifier).value;
  if (!domains.some((domain) => domain.replace(/^\*\./, "") === name)) {
    throw new DeadOrder("unavailable", `it asks about ${shown(name)}, which was not ordered`);
  }
  const offered = arrayOf(json.challenges).map((one) => Object(one));
  const challenge = offered.find(({ type }) => type === wanted);
  if (challenge === undefined) {
    const types = offered.map(({ type }) => shown(type)).join(", ");
    throw new DeadOrder(
      "invalid",
      `acme.challenge: the authority takes no ${wanted} for ${name}, but ${types}: write one of these`,
    );
  }
  if (typeof challenge.token !== "string" || !TOKEN.test(challenge.token)) {
    throw new DeadOrder("unavailable", "the authority's challenge has no token");
  }
  const text = key.keyAuthorization(challenge.token);
  const proof: Proof = wanted === "http-01"
    ? { kind: "http", token: challenge.token, text }
    : { kind: "dns", name: `_acme-challenge.${name}`, text: sha256(text) };
  await ports.show(proof);
  try {
    if (challenge.status === "pending") {
      await session.post(session.urlOf(challenge.url, "a challenge"), {});
    }
    const after = await settled(url, "pending", options, ports);
    if (after.status === "valid") return;
    const tried = arrayOf(after.challenges).map((one) => Object(one))
      .find(({ type }) => type === wanted);
    const reason = detailOf(tried?.error);
    throw new DeadOrder("unavailable", `${name} is not proven by ${wanted}: ${reason}`);
  } finally {
    await ports.hide(proof);
  }
}

/** What something has become that was in one of the states `from`, asked for at the pace it says. */
async function settled(
  url: string,
  state: string,
  { session, signal }: OrderOptions,
  { sleep }: OrderPorts,
  other = state,
): Promise<Answer["json"]> {
  for (let poll = 1; poll <= POLLS_MAX; poll++) {
    const { json, retryAfterMs } = await session.post(url, null);
    if (json.status !== state && json.status !== other) return json;
    await sleep(Math.min(retryAfterMs ?? poll * POLL_MS, POLL_MS_MAX), signal);
    signal.throwIfAborted();
  }
  throw new SvcError("unavailable", `the authority leaves it ${shown(state)} for too long`);
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
