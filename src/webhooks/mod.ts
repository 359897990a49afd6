/**
 * Tells receivers elsewhere what happened here: each webhook has a queue of its own, so that a slow
 * receiver holds up nobody else, tries again with growing pauses, and a log of what became of each
 * delivery. In go events and the webhooks as they are stored; out come signed requests through an
 * `HttpPost`, to addresses that `networkCheck` lets through. What waits is in memory alone: whoever
 * stops it is told how much was dropped. `ProblemWatch`, `MemberWatch` and `ClientWatch` make events of
 * what is looked at again and again. Scope: none. RFC 2104, 9110. @module
 */
export { type Admit, networkCheck } from "./networks.ts";
export { EVENTS_PER_HOUR, Webhooks, type WebhooksOptions } from "./webhooks.ts";
export { ATTEMPTS_MAX, type Delivery, type DeliveryState, QUEUE_LENGTH_MAX } from "./receiver.ts";
export { signature, SIGNATURE_HEADER } from "./signature.ts";
export { ClientWatch, type SeenClient } from "./client_watch.ts";
export { MemberWatch, type WatchedReport } from "./member_watch.ts";
export { ProblemWatch, type WatchedProblem } from "./problem_watch.ts";
export { findWebhookUrlProblem } from "./url.ts";
