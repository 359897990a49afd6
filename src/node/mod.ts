/**
 * A node that runs: what is open and how it starts, goes on and stops. `Node.open` opens store, lists,
 * policy, sockets and whatever else can fail; `start` lets queries in and serves the API; `stop` ends
 * it within its time. In goes a configuration. Scope: what it wires. @module
 */
export { Node } from "./node.ts";
export { runService } from "./service.ts";
