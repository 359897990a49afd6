import { type HrTime, ValueType } from "@opentelemetry/api";
import { millisToHrTime } from "@opentelemetry/core";
import { emptyResource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { HistogramSample, Labels, MetricFamily } from "../telemetry/mod.ts";

/** Name of who measures, in every signal. */
export const SCOPE_NAME = "svc";

export interface MetricSource {
  readonly version: string;
  /** Counters count from then on. */
  readonly startedAtMs: number;
  readonly nowMs: () => number;
  readonly families: () => readonly MetricFamily[];
}

/** Families of metrics as the SDK collects them: what is counted elsewhere is read, not counted. */
export function metricProducer(source: MetricSource): MetricProducer {
  const startTime = millisToHrTime(source.startedAtMs);
  return {
    collect: () => {
      const endTime = millisToHrTime(source.nowMs());
      const metrics = source.families().map((family) => metricData(family, startTime, endTime));
      const scope = { name: SCOPE_NAME, version: source.version };
      // The SDK puts its own resource in the place of this one.
      const resourceMetrics = { resource: emptyResource(), scopeMetrics: [{ scope, metrics }] };
      return Promise.resolve({ resourceMetrics, errors: [] });
    },
  };
}

function metricData(family: MetricFamily, startTime: HrTime, endTime: HrTime): MetricData {
  const base = {
    descriptor: {
      name: family.name,
      description: family.help,
      unit: unitOf(family.name),
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  const point = <T>(labels: Labels, value: T): DataPoint<T> => ({
    startTime,
    endTime,
    attributes: { ...labels },
    value,
  });
  switch (family.type) {
    case "histogram":
      return {
        ...base,
        dataPointType: DataPointType.HISTOGRAM,
        dataPoints: family.samples.map((sample) =>
          point(sample.labels, histogram(family.bounds, sample))
        ),
      };
    case "gauge":
      return {
        ...base,
        dataPointType: DataPointType.GAUGE,
        dataPoints: family.samples.map(({ labels, value }) => point(labels, value)),
      };
    case "counter":
      return {
        ...base,
        dataPointType: DataPointType.SUM,
        isMonotonic: true,
        dataPoints: family.samples.map(({ labels, value }) => point(labels, value)),
      };
  }
}

function histogram(bounds: readonly number[], { counts, sum }: HistogramSample) {
  return {
    buckets: { boundaries: [...bounds], counts: [...counts] },
    sum,
    count: counts.reduce((total, count) => total + count, 0),
  };
}

/** The unit that a name ends in, as UCUM writes it; 1 for what has none. */
function unitOf(name: string): string {
  const unit = /_(seconds|bytes)(_total)?$/.exec(name)?.[1];
  return unit === "seconds" ? "s" : unit === "bytes" ? "By" : "1";
}
