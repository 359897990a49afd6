import type { Statistics, Status } from "../api/mod.ts";
import { ago, countDown, counted, milliseconds, percent, visible } from "./text.ts";

/** What filtering does at the moment. */
export function filteringText(
  { protection, paused_until }: Pick<Status, "protection" | "paused_until">,
  nowMs: number,
): string {
  if (!protection) return "protection off";
  const leftMs = paused_until === null ? 0 : Date.parse(paused_until) - nowMs;
  return leftMs > 0 ? `paused ${countDown(leftMs)}` : "filtering";
}

/** Whether a member leads, and how far the others are. */
export function clusterLines({ cluster: { cluster, leader, term, writable, members } }: Status) {
  if (cluster === "") return [];
  const state = `leader ${leader ?? "none"}, term ${term}, ${writable ? "writable" : "read only"}`;
  return [
    { text: state, isWell: leader !== null && writable },
    ...members.map(({ node, state, membership, witness, reachable, version, matched }) => {
      const words = [
        node,
        state,
        witness ? "witness" : membership,
        reachable ? "reachable" : "NOT REACHABLE",
        version ?? "",
        matched === undefined ? "" : `at ${matched}`,
      ];
      return { text: words.filter((word) => word !== "").join("  "), isWell: reachable };
    }),
  ];
}

export function upstreamText({ address, healthy, latency_ms, failures }: Status["upstreams"][0]) {
  const failed = failures === 0 ? "" : `, ${counted(failures)} failures`;
  return `${healthy ? "ok  " : "DOWN"} ${
    milliseconds(latency_ms).padStart(7)
  }  ${address}${failed}`;
}

/** A line of text for each fact: the name, a colon, and what it is. */
export function formatStatus(status: Status, day: Statistics, now: Date): string {
  const { node, version, started_at, paused_until, filter, cache, querylog } = status;
  const filtering = filteringText(status, now.getTime());
  const until = filtering.startsWith("paused") ? ` left, until ${paused_until}` : "";
  const blocked = percent(day.outcomes.blocked, day.total);
  return [
    `node: ${node}`,
    `version: ${version}`,
    `running: ${ago(now.getTime() - Date.parse(started_at))}, since ${started_at}`,
    `state: ${status.problems.length === 0 ? "ok" : "degraded"}`,
    `filtering: ${filtering === "filtering" ? "on" : filtering}${until}`,
    `queries: ${counted(day.total)} in 24 hours, ${counted(day.outcomes.blocked)} blocked ` +
    `(${blocked}), ${counted(day.outcomes.failed)} failed, median ${
      milliseconds(day.latency.p50_ms)
    }`,
    `rules: ${counted(filter.rules)}`,
    `cache: ${counted(cache.entries)} answers, ${
      percent(cache.hits, cache.hits + cache.misses)
    } of queries`,
    `log: ${counted(querylog.entries)} entries, ${counted(querylog.dropped)} dropped`,
    ...status.upstreams.map((one) => `upstream: ${upstreamText(one)}`),
    ...clusterLines(status).map(({ text }) => `cluster: ${text}`),
    ...status.problems.map((problem) => `problem: ${problem}`),
  ].map((line) => visible(line)).join("\n");
}
