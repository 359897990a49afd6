/**
 * The terminal's way to a running service: its status, the log as it comes, clients, groups and
 * lists, and what is changed there. Keys go in and pictures in cells come out, of which only what
 * differs is written; what the service says is made harmless on the way. Scope: the terminal. ECMA-48. @module
 */
import type { ApiClient } from "../client/mod.ts";
import { App } from "./app.ts";
import { formatStatus } from "./status_text.ts";
import { abilitiesOf } from "./terminal.ts";

/** Shows the screen until it is left; the terminal is as it was then. */
export async function runTui(
  client: ApiClient,
  env: (name: string) => string | undefined,
): Promise<void> {
  await new App(client, abilitiesOf(env)).run();
}

/** One look at the status, as text; and whether all is well. */
export async function statusText(
  client: ApiClient,
): Promise<{ readonly text: string; readonly isWell: boolean }> {
  const [status, day] = await Promise.all([
    client.call("GET status"),
    client.call("GET stats", { query: { hours: "24" } }),
  ]);
  return {
    text: formatStatus(status, day, client.clock.now()),
    isWell: status.problems.length === 0,
  };
}
