/** What was measured of svc and its peers: tables with ratios, and what they are held against. */
import { figure, formatTable } from "./report.ts";
import {
  type Latency,
  PEER_LOADS,
  PEER_RUNS,
  type PeerFigures,
  type PeerLoad,
  type PeerResults,
  type PeerRun,
} from "./peer_runs.ts";
import { type PeerName, PEERS } from "./peers.ts";
import { median, medianRatio } from "./stats.ts";
import { cpuUs, MIB_BYTES, most, type Target } from "./targets.ts";
import type { TransportSample } from "./transport_runs.ts";

/** Of AdGuard Home's CPU time. */
const DOQ_RATIO_MAX = 0.85;
/** Of either peer's, over the other transports. */
const CPU_RATIO_MAX = 1;
const DOQ_GROWTH_MIB_MAX = 60;
const REST_MIB_MAX = 110;
const LOADED_MIB_MAX = 200;
const PEAK_MIB_MAX = 260;

type Row = readonly string[];
/** What a peer has where svc has something to be compared. */
type Figure = (peer: PeerFigures) => readonly number[] | undefined;

const OTHERS = ["adguard", "blocky"] as const satisfies PeerName[];

export function formatPeers(results: PeerResults): string {
  const peers = PEERS.filter((name) => results[name] !== undefined);
  const others = OTHERS.filter((name) => results[name] !== undefined);
  const head = [...peers, ...others.map((name) => `svc / ${name}`)];
  const row = (title: string, of: Figure, digits = 2): Row => {
    const values = (name: PeerName) => {
      const peer = results[name];
      return peer === undefined ? [] : of(peer) ?? [];
    };
    return [
      title,
      ...peers.map((name) => figure(median(values(name)), digits)),
      ...others.map((name) => figure(medianRatio(values("svc"), values(name)), 2)),
    ];
  };
  const latency = (title: string, run: PeerRun, of: (latency: Latency) => number) =>
    row(title, (peer) => peer.latency[run] && [of(peer.latency[run])], 0);
  const each = (title: string, of: (sample: TransportSample) => number, digits: number): Row[] =>
    PEER_RUNS.flatMap((run) =>
      PEER_LOADS.filter((load) => results.svc?.runs[run]?.[load] !== undefined).map((load) =>
        row(`${title}: ${run}, ${load}`, samplesOf(run, load, of), digits)
      )
    );
  const memory = (title: string, bytes: (peer: PeerFigures) => number): Row =>
    row(title, (peer) => [bytes(peer) / MIB_BYTES], 0);
  const growth = row(
    "MiB more after DoQ",
    ({ doqGrowthBytes }) => doqGrowthBytes === null ? [] : [doqGrowthBytes / MIB_BYTES],
    0,
  );
  return [
    peers.map((name) => `${name} ${results[name]?.version}`).join(", "),
    formatTable([["", ...head], ...each("CPU µs", cpuUs, 2)]),
    formatTable([["", ...head], ...each("a second", ({ perSecond }) => perSecond, 0)]),
    formatTable([
      ["without load", ...head],
      ...PEER_RUNS.filter((run) => results.svc?.latency[run] !== undefined).flatMap((run) => [
        latency(`${run}, p50 µs`, run, ({ p50Us }) => p50Us),
        latency(`${run}, p99 µs`, run, ({ p99Us }) => p99Us),
      ]),
    ]),
    formatTable([
      ["", ...head],
      row("ms from start to a blocked answer", ({ startsMs }) => startsMs, 0),
      memory("MiB at rest", ({ memory }) => memory.restBytes),
      memory("MiB after load", ({ memory }) => memory.loadedBytes),
      memory("MiB at most while it reloads", ({ memory }) => memory.peakBytes),
      memory("MiB ten seconds later", ({ memory }) => memory.reloadedBytes),
      growth,
    ]),
  ].join("\n\n");
}

export function peerTargets(results: PeerResults): Target[] {
  const { svc } = results;
  if (svc === undefined) return [];
  const targets: Target[] = [];
  for (const name of OTHERS) {
    const peer = results[name];
    if (peer === undefined) continue;
    for (const run of PEER_RUNS) {
      for (const load of PEER_LOADS) {
        const of = samplesOf(run, load, cpuUs);
        const [ours, theirs] = [of(svc), of(peer)];
        if (ours === undefined || theirs === undefined) continue;
        const limit = run === "doq" ? DOQ_RATIO_MAX : CPU_RATIO_MAX;
        const title = `${run}, ${load}: CPU a query, svc / ${name}`;
        targets.push(most(title, medianRatio(ours, theirs), limit));
      }
    }
  }
  const { memory, doqGrowthBytes } = svc;
  const mibOf = (title: string, bytes: number, limit: number) =>
    targets.push(most(title, bytes / MIB_BYTES, limit, "MiB"));
  mibOf("resident at rest", memory.restBytes, REST_MIB_MAX);
  mibOf("resident after load", memory.loadedBytes, LOADED_MIB_MAX);
  mibOf("most resident while it reloads", memory.peakBytes, PEAK_MIB_MAX);
  mibOf("ten seconds after it reloaded", memory.reloadedBytes, LOADED_MIB_MAX);
  if (doqGrowthBytes !== null) {
    mibOf("resident after DoQ, beyond at rest", doqGrowthBytes, DOQ_GROWTH_MIB_MAX);
  }
  return targets;
}

function samplesOf(
  run: PeerRun,
  load: PeerLoad,
  of: (sample: TransportSample) => number,
): (peer: PeerFigures) => number[] | undefined {
  return (peer) => peer.runs[run]?.[load]?.map(of);
}
