import type { ChannelFigures, MemberFigures, PeerFigures } from "../cluster/mod.ts";
import type { MetricFamily, Sample } from "../telemetry/mod.ts";

const STATES = ["leader", "follower", "learner", "candidate", "unknown", "stopped"] as const;

/** What a member of a cluster tells of itself; nothing of a node that is in none. */
export function clusterFamilies(figures: MemberFigures | null): MetricFamily[] {
  if (figures === null) return [];
  const { proposals, lags } = figures;
  return [
    family("svc_cluster_term", "gauge", "The term of consensus.", [{ value: figures.term }]),
    family(
      "svc_cluster_state",
      "gauge",
      "1 for what this member is doing, 0 for what it is not.",
      STATES.map((state) => ({ labels: { state }, value: Number(state === figures.state) })),
    ),
    family("svc_cluster_commit_index", "gauge", "Last change that most voters have.", [
      { value: figures.commitIndex },
    ]),
    family("svc_cluster_applied_index", "gauge", "Last change that is applied here.", [
      { value: figures.appliedIndex },
    ]),
    family(
      "svc_cluster_member_lag_entries",
      "gauge",
      "On the leader: changes that a member is not known to have.",
      lags.map(({ node, entries }) => ({ labels: { member: node }, value: entries })),
    ),
    family(
      "svc_cluster_proposals_total",
      "counter",
      "Changes through this member, by how they ended.",
      (["done", "refused", "unavailable"] as const).map((result) => {
        return { labels: { result }, value: proposals[result] };
      }),
    ),
    family("svc_cluster_elections_total", "counter", "Elections that this member stood in.", [
      { value: figures.elections },
    ]),
    family("svc_cluster_leader_changes_total", "counter", "Leaders that this member has seen.", [
      { value: figures.leaderChanges },
    ]),
    family(
      "svc_cluster_dropped_messages_total",
      "counter",
      "Messages of members that were none, of another cluster, or found no room.",
      [{ value: figures.droppedFrames }],
    ),
    family(
      "svc_cluster_copies_sent_total",
      "counter",
      "Whole configurations that members took over from this one.",
      [{ value: figures.snapshotsSent }],
    ),
  ];
}

/** What passes between this member and each other, and who was refused. */
export function channelFamilies(figures: ChannelFigures | null): MetricFamily[] {
  if (figures === null) return [];
  const { refused, unfinished, peers } = figures;
  const by = (value: (peer: PeerFigures) => number) =>
    peers.map((peer) => ({ labels: { member: peer.name }, value: value(peer) }));
  return [
    family(
      "svc_cluster_connected",
      "gauge",
      "1 where messages to a member can leave, 0 where they can't.",
      by(({ isConnected }) => Number(isConnected)),
    ),
    family(
      "svc_cluster_sent_bytes_total",
      "counter",
      "Bytes of messages to a member.",
      by(({ bytesSent }) => bytesSent),
    ),
    family(
      "svc_cluster_received_bytes_total",
      "counter",
      "Bytes of messages of a member.",
      by(({ bytesReceived }) => bytesReceived),
    ),
    family(
      "svc_cluster_unsent_messages_total",
      "counter",
      "Messages to a member that were dropped, as too much waited for it.",
      by(({ framesDropped }) => framesDropped),
    ),
    family(
      "svc_cluster_refused_connections_total",
      "counter",
      "Connections that were refused, by reason.",
      Object.entries(refused).map(([reason, value]) => ({ labels: { reason }, value })),
    ),
    family(
      "svc_cluster_unfinished_connections",
      "gauge",
      "Connections that are not greeted yet.",
      [{ value: unfinished }],
    ),
  ];
}

function family(
  name: string,
  type: "gauge" | "counter",
  help: string,
  samples: readonly (Omit<Sample, "labels"> & Partial<Sample>)[],
): MetricFamily {
  return { name, type, help, samples: samples.map((sample) => ({ labels: {}, ...sample })) };
}
