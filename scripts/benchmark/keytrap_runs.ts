/**
 * What answers from the cache take while somebody has signatures checked that do not fit (KeyTrap,
 * CVE-2023-50387): names at a fixed rate, without and with the attack, in turn.
 */
import { runLoad, runPaced } from "./dnsperf.ts";
import { writeQueries } from "./names.ts";
import type { Recursor, RecursorName } from "./recursors.ts";
import { hostName, HOSTS, TRAP_HOSTS, TRAP_ZONE, zoneName } from "./small_internet.ts";
import { percentile } from "./stats.ts";
import type { Workspace } from "./workspace.ts";

/** Names that are cached, a second: few enough that they are no load. */
const PACED_RATE = 500;
/** So many may wait that one that takes long keeps no other from being asked in time. */
const PACED_WAITING = 16;
/** How much sooner the attack begins than what is measured under it, and how much later it ends. */
const LEAD_S = 1;

/** One resolver in one round, in microseconds. */
export interface KeytrapSample {
  readonly quietP99Us: number;
  readonly attackedP99Us: number;
  /** Names of the attack that were answered, with a failure, a second. */
  readonly attackRate: number;
}

export type KeytrapResults = Partial<Record<RecursorName, KeytrapSample[]>>;

export async function measureKeytrap(
  workspace: Workspace,
  recursor: Recursor,
  seconds: number,
  cpu: number | null,
): Promise<KeytrapSample> {
  const { port } = recursor;
  const cached = await writeOnce(workspace, "cached.names", function* () {
    for (let host = 0; host < HOSTS; host++) yield hostName(zoneName("signed", 0), host);
  });
  const attack = await writeOnce(workspace, "keytrap.names", function* () {
    for (let host = 0; host < TRAP_HOSTS; host++) yield hostName(TRAP_ZONE, host);
  });
  await recursor.flush();
  const paced = { port, queries: cached, once: false, cpu };
  const ask = (seconds: number) => runPaced({ ...paced, seconds }, PACED_RATE, PACED_WAITING);
  await ask(1); // What is measured is in the cache.
  const quiet = await ask(seconds);
  const attackS = seconds + 2 * LEAD_S;
  const attacking = runLoad({ port, queries: attack, once: false, seconds: attackS, cpu });
  await new Promise((resolve) => setTimeout(resolve, 1_000 * LEAD_S));
  const attacked = await ask(seconds);
  const { queriesPerSecond } = await attacking;
  return {
    quietP99Us: percentile(quiet, 0.99),
    attackedP99Us: percentile(attacked, 0.99),
    attackRate: queriesPerSecond,
  };
}

async function writeOnce(
  workspace: Workspace,
  name: string,
  names: () => Iterable<string>,
): Promise<string> {
  const path = workspace.path(name);
  await writeQueries(path, names());
  return path;
}
