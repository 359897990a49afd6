import assert from "node:assert/strict";
import { NOTHING_PERSISTED, restore } from "../raft/mod.ts";
import { Peers } from "./facts.ts";
import type { Status } from "./frames.ts";
import type { PeerState } from "./ports.ts";

Deno.test("Peers.connected() keeps what was said since the member is there", {
  permissions: "none",
}, () => {
  const greeting = { version: "0.7.0", clusterId: "c1", memberId: "b.1", isWitness: false };
  const peer: PeerState = {
    ...{ name: "b", isConnected: true, greeting },
    incompatible: null,
    fault: null,
  };
  const { log } = restore({ id: "b.1", isWitness: false, random: 0 }, NOTHING_PERSISTED);
  const status: Status = {
    ...{ cluster: "c1", id: "b.1", state: "leader", term: 2, leader: "b.1" },
    configuration: log.configuration,
    configurationIndex: 0,
  };
  const known = (said: Status) => {
    const peers = new Peers({ send: () => true, peers: () => [peer], greet: () => {} });
    peers.said("b", said);
    peers.connected(peer);
    return peers.get("b")?.status ?? null;
  };
  assert.equal(known(status), status, "its own way here was the first");
  assert.equal(known({ ...status, state: "stopped" }), null, "it ended, and is there again");
  assert.equal(known({ ...status, cluster: "c0" }), null, "it is in another cluster by now");
  assert.equal(known({ ...status, id: "b.0" }), null, "it is another member by now");
});
