/** The run of each client's queries beside their number, for the rows that are drawn. */
import { useEffect, useMemo } from "preact/hooks";
import { type ReadonlySignal, signal, useComputed } from "@preact/signals";
import { useLoaded } from "../data/poll.ts";
import { readSeries } from "../data/seen.ts";
import { Sparkline } from "./chart.tsx";

/** Rows stand still for so long before their runs are asked for. */
const STILL_MS = 250;
const RUNS_MS = 60_000;
/** As many as the API tells of at once. */
const CLIENTS_MAX = 100;

type Runs = ReadonlyMap<string, readonly number[]>;

/** Which rows are drawn, and what is known of them. */
export interface ClientRuns {
  readonly known: ReadonlySignal<Runs>;
  /** A row of this client is drawn. Returns what says that it is no more. */
  readonly show: (id: string) => () => void;
}

export function useClientRuns(): ClientRuns {
  const { wanted, show, stop } = useMemo(shownRows, []);
  useEffect(() => stop, []);
  const ids = wanted.value;
  const series = useLoaded(
    (signal) => ids.length === 0 ? Promise.resolve(null) : readSeries(ids, signal),
    [ids],
    RUNS_MS,
  );
  const known = useComputed<Runs>(() =>
    new Map(series.data.value?.items.map(({ client, queries }) => [client, queries]))
  );
  return { known, show };
}

/** The clients whose rows are drawn, told once these stand still. */
function shownRows() {
  const wanted = signal<readonly string[]>([]);
  const shown = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tell = () => {
    const ids = [...shown].sort().slice(0, CLIENTS_MAX);
    if (ids.join() !== wanted.peek().join()) wanted.value = ids;
  };
  const settle = () => {
    clearTimeout(timer);
    timer = setTimeout(tell, STILL_MS);
  };
  const show = (id: string) => {
    shown.add(id);
    settle();
    return () => {
      shown.delete(id);
      settle();
    };
  };
  return { wanted, show, stop: () => clearTimeout(timer) };
}

export function ClientRun({ of: { known, show }, id }: { of: ClientRuns; id: string }) {
  useEffect(() => show(id), [id]);
  return <Sparkline values={known.value.get(id) ?? []} />;
}
