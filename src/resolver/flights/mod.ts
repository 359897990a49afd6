/**
 * Who waits for which question: merging, bounds, deadlines, stale answers, remembered failures, and
 * flights that have further questions asked. Where answers come from is a `Source`'s. See
 * `resolver/mod.ts`. RFC 8767, 9520. @module
 */
export { BeginLine } from "./begin_line.ts";
export { ClientLines, lineOf, LINES } from "./client_lines.ts";
export { ClientWaits } from "./client_waits.ts";
export { KeptMessages } from "./kept_messages.ts";
export { Flight } from "./flight.ts";
export { FLIGHTS_MAX } from "./flight_table.ts";
export { CHILDREN_MAX, DEPTH_MAX, Flights, type FlightsOptions, TICK_MS } from "./flights.ts";
export type { BroughtMessage } from "./kept_answers.ts";
export {
  type Finisher,
  FLIGHT_MS,
  type Judge,
  type Share,
  type Source,
  type Task,
} from "./source.ts";
export type { Responder, Taker, Waiter } from "./waiter.ts";
