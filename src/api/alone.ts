import type { ClusterReport } from "./schemas/cluster.ts";

/** A node that is in no cluster: it leads itself. */
export interface Alone {
  readonly node: string;
  readonly version: string;
  /** Number of the last change. */
  readonly appliedIndex: number;
}

/** What such a node reports: one voter, which is the leader and takes changes. */
export function aloneReport({ node, version, appliedIndex }: Alone): ClusterReport {
  return {
    node,
    role: "primary",
    state: "leader",
    cluster: "",
    leader: node,
    term: 0,
    config: { epoch: 0, version: appliedIndex },
    writable: true,
    members: [{
      node,
      address: null,
      this_node: true,
      membership: "voter",
      witness: false,
      reachable: true,
      state: "leader",
      version,
      matched: appliedIndex,
    }],
    peer: null,
    sync: { last_contact: null, last_copy: null },
    problems: [],
  };
}
