import { join } from "node:path/posix";
import type { ClockJudge } from "../clock/mod.ts";
import type { Config } from "../config/mod.ts";
import { messageOf, SvcError } from "../errors.ts";
import type { HttpGet } from "../http/mod.ts";
import { type DnsUpstream, type QuerylogOptions, QuerylogSupervisor } from "../isolate/mod.ts";
import { denoDisk, ListKeeper } from "../lists/mod.ts";
import { log } from "../log.ts";
import { openNative } from "../native/mod.ts";
import { Neighbours } from "../netlink/mod.ts";
import { openNodeStore } from "../store/mod.ts";
import { RELEASED_MS, VERSION } from "../version.ts";
import { deviceFiles, Devices } from "./devices.ts";
import type { Problems } from "./problems.ts";
import { LONE_NODE, seedSource } from "./seed.ts";

/** What others call this node. */
export function nodeName({ cluster }: Config): string {
  return cluster?.node ?? LONE_NODE;
}

/** Opens the node's store; where that can't be, one in memory, unless it is to stay closed. */
export async function openStoreOf(config: Config, problems: Problems, clock: ClockJudge) {
  const { filter, store: { dir } } = config;
  const opened = await openNodeStore(seedSource(filter), {
    directory: dir,
    node: nodeName(config),
    onFailure: filter.onFailure,
    clock,
    program: VERSION,
  });
  // An audit log that can't be read says so to who asks for it.
  const audit = await opened.store.audit({ limit: 1 }).catch(() => null);
  for (const { time } of audit?.entries ?? []) clock.witness(Date.parse(time));
  problems.watch("store", () => opened.problems);
  return opened;
}

/** Opens the folder of kept lists; where that can't be, one for this run alone. */
export async function openKeeper(
  config: Config,
  problems: Problems,
  get: HttpGet,
): Promise<ListKeeper> {
  const options = {
    get,
    clock: { nowMs: () => Date.now() },
    chance: Math.random,
    disk: denoDisk,
    localListsDirectory: config.filter.localListsDir,
  };
  const directory = join(config.store.dir, "lists");
  try {
    return await ListKeeper.open(directory, options);
  } catch (error) {
    const problem = `store.path: ${directory}: ${messageOf(error)}`;
    if (config.filter.onFailure === "closed") throw new SvcError("unavailable", problem);
    problems.add("store", `${problem}; downloaded lists are gone with this process`);
    log.error("lists can't be kept", { directory, error });
    return await ListKeeper.open(await Deno.makeTempDir({ prefix: "svc-lists-" }), options);
  }
}

/** Opens what knows who is on the network. */
export async function openDevices(config: Config, problems: Problems): Promise<Devices> {
  const native = openNative();
  const devices = new Devices({
    config: config.devices,
    files: deviceFiles,
    neighbours: native === null ? null : new Neighbours(native),
  });
  await devices.open();
  problems.watch("devices", () => devices.problems);
  return devices;
}

/** What keeps the query log; `null` where there is to be none. */
export function querylogOf(
  { querylog }: Config,
  upstreams: readonly DnsUpstream[],
  isolates: number,
  exports: QuerylogOptions["exports"],
): QuerylogSupervisor | null {
  if (!querylog.enabled) return null;
  return new QuerylogSupervisor({
    directory: querylog.dir,
    maxEntries: querylog.maxEntries,
    retentionMs: querylog.retentionMs,
    anonymize: querylog.anonymize,
    timeZone: querylog.timeZone,
    releasedMs: RELEASED_MS,
    upstreams: upstreams.map(({ address }) => address),
    exports,
    writers: isolates,
  });
}
