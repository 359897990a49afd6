/**
 * What an isolate asks of the thread it runs on: to stand behind those that answer queries.
 * Scope: sys: the thread's priority. @module
 */
export { Nice, stepBack } from "./step_back.ts";
