import { decodeMessage, encodeQuery, parseName, Rcode } from "../dns/mod.ts";
import type { OwnAnswer, OwnQuestions } from "./own_questions.ts";

/** Addresses of one name that are told. */
const ADDRESSES_MAX = 32;

/** What a look-up of an address found. */
export interface Found {
  /** In the order of the answer; none, where the name has none. */
  readonly addresses: readonly string[];
  /** Seconds for which they hold; 0 where nobody said. */
  readonly ttl: number;
  /** Why nothing is known, or `null`. */
  readonly failure: string | null;
}

/**
 * Finds addresses that the service needs itself, of upstreams and of list servers. The system's
 * resolver is never asked, which may be this service.
 */
export class Lookups {
  readonly #questions: OwnQuestions;

  constructor(questions: OwnQuestions) {
    this.#questions = questions;
  }

  /** Looks up addresses of `qtype`, A or AAAA; `done` is called once, now or later. */
  lookup(hostname: string, qtype: number, done: (found: Found) => void): void {
    const name = parseName(hostname);
    if (name === null) return done(failed(`${hostname} is no name`));
    this.#questions.ask(
      encodeQuery(name, qtype),
      { isAnew: false, isTraced: false, upstreams: [] },
      (answer) => done(read(answer, qtype)),
    );
  }
}

function failed(failure: string): Found {
  return { addresses: [], ttl: 0, failure };
}

/** Reads the addresses out of an answer. */
function read({ message: bytes, failure }: OwnAnswer, qtype: number): Found {
  if (bytes === null) return failed(failure ?? "");
  const message = decodeMessage(bytes);
  if (message === null) return failed("the answer can't be read");
  if (message.rcode !== Rcode.NoError && message.rcode !== Rcode.NXDomain) {
    return failed(failure ?? `no upstream knows (RCODE ${message.rcode})`);
  }
  const records = message.answers.filter(({ type }) => type === qtype).slice(0, ADDRESSES_MAX);
  return {
    addresses: records.map(({ data }) => data),
    ttl: records.length === 0 ? 0 : Math.min(...message.answers.map(({ ttl }) => ttl)),
    failure: null,
  };
}
