import type { Question, Verdict } from "../../dnssec/mod.ts";
import type { BroughtMessage } from "../flights/mod.ts";
import type { Query } from "../query.ts";

/** What was proven not to be there (RFC 8198). */
export class Gaps {
  learn(_question: Question, _verdict: Verdict, _nowS: number): void {}

  deduce(_query: Query, _nowS: number): BroughtMessage | null {
    return null;
  }

  clear(): void {}
}
