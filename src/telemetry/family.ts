/** Names and values that tell the samples of a family apart. */
export type Labels = Readonly<Record<string, string>>;

/** One number of a family. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** One distribution of a family. */
export interface HistogramSample {
  readonly labels: Labels;
  /** How many there are up to each bound, and last how many are above all; not added up. */
  readonly counts: readonly number[];
  /** In the family's unit. */
  readonly sum: number;
}

interface Named {
  /** Its unit last, and `_total` behind that of a counter. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
}

/** Metrics of one name; each form of telling them is made of these. */
export type MetricFamily =
  | Named & { readonly type: "counter" | "gauge"; readonly samples: readonly Sample[] }
  | Named & {
    readonly type: "histogram";
    /** Upper bounds, rising, in the unit of the name. */
    readonly bounds: readonly number[];
    readonly samples: readonly HistogramSample[];
  };
