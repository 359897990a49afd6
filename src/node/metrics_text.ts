import type { MetricValueWithName, PrometheusContentType, Registry } from "prom-client";
import type { HistogramSample, MetricFamily } from "../telemetry/mod.ts";

/** Families in the text exposition format (Prometheus, version 0.0.4). */
export async function metricsText(families: readonly MetricFamily[]): Promise<string> {
  const registry = new (await registryClass())();
  for (const family of families) registry.registerMetric(metricOf(family));
  return await registry.metrics();
}

type RegistryClass = new () => Registry<PrometheusContentType>;

/**
 * The registry alone, at the first scrape: all of the library is some twenty MiB that a node does
 * without, as its own counters are read and not counted again.
 */
async function registryClass(): Promise<RegistryClass> {
  const { default: found } = await import("prom-client/lib/registry.js");
  return found as RegistryClass;
}

type Metric = Parameters<Registry["registerMetric"]>[0];

/** A metric of the library that holds what was read already. */
function metricOf(family: MetricFamily): Metric {
  const { name, help, type } = family;
  const values = family.type === "histogram"
    ? family.samples.flatMap((sample) => bucketsOf(name, family.bounds, sample))
    : family.samples.map(({ labels, value }) => ({ labels: { ...labels }, value }));
  const told = { name, help, type, values, aggregator: "sum" };
  return { name, get: () => Promise.resolve(told) } as unknown as Metric;
}

/** A distribution as the format has it: each bucket counts all that is up to its bound. */
function bucketsOf(
  name: string,
  bounds: readonly number[],
  { labels, counts, sum }: HistogramSample,
): MetricValueWithName<string>[] {
  let upTo = 0;
  const buckets = counts.map((count, i) => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le: i < bounds.length ? String(bounds[i]) : "+Inf" },
    value: upTo += count,
  }));
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { ...labels }, value: sum },
    { metricName: `${name}_count`, labels: { ...labels }, value: upTo },
  ];
}
