import { decodeMessage, encodeQuery, parseName, Rcode } from "../dns/mod.ts";
import type { Responder } from "./flights/mod.ts";
import { Verdict } from "./verdict.ts";
import { type Reply, streamReply } from "./reply.ts";
import type { Resolver } from "./resolver.ts";

/** Look-ups of the service's own that wait at one time. */
export const LOOKUPS_MAX = 64;
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
 * Finds addresses that the service needs itself, of upstreams and of list servers, the way queries
 * of clients go: by records of ours, the cache, the upstreams. The system's resolver is never asked,
 * which may be this service.
 */
export class Lookups {
  readonly #resolver: Resolver;
  readonly #reply: Reply = streamReply();
  #pending = 0;

  constructor(resolver: Resolver) {
    this.#resolver = resolver;
  }

  /** Look-ups that wait. */
  get pending(): number {
    return this.#pending;
  }

  /** Looks up addresses of `qtype`, A or AAAA; `done` is called once, now or later. */
  lookup(hostname: string, qtype: number, done: (found: Found) => void): void {
    const name = parseName(hostname);
    if (name === null) return done(failed(`${hostname} is no name`));
    if (this.#pending >= LOOKUPS_MAX) return done(failed("too many names are looked up"));
    const resolver = this.#resolver;
    const reply = this.#reply;
    const verdict = resolver.decideOwn(encodeQuery(name, qtype), reply);
    if (verdict !== Verdict.Resolve) return done(read(reply, qtype, ""));
    const end = (found: Found) => {
      this.#pending--;
      done(found);
    };
    const responder: Responder = {
      room: () => reply,
      send: ({ failure }) => end(read(reply, qtype, failure?.text ?? "")),
    };
    this.#pending++;
    const waiter = resolver.wait(responder, reply);
    if (waiter === null) end(failed("too many queries wait"));
    else resolver.resolve(waiter);
  }
}

function failed(failure: string): Found {
  return { addresses: [], ttl: 0, failure };
}

/** Reads the addresses out of a response; `reason` says why there is none. */
function read(reply: Reply, qtype: number, reason: string): Found {
  const message = decodeMessage(reply.bytes.subarray(reply.offset, reply.offset + reply.length));
  if (message === null) return failed("the answer can't be read");
  if (message.rcode !== Rcode.NoError && message.rcode !== Rcode.NXDomain) {
    return failed(reason === "" ? `no upstream knows (RCODE ${message.rcode})` : reason);
  }
  const records = message.answers.filter(({ type }) => type === qtype).slice(0, ADDRESSES_MAX);
  return {
    addresses: records.map(({ data }) => data),
    ttl: records.length === 0 ? 0 : Math.min(...message.answers.map(({ ttl }) => ttl)),
    failure: null,
  };
}
