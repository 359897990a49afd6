import type { Forwarder } from "../../resolver/mod.ts";
import { Bootstrap, type BootstrapOptions } from "./bootstrap.ts";
import type { DnsUpstream } from "../messages.ts";
import type { UpstreamExchange } from "./upstream_exchange.ts";

/** Upstreams with a name are asked behind the others until it is known where they are. */
export function bootstrapOf(
  upstreams: readonly DnsUpstream[],
  forwarder: Forwarder,
  exchange: UpstreamExchange,
  ports: Pick<BootstrapOptions, "after" | "lookup">,
): Bootstrap {
  for (const index of Bootstrap.unresolved(upstreams)) {
    forwarder.upstreams[index].isUnresolved = true;
  }
  return new Bootstrap({
    upstreams,
    ...ports,
    onAddresses: (index, ips) => {
      const upstream = forwarder.upstreams[index];
      upstream.isUnresolved = false;
      exchange.setAddresses(upstream.remote, ips);
    },
    onFailure: (index, reason) => exchange.failWaiting(forwarder.upstreams[index].remote, reason),
  });
}
