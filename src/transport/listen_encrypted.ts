/**
 * Listeners for clients that encrypt: DoT, DoH over HTTP/2 and HTTP/1.1, DoQ. Scope: net.
 * RFC 7301, 7541, 7858, 8310, 8446, 8484, 9000, 9112, 9113, 9250. @module
 */
export { DotListener } from "./listen/dot.ts";
export { answerQuery, refuseQuery } from "./listen/doh.ts";
export { DohListener } from "./listen/doh_listener.ts";
export { DoqListener } from "./listen/doq.ts";
