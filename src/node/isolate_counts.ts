import type { Config } from "../config/mod.ts";

/** More isolates than this win nothing: the system's part of a query is the larger one. */
const WORKERS_AUTO_MAX = 4;

/** The dns isolates that a configuration asks for. */
export function workersOf({ server: { workers } }: Config): number {
  // Half of the cores: the kernel's part of the work runs on the others.
  const automatic = Math.min(WORKERS_AUTO_MAX, Math.floor(navigator.hardwareConcurrency / 2));
  return workers === 0 ? Math.max(1, automatic) : workers;
}

/** Threads that check signatures beside so many dns isolates. */
export function checkThreadsOf(isolates: number): number {
  return Math.ceil(isolates / 2);
}
