/**
 * An Internet on loopback addresses of a namespace of its own: a root, top-level domains and zones,
 * signed and not, by one NSD each for the root, the domains below it and the zones.
 */
import { Buffer } from "node:buffer";
import { parseIp } from "../../src/addr/mod.ts";
import { encodeHex, setU32 } from "../../src/bytes/mod.ts";
import { Qtype } from "../../src/dns/mod.ts";
import { BenchError } from "./bench_error.ts";
import { type Child, pin, readCpuTime, runTool } from "./processes.ts";
import { EVERY_ADDRESS } from "./servers.ts";
import { wireName, ZONE_TTL, type ZoneSet, ZoneSigner, zoneText } from "./signed_zone.ts";
import type { Workspace } from "./workspace.ts";

/**
 * Zones by what a validator has to prove of them: nothing, as the domain above is not signed; that
 * they are not signed, each by one signature of the domain above; what they say.
 */
export const ZONE_KINDS = ["unsigned", "insecure", "signed"] as const;
export type ZoneKind = typeof ZONE_KINDS[number];

/** Names of hosts in each zone. */
export const HOSTS = 10;
/** The first half of them unsigned, the other signed. */
const TLDS = 10;
/** Each zone is served by two of so many addresses, as of companies that serve many zones. */
const ZONE_ADDRESSES = 60;
const ROOT_ADDRESSES = ["198.51.100.1", "198.51.100.2"];
/** A signed zone whose DS is another's: a validator has to refuse what it says. */
export const BOGUS_ZONE = "bogus.tld9.";
/** A signed zone none of whose hosts' signatures fits: each costs a validator as many checks as it makes. */
export const TRAP_ZONE = "trap.tld8.";
export const TRAP_HOSTS = 20_000;
const TRAP_SIGNATURES = 8;
const DNS_PORT = 53;
const NSD_MS_MAX = 60_000;
const LOOK_MS = 50;

/** The domain that a zone of a kind is in. */
function tldOf(kind: ZoneKind, i: number): number {
  const half = TLDS / 2;
  return (kind === "unsigned" ? 0 : half) + i % half;
}

function tldAddresses(tld: number): string[] {
  return [`198.51.100.${11 + 2 * tld}`, `198.51.100.${12 + 2 * tld}`];
}

function zoneAddresses(i: number): string[] {
  const pair = i % (ZONE_ADDRESSES / 2);
  return [`203.0.113.${1 + 2 * pair}`, `203.0.113.${2 + 2 * pair}`];
}

export function zoneName(kind: ZoneKind, i: number): string {
  return `${kind}-${i}.tld${tldOf(kind, i)}.`;
}

/** NS records of a zone with the addresses of its servers, which are in it. */
function delegation(zone: string, below: string, addresses: readonly string[]): ZoneSet[] {
  const names = addresses.map((_, i) => `ns${i + 1}.${below}`);
  return [
    { owner: zone, type: Qtype.NS, rdatas: names.map(wireName) },
    ...names.map((owner, i) => addressSet(owner, addresses[i])),
  ];
}

function addressSet(owner: string, address = EVERY_ADDRESS): ZoneSet {
  const ip = parseIp(address);
  if (ip === null) throw new BenchError(`${address}: is no address`);
  return { owner, type: Qtype.A, rdatas: [ip] };
}

function soa(zone: string): ZoneSet {
  const times = new Uint8Array(20);
  [1, 3_600, 600, ZONE_TTL, 3_600].forEach((value, i) => setU32(times, 4 * i, value));
  const rdata = Buffer.concat([wireName("ns1.nic."), wireName("hostmaster.nic."), times]);
  return { owner: zone, type: Qtype.SOA, rdatas: [rdata] };
}

/** Who serves what. */
interface Tier {
  readonly folder: string;
  readonly addresses: readonly string[];
  /** Names of zones; the zone file of each is its place in the list. */
  readonly zones: string[];
}

