import { EmbeddingPrefix } from "../../addr/mod.ts";
import { Dns64Names, Pipeline, Subnets } from "../../resolver/mod.ts";
import { Snapshot } from "../../snapshot/mod.ts";
import type { DnsStart } from "../messages.ts";

type Parts = ConstructorParameters<typeof Pipeline>[0];

/** The pipeline of an isolate that starts so. */
export function pipelineOf(
  { seed, snapshot, prefetch, failClosed, requireClientId, dns64, upstreams }: DnsStart,
  parts: Pick<Parts, "cache" | "counters" | "limits" | "onLeakLookup" | "refresh">,
): Pipeline {
  return new Pipeline({
    ...parts,
    ...{ seed, prefetch, failClosed, requireClientId },
    snapshot: new Snapshot(snapshot, Date.now()),
    dns64: dns64 === null ? null : new Dns64Names(new EmbeddingPrefix(dns64.prefix), seed),
    subnets: upstreams.some((one) => one.clientSubnet === "client") ? new Subnets() : null,
  });
}
