import { formatPrefix, parsePrefix } from "../addr/mod.ts";
import { type DnsReport, fullestOf, STREAM_PROTOCOLS } from "../isolate/mod.ts";
import { anonymize } from "../querylog/mod.ts";
import type { MetricFamily, Sample } from "../telemetry/mod.ts";
import type { Occupancy } from "../transport/mod.ts";

type Reports = readonly Pick<DnsReport, "connections" | "cutOff">[];

/** Who is connected to a node: to its isolates, as they said last, and to its API, if it has one. */
export interface Connected {
  readonly reports: Reports;
  readonly api: Occupancy | null;
}

/** The fullest listener of each protocol, and the API. */
function occupancies({ reports, api }: Connected): (readonly [string, Occupancy])[] {
  const found = STREAM_PROTOCOLS.map((protocol) =>
    [protocol, fullestOf(reports.map(({ connections }) => connections[protocol]))] as const
  );
  return [...found, ["api", api] as const].flatMap(([protocol, occupancy]) =>
    occupancy === null ? [] : [[protocol, occupancy] as const]
  );
}

/** Names each protocol whose connections are all taken, and who has most of them. */
export function connectionProblems(connected: Connected, isAnonymized: boolean): string[] {
  return occupancies(connected).flatMap(([protocol, { taken, max, most }]) => {
    if (taken < max || most === null) return [];
    const { client, connections } = most;
    const whose = shownClient(client, isAnonymized);
    return [
      `${protocol}: ${count(taken)} of ${count(max)} connections are taken, ` +
      `${
        count(connections)
      } of them by ${whose}: who asks anew takes the place of the one that is ` +
      `idle for longest`,
    ];
  });
}

/** The connections of the fullest listener of each protocol, and those to the API. */
export function connectionFamilies(connected: Connected, isAnonymized: boolean): MetricFamily[] {
  const taken: Sample[] = [];
  const limit: Sample[] = [];
  const most: Sample[] = [];
  for (const [protocol, fullest] of occupancies(connected)) {
    const labels = { protocol };
    taken.push({ labels, value: fullest.taken });
    limit.push({ labels, value: fullest.max });
    if (fullest.most === null) continue;
    const client = shownClient(fullest.most.client, isAnonymized);
    most.push({ labels: { ...labels, client }, value: fullest.most.connections });
  }
  const cut = (why: "unfinished" | "unread"): Sample => ({
    labels: { held: why },
    value: connected.reports.reduce((sum, { cutOff }) => sum + cutOff[why], 0),
  });
  return [
    {
      name: "svc_connections",
      type: "gauge",
      help: "Connections of the fullest listener, by protocol.",
      samples: taken,
    },
    {
      name: "svc_connections_limit",
      type: "gauge",
      help: "Connections that a listener takes, by protocol.",
      samples: limit,
    },
    {
      name: "svc_connections_most",
      type: "gauge",
      help: "Connections of the client that has most of them at that listener, by protocol.",
      samples: most,
    },
    {
      name: "svc_connections_cut_off_total",
      type: "counter",
      help: "Connections ended because clients held too many bytes in all, by what these were.",
      samples: [cut("unfinished"), cut("unread")],
    },
  ];
}

/** The client as the query log would show it. */
function shownClient(client: string, isAnonymized: boolean): string {
  const prefix = parsePrefix(client);
  if (!isAnonymized || prefix === null) return client;
  const ip = prefix.ip.slice();
  anonymize(ip, 0, ip.length);
  return formatPrefix({ ip, lengthBits: ip.length === 4 ? 24 : 56 });
}

function count(value: number): string {
  return value.toLocaleString("en");
}
