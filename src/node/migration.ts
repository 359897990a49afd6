import type { MigrationPort } from "../api/mod.ts";
import { SvcError } from "../errors.ts";
import type { HttpAsk } from "../http/mod.ts";
import { READ_MS_MAX, readSource } from "../migrate/mod.ts";

/** For a sign-out at a source, which nobody waits for longer. */
const FAREWELL_MS_MAX = 2_000;

/** Reads other products through this service's own upstreams: one at a time, for it takes memory. */
export function migrationPort(ask: HttpAsk): MigrationPort {
  let isBusy = false;
  return {
    timeZone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    read: async (request) => {
      if (isBusy) {
        throw new SvcError("unavailable", "migrate: another one is under way: wait for its end");
      }
      isBusy = true;
      try {
        const signal = AbortSignal.timeout(READ_MS_MAX);
        const farewell = () => AbortSignal.timeout(FAREWELL_MS_MAX);
        return await readSource({ ask, signal, farewell }, request);
      } finally {
        isBusy = false;
      }
    },
  };
}