export class SmallInternet {
  readonly #servers: { readonly child: Child; readonly config: string }[] = [];

  private constructor(
    /** Files with the addresses of the root's servers, and with its key. */
    readonly hints: string,
    readonly anchor: string,
    readonly zones: number,
  ) {}

  /** Makes `zones` zones of each kind and starts their servers, on `cpu` if given. */
  static async start(
    workspace: Workspace,
    { zones, cpu }: { readonly zones: number; readonly cpu: number | null },
  ): Promise<SmallInternet> {
    const tiers = ([
      ["root", ROOT_ADDRESSES],
      ["tlds", Array.from({ length: TLDS }, (_, tld) => tldAddresses(tld)).flat()],
      ["zones", Array.from({ length: ZONE_ADDRESSES / 2 }, (_, i) => zoneAddresses(i)).flat()],
    ] as const).map(([folder, addresses]): Tier => ({ folder, addresses, zones: [] }));
    await bringUp(workspace, tiers.flatMap(({ addresses }) => addresses));
    const signer = await ZoneSigner.make();
    await writeZones(workspace, tiers, zones, signer);
    const hints = await workspace.write(
      "root.hints",
      ROOT_ADDRESSES.map((address, i) =>
        `. ${ZONE_TTL} NS ns${i + 1}.nic.\nns${i + 1}.nic. ${ZONE_TTL} A ${address}\n`
      ).join(""),
    );
    const ds = signer.ds(".");
    const anchor = await workspace.write(
      "root.key",
      `. IN DS ${signer.tag} 13 2 ${encodeHex(ds.subarray(4)).toUpperCase()}\n`,
    );
    const internet = new SmallInternet(hints, anchor, zones);
    for (const tier of tiers) await internet.#serve(workspace, tier, cpu);
    return internet;
  }

  /** Queries that its servers were sent since this was asked last. */
  async takeQueries(): Promise<number> {
    const counts = await Promise.all(this.#servers.map(async ({ config }) => {
      const text = await runTool("nsd-control", ["-c", config, "stats"]);
      return Number(/^num\.queries=(\d+)$/m.exec(text)?.[1] ?? NaN);
    }));
    return counts.reduce((sum, count) => sum + count);
  }

  /** CPU time that its servers have taken. */
  cpuUs(): number {
    const times = this.#servers.map(({ child }) => readCpuTime(child.pid));
    return times.reduce((sum, time) => sum + (time?.userUs ?? 0) + (time?.systemUs ?? 0), 0);
  }

  async #serve(workspace: Workspace, tier: Tier, cpu: number | null): Promise<void> {
    const { folder, addresses, zones } = tier;
    const at = workspace.path(folder);
    const control = `${at}/control`;
    const config = await workspace.write(
      `${folder}/nsd.conf`,
      `server:
${addresses.map((address) => `  ip-address: ${address}@${DNS_PORT}\n`).join("")}  username: ""
  server-count: 1
  reuseport: no
  zonesdir: "${at}"
  xfrdir: "${at}"
  zonelistfile: "${at}/zone.list"
  database: ""
  pidfile: ""
  xfrdfile: ""
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
remote-control:
  control-enable: yes
  control-interface: ${control}
${zones.map((name, i) => `zone:\n  name: "${name}"\n  zonefile: "${i}.zone"\n`).join("")}`,
    );
    const child = workspace.start(`nsd, ${folder}`, "nsd", ["-d", "-c", config]);
    if (cpu !== null) await pin(child.pid, [cpu]);
    const endsAtMs = performance.now() + NSD_MS_MAX;
    while (!(await isUp(config))) {
      child.checkRuns();
      if (performance.now() > endsAtMs) throw child.failure(`is not up in ${NSD_MS_MAX} ms`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    this.#servers.push({ child, config });
  }
}

async function isUp(config: string): Promise<boolean> {
  try {
    await runTool("nsd-control", ["-c", config, "stats"]);
    return true;
  } catch (error) {
    if (error instanceof BenchError) return false;
    throw error;
  }
}

