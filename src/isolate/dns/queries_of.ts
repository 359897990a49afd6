import { Counter, CounterBlock } from "../../telemetry/mod.ts";

/** Queries that an isolate has read, over all transports. */
export function queriesOf(counters: SharedArrayBuffer): number {
  const { values } = new CounterBlock(counters);
  const { QueriesUdp, QueriesTcp, QueriesDot, QueriesDoh, QueriesDoq, QueriesOdoh } = Counter;
  return [QueriesUdp, QueriesTcp, QueriesDot, QueriesDoh, QueriesDoq, QueriesOdoh]
    .reduce<number>((sum, counter) => sum + values[counter], 0);
}
