import { formatHostPort, type HostPort } from "../addr/mod.ts";
import type { ClusterConfig, ClusterMember } from "./config.ts";
import { quote } from "./problem.ts";
import { boolean, hostPort, matching, oneOf, path, type Sockets } from "./readers.ts";
import { arrayOf, type Place, type Reader, type Table } from "./table.ts";

const CLUSTER_PORT = 8054;
/** Most members; Raft asks each for every change. */
const MEMBER_COUNT_MAX = 32;
const LISTEN_COUNT_MAX = 16;

const NODE_NAME = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** What a node name looks like, in words. */
export const NODE_NAME_FORM =
  "1 to 63 lower-case letters, digits and hyphens, a letter first, no hyphen last";

const nodeName = matching(NODE_NAME, `a node name: write ${NODE_NAME_FORM}`);

/** Says whether a member may be called so. */
export function isNodeName(text: string): boolean {
  return NODE_NAME.test(text);
}

/** Reads `[cluster]` with its members; the earlier two-node form is understood as well. */
export function readCluster(
  t: Table,
  directory: string,
  sockets: Sockets,
  role: "node" | "witness",
): ClusterConfig | null {
  const node = t.required("node", nodeName);
  const bootstrap = readBootstrap(t, role);
  const listen = t.read("listen", oneOrMore(sockets.listen(CLUSTER_PORT, "tcp")), [
    `0.0.0.0:${CLUSTER_PORT}`,
    `[::]:${CLUSTER_PORT}`,
  ]);
  const caFile = t.required("ca", path(directory));
  const certFile = t.required("cert", path(directory));
  const keyFile = t.required("key", path(directory));
  const known = new Map<string, Place>();
  const members = t.tables("member", MEMBER_COUNT_MAX, (m) => readMember(m, known));
  if (t.has("peer")) {
    const peer = t.table("peer", (m) => readMember(m, known));
    if (peer !== null) members.push(peer);
  } else t.table("peer", () => null);
  if (node === null) return null;
  checkOthers(t, node, bootstrap, listen, members);
  if (caFile === null || certFile === null || keyFile === null) return null;
  return { node, bootstrap, listen, caFile, certFile, keyFile, members };
}

/** Holds the members against this one: the others are who it works with. */
function checkOthers(
  t: Table,
  own: string,
  bootstrap: boolean,
  listen: readonly HostPort[],
  members: readonly ClusterMember[],
): void {
  if (!bootstrap && members.every(({ node }) => node === own)) {
    t.place.at("member").problem(
      "names no other member, so nobody adds this one: list each with node and address",
      "check",
    );
  }
  // Drafts have holes; the earlier peer stands behind the others.
  const countOfArray = members.length - (t.has("peer") ? 1 : 0);
  for (const [key, { node, address }] of Object.entries(members)) {
    const index = Number(key);
    const place = index < countOfArray
      ? t.place.at("member").at(index).at("address")
      : t.place.at("peer").at("address");
    const isOwn = listen.some((at) => formatHostPort(at) === formatHostPort(address));
    if (isOwn && node !== own) {
      place.problem(`is where this node listens itself: write the address of ${node}`, "check");
    }
  }
}

/** `bootstrap`, or what `role` of the earlier two-node form says about it. */
function readBootstrap(t: Table, role: "node" | "witness"): boolean {
  const bootstrap = t.read("bootstrap", boolean, false);
  const earlier = t.optional("role", oneOf("primary", "replica"));
  const key = earlier === "primary" ? "role" : "bootstrap";
  if (earlier !== null && t.has("bootstrap") && bootstrap !== (earlier === "primary")) {
    t.place.at("bootstrap").problem(`contradicts role = "${earlier}": take role away`);
  } else if (role === "witness" && (bootstrap || earlier === "primary")) {
    t.place.at(key).problem("is for nodes: a witness never starts a cluster, take it away");
  }
  return bootstrap || earlier === "primary";
}

function readMember(t: Table, known: Map<string, Place>): ClusterMember | null {
  const node = t.required("node", nodeName);
  const address = t.required("address", hostPort(CLUSTER_PORT, 1));
  if (node === null || address === null) return null;
  const own = [["node", node], ["address", formatHostPort(address)]] as const;
  for (const [key, value] of own) {
    const first = known.get(value);
    if (first === undefined) known.set(value, t.place.at(key));
    else t.place.at(key).problem(`is ${quote(value)}, as ${first} is: each member has its own`);
  }
  return { node, address };
}

/** An array, or its one element alone. */
function oneOrMore(reader: Reader<HostPort>): Reader<HostPort[]> {
  const array = arrayOf(reader, LISTEN_COUNT_MAX);
  return (value, place) => {
    if (typeof value === "string") {
      const one = reader(value, place);
      return one === null ? null : [one];
    }
    const many = array(value, place);
    if (Array.isArray(value) && value.length === 0) {
      return place.problem("names no address, so no member could reach this one: name one");
    }
    return many;
  };
}
