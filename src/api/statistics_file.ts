import type { Streamed } from "./endpoint.ts";
import { CSV, csvLine, JSON_FILE } from "./log_streams.ts";
import type { LogsPort } from "./ports.ts";
import type { Statistics, StatisticsExport } from "./schemas/statistics.ts";

type Row = Readonly<Record<string, string | number | null | undefined>>;

/**
 * Statistics as a file.
 *
 * @throws {SvcError} `unavailable`.
 */
export async function exportStatistics(
  logs: Pick<LogsPort, "statistics">,
  { format, table, ...query }: StatisticsExport,
): Promise<Streamed> {
  const statistics = await logs.statistics(query);
  const isCsv = format === "csv";
  const text = isCsv ? csvOf(rowsOf(statistics, table)) : `${JSON.stringify(statistics)}\n`;
  return {
    type: isCsv ? CSV : JSON_FILE,
    body: new Blob([text]).stream(),
    filename: isCsv ? `statistics-${table}.csv` : "statistics.json",
  };
}

function csvOf({ columns, rows }: { columns: readonly string[]; rows: readonly Row[] }): string {
  const cells = (row: Row) => columns.map((column) => String(row[column] ?? ""));
  return [csvLine(columns), ...rows.map((row) => csvLine(cells(row)))].join("");
}

function rowsOf(
  { series, top, upstreams, outcomes }: Statistics,
  table: StatisticsExport["table"],
) {
  switch (table) {
    case "series": {
      const times = ["p50_ms", "p95_ms", "p99_ms"];
      return {
        columns: ["time", "date", ...Object.keys(outcomes), ...times],
        rows: series.map(({ latency, ...row }) => ({ ...row, ...latency })),
      };
    }
    case "upstreams":
      return {
        columns: ["address", "time", "queries", "failures", "p50_ms", "p95_ms"],
        rows: upstreams.flatMap(({ address, series }) =>
          series.map((row) => ({ address, ...row }))
        ),
      };
    case "clients":
    case "blocked_clients":
      return { columns: ["name", "client", "address", "count"], rows: top[table] };
    case "names":
    case "blocked":
    case "lists":
      return { columns: ["name", "count"], rows: top[table] };
  }
}
