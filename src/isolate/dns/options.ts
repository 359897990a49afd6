import type { HostPort } from "../../addr/mod.ts";
import type { CheckSupervisor } from "../check/supervisor.ts";
import type { DnsStart } from "../messages.ts";

/** What every isolate is started with, but for what is its own. */
export type DnsOptions =
  & Omit<
    DnsStart,
    | "index"
    | "sockets"
    | "counters"
    | "buckets"
    | "cookieSecret"
    | "logQueue"
    | "snapshot"
    | "handsLogOn"
    | "savedAnswers"
  >
  & {
    /** A queue of the query log for each isolate; none: nothing is logged. */
    readonly logQueues?: readonly SharedArrayBuffer[];
    /** What a former process knew; left out: there was none. */
    readonly former?: FormerDns;
    /** Those who check signatures; `null`: nothing is validated. */
    readonly checks?: CheckSupervisor | null;
  };

/** What the dns isolates of one process leave to those of the next. */
export interface FormerDns {
  /** `null`: a new one is drawn. */
  readonly cookieSecret: Uint8Array | null;
  /** Cached answers, by isolate; each is dropped once it is taken. */
  readonly answers: (SharedArrayBuffer | null)[];
}

/** An address that is listened on, and what is spoken there. */
export interface DnsListener {
  readonly protocol: "udp" | "tcp" | "dot" | "doh" | "doq";
  readonly address: HostPort;
}

/** What a former isolate left to the one of this number, which takes it along. */
export function takeAnswers(
  former: FormerDns | undefined,
  index: number,
): SharedArrayBuffer | null {
  const answers = former?.answers[index] ?? null;
  if (former !== undefined) former.answers[index] = null;
  return answers;
}