/** Gives the namespace its addresses. */
async function bringUp(workspace: Workspace, addresses: readonly string[]): Promise<void> {
  const lines = addresses.map((address) => `address add ${address}/32 dev lo\n`);
  const file = await workspace.write("addresses", `link set lo up\n${lines.join("")}`);
  await runTool("ip", ["-batch", file]);
}

async function writeZones(
  workspace: Workspace,
  [rootTier, tldTier, zoneTier]: readonly Tier[],
  zones: number,
  signer: ZoneSigner,
): Promise<void> {
  for (const { folder } of [rootTier, tldTier, zoneTier]) await workspace.makeFolder(folder);
  const add = async (
    tier: Tier,
    zone: string,
    sets: readonly ZoneSet[],
    signedBy: ZoneSigner | null,
  ) => {
    const i = tier.zones.push(zone) - 1;
    await workspace.write(`${tier.folder}/${i}.zone`, zoneText(zone, sets, signedBy));
  };
  const root = [soa("."), ...delegation(".", "nic.", ROOT_ADDRESSES)];
  const tlds = Array.from({ length: TLDS }, (_, tld) => {
    const name = `tld${tld}.`;
    const own = delegation(name, name, tldAddresses(tld));
    root.push(...own);
    if (tld >= TLDS / 2) root.push(dsSet(name, signer));
    return [soa(name), ...own];
  });
  const addZone = async (zone: string, kind: ZoneKind, i: number, key: ZoneSigner | null) => {
    const own = delegation(zone, zone, zoneAddresses(i));
    const tld = tlds[tldOf(kind, i)];
    tld.push(...own);
    if (key !== null) tld.push(dsSet(zone, key));
    const hosts = Array.from({ length: HOSTS }, (_, host) => addressSet(hostName(zone, host)));
    const signedBy = key === null ? null : signer;
    await add(zoneTier, zone, [soa(zone), ...own, ...hosts], signedBy);
  };
  for (const kind of ZONE_KINDS) {
    for (let i = 0; i < zones; i++) {
      await addZone(zoneName(kind, i), kind, i, kind === "signed" ? signer : null);
    }
  }
  await addZone(BOGUS_ZONE, "signed", 4, await ZoneSigner.make());
  const trapOwn = delegation(TRAP_ZONE, TRAP_ZONE, zoneAddresses(3));
  tlds[tldOf("signed", 3)].push(...trapOwn, dsSet(TRAP_ZONE, signer));
  const trap = zoneTier.zones.push(TRAP_ZONE) - 1;
  const trapText = zoneText(TRAP_ZONE, [soa(TRAP_ZONE), ...trapOwn], signer) +
    zoneText(TRAP_ZONE, [...trapHosts(signer)], null);
  await workspace.write(`${zoneTier.folder}/${trap}.zone`, trapText);
  for (const [tld, sets] of tlds.entries()) {
    await add(tldTier, `tld${tld}.`, sets, tld < TLDS / 2 ? null : signer);
  }
  await add(rootTier, ".", root, signer);
}

/** Hosts with signatures that differ from the right one in their last byte. */
function* trapHosts(signer: ZoneSigner): Generator<ZoneSet> {
  for (let host = 0; host < TRAP_HOSTS; host++) {
    const set = addressSet(hostName(TRAP_ZONE, host));
    const right = signer.sign(TRAP_ZONE, set);
    const rdatas = Array.from(
      { length: TRAP_SIGNATURES },
      (_, i) => right.with(-1, right.at(-1)! ^ (i + 1)),
    );
    yield set;
    yield { owner: set.owner, type: Qtype.RRSIG, rdatas };
  }
}

function dsSet(zone: string, signer: ZoneSigner): ZoneSet {
  return { owner: zone, type: Qtype.DS, rdatas: [signer.ds(zone)] };
}

/** A name in a zone that has an address. */
export function hostName(zone: string, host: number): string {
  return `h${host}.${zone}`;
}
