/** What becomes of a name that is asked for elsewhere, for who asks why. */
import { parseIp } from "../addr/mod.ts";
import type { Explanation } from "../api/mod.ts";
import type { Config } from "../config/mod.ts";
import { decodeMessage, encodeQuery, parseName, Qtype, qtypeName, rcodeName } from "../dns/mod.ts";
import { messageOf } from "../errors.ts";
import type { DnsSupervisor } from "../isolate/mod.ts";
import { DNSSEC_NAMES } from "../logqueue/mod.ts";
import { type TraceStep, upstreamsFor } from "../resolver/mod.ts";
import type { DnsUpstreams } from "./dns_upstreams.ts";
import { validates } from "./trust.ts";

type AnswerExplanation = Pick<Explanation, "dnssec" | "trace">;

/** A name that is answered elsewhere, and for whom it would be asked. */
export interface Elsewhere {
  readonly name: string;
  readonly qtype: number;
  /** What the client's group names as its upstreams; empty: those for everybody. */
  readonly groupUpstreams: readonly string[];
}

const NOTHING: AnswerExplanation = { dnssec: null, trace: null };

/** The name in wire format; `null` for an address, which nobody is asked for. */
function questionOf(name: string): Uint8Array | null {
  return parseIp(name) === null ? parseName(name) : null;
}

/** Who is asked for a name, and the outcome that is in the query log then. */
export function askedOf(
  { recursion }: Pick<Config, "recursion">,
  { asked: configured, lostDomains }: DnsUpstreams,
  { name, groupUpstreams }: Omit<Elsewhere, "qtype">,
): Pick<Explanation, "outcome" | "upstreams"> {
  const wire = questionOf(name);
  const asked = wire === null ? null : upstreamsFor(configured, lostDomains, groupUpstreams, wire);
  if (asked === null && recursion.enabled) return { outcome: "recursed", upstreams: null };
  return {
    outcome: "forwarded",
    upstreams: wire === null
      ? null
      : (asked ?? []).map(({ address, name = null }) => ({ address, name })),
  };
}

/** Asks for a name anew, whatever is in a cache: what validation says, and each step if wanted. */
export async function explainAnswer(
  config: Config,
  dns: Pick<DnsSupervisor, "ask">,
  { name, qtype, groupUpstreams }: Elsewhere,
  isTraced: boolean,
): Promise<AnswerExplanation> {
  const wire = questionOf(name);
  const isValidated = validates(config);
  if (wire === null || qtype === Qtype.ANY || !(isValidated || isTraced)) return NOTHING;
  const startedAtMs = performance.now();
  try {
    const query = encodeQuery(wire, qtype, { edns: { dnssecOk: isValidated } });
    const how = { isAnew: true, isTraced, upstreams: groupUpstreams };
    const answer = await dns.ask(query, how, new AbortController().signal);
    const { dnssec, reason, failure, steps, stepsDropped, message } = answer;
    return {
      dnssec: isValidated
        ? { result: DNSSEC_NAMES[dnssec] ?? "indeterminate", reason: reason ?? failure }
        : null,
      trace: !isTraced ? null : {
        ...resultOf(message, failure),
        took_ms: round(performance.now() - startedAtMs),
        steps: steps.map(shown),
        dropped: stepsDropped,
      },
    };
  } catch (error) {
    const reason = messageOf(error);
    return {
      dnssec: isValidated ? { result: "indeterminate", reason } : null,
      trace: !isTraced ? null : { ...resultOf(null, reason), took_ms: 0, steps: [], dropped: 0 },
    };
  }
}

function shown({ atMs, depth, event, question, zone, server, detail }: TraceStep) {
  return {
    at_ms: round(atMs),
    depth,
    event,
    question: question ?? null,
    zone: zone ?? null,
    server: server ?? null,
    detail: detail ?? null,
  };
}

/** To a tenth of a millisecond. */
function round(ms: number): number {
  return Math.round(10 * ms) / 10;
}

/** What the answer was in the end. */
function resultOf(bytes: Uint8Array | null, failure: string | null) {
  const message = bytes === null ? null : decodeMessage(bytes);
  return {
    rcode: message === null ? null : rcodeName(message.rcode),
    records:
      message?.answers.map(({ name, ttl, type, data }) =>
        `${name} ${ttl} ${qtypeName(type)} ${data}`
      ) ?? [],
    failure,
  };
}
