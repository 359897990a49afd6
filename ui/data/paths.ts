/** Paths of the API as the dashboard asks for them. */
export type Params = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The path of an endpoint with its parameters; what is empty is left out. */
export function apiPath(path: string, params: Params = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return `/api/v1/${path}${text === "" ? "" : `?${text}`}`;
}

/** How far back the overview looks, in hours. */
export const SPANS = [1, 24, 168, 720, 8_760] as const;
export type Span = typeof SPANS[number];

/** The span that the address of the overview names. */
export function spanOf(text: string | null): Span {
  return SPANS.find((span) => String(span) === text) ?? 24;
}

export interface StatsQuery {
  readonly hours: number;
  readonly scope?: string;
  readonly client?: string;
  readonly group?: string;
}

/** What is asked of the statistics: counts in steps that a chart of this span shows. */
export function statsParams(asked: StatsQuery): Params {
  const { hours } = asked;
  return { ...asked, step: hours <= 3 ? "1m" : hours <= 48 ? "10m" : hours <= 720 ? "1h" : "1d" };
}
