import { LOOKUPS_ALL_MAX, QUERIES_MAX } from "./limits.ts";

/** Work done for one client's query, by every question that it has led to. */
export class Budget {
  /** Queries sent. */
  sent = 0;
  /** Addresses of name servers looked up. */
  lookups = 0;

  get hasQueries(): boolean {
    return this.sent < QUERIES_MAX;
  }

  get hasLookups(): boolean {
    return this.lookups < LOOKUPS_ALL_MAX;
  }
}
