import { Qtype } from "../dns/mod.ts";
import type { DnsSupervisor } from "../isolate/mod.ts";
import type { Lookup } from "../http/mod.ts";

/**
 * Looks hosts up through this service's own upstreams, unfiltered: the system's resolver may be
 * this very service, or one that it replaces. IPv4 comes first: more networks have it.
 */
export function hostLookup(dns: Pick<DnsSupervisor, "lookup">): Lookup {
  return async (hostname, signal) => {
    const asked = [Qtype.A, Qtype.AAAA].map((type) => dns.lookup(hostname, type, signal));
    const told = await Promise.allSettled(asked);
    const addresses = told.flatMap((one) =>
      one.status === "fulfilled" ? [...one.value.addresses] : []
    );
    const failed = told.find((one) => one.status === "rejected");
    // One family without an answer does not matter while the other has addresses.
    if (addresses.length === 0 && failed !== undefined) throw failed.reason;
    return addresses;
  };
}
