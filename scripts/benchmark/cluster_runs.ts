/**
 * What a cluster costs and how long it is without a leader: two nodes and a witness in namespaces,
 * beside a node that is in none. Changes go through a node's API, one after another and side by side;
 * what holds is asked of its DNS; the leader is killed, and cut off, again and again.
 */
import { encodeQuery, Qtype } from "../../src/dns/mod.ts";
import { Site, type SiteNode } from "../../tests/e2e/cluster_site.ts";
import { pause, runProgram, until } from "../../tests/e2e/harness.ts";
import { BenchError } from "./bench_error.ts";
import { readMemory } from "./processes.ts";

/** Changes one after another, and side by side, through each node and in each round. */
const CHANGES = 200;
const SIDE_BY_SIDE = 16;
/** Changes whose effect on the other node is waited for, in each round. */
const EFFECTS = 100;
/** Between two looks at whether a change holds. */
const LOOK_MS = 1;
/** A witness gives memory back now and then. */
const WITNESS_REST_MS = 35_000;
const RECORD = "changed.example";
const DNS_PORT = 1053;

/** Where changes are sent. */
export const PLACES = ["alone", "leader", "follower"] as const;
export type Place = typeof PLACES[number];

export interface ClusterResults {
  readonly writes: Readonly<
    Record<Place, {
      /** Durable changes a second, side by side, by round. */
      readonly rates: number[];
      /** Of each of those one after another, in milliseconds. */
      readonly tookMs: number[];
    }>
  >;
  /** From the answer of a change through one node to its effect on the other, in milliseconds. */
  readonly effectMs: number[];
  /** From a fault to the first change that is answered. */
  readonly killedMs: number[];
  readonly cutOffMs: number[];
  /** Queries a second, by round. */
  readonly queries: { readonly alone: number[]; readonly member: number[] };
  readonly witnessBytes: number;
}

export interface ClusterPlan {
  readonly rounds: number;
  readonly seconds: number;
  /** How often the leader is lost in each way. */
  readonly failovers: number;
  readonly progress: (text: string) => void;
}

async function must(node: SiteNode, method: string, path: string, body?: unknown) {
  const { status, json } = await node.request(method, path, body);
  if (status >= 200 && status < 300) return json;
  throw new BenchError(`${node.name}: ${method} ${path}: ${status} ${JSON.stringify(json)}`);
}

/** A record that is changed, and its values. */
class ChangedRecord {
  #count = 0;
  private constructor(readonly path: string) {}

  static async make(node: SiteNode): Promise<ChangedRecord> {
    const json = await must(node, "POST", "records", ChangedRecord.#spec("192.0.2.1"));
    return new ChangedRecord(`records/${json.id}`);
  }

  static #spec(value: string) {
    return { name: RECORD, type: "A", value, ttl: 1 };
  }

  /** Changes it; the address that it then has. */
  async change(node: SiteNode): Promise<Uint8Array> {
    const number = ++this.#count;
    const bytes = new Uint8Array([198, 18, number >> 8 & 255, number & 255]);
    await must(node, "PUT", this.path, ChangedRecord.#spec(bytes.join(".")));
    return bytes;
  }
}

async function measureWrites(node: SiteNode, writes: ClusterResults["writes"][Place]) {
  const record = await ChangedRecord.make(node);
  for (let i = 0; i < CHANGES; i++) {
    const startedMs = performance.now();
    await record.change(node);
    writes.tookMs.push(performance.now() - startedMs);
  }
  let left = CHANGES;
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, async () => {
    while (left-- > 0) await record.change(node);
  }));
  writes.rates.push(CHANGES / ((performance.now() - startedMs) / 1_000));
  await must(node, "DELETE", record.path);
}

/** Asks a node for the record until it has the address. */
async function holds(node: SiteNode, address: Uint8Array): Promise<void> {
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "0.0.0.0", port: 0 });
  const to = { transport: "udp", hostname: node.wire, port: DNS_PORT } as const;
  const packet = encodeQuery(RECORD, Qtype.A, { id: 1 });
  const timer = setInterval(() => void socket.send(packet, to).catch(() => {}), LOOK_MS);
  try {
    for (;;) {
      const [answer] = await socket.receive();
      // The address is the end of the answer, or stands before the OPT record: it is found anywhere.
      const found = answer.some((_, i) => address.every((byte, j) => answer[i + j] === byte));
      if (found) return;
    }
  } finally {
    clearInterval(timer);
    socket.close();
  }
}

async function measureEffects(from: SiteNode, to: SiteNode, effectMs: number[]): Promise<void> {
  const record = await ChangedRecord.make(from);
  for (let i = 0; i < EFFECTS; i++) {
    const address = await record.change(from);
    const answeredMs = performance.now();
    await holds(to, address);
    effectMs.push(performance.now() - answeredMs);
  }
  await must(from, "DELETE", record.path);
}

/** Time until a change through what is left is answered. */
async function outage(node: SiteNode, happen: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await happen();
  await until("a change through what is left", async () => {
    const { status } = await node.request("POST", "rules", { rule: "||outage.example^" });
    return status === 201;
  });
  return performance.now() - startedMs;
}

async function measureQueries(node: SiteNode, seconds: number): Promise<number> {
  const file = `${node.site.directory}/queries.txt`;
  await Deno.writeTextFile(file, "health.svc.test A\n");
  const args = ["-s", node.wire, "-p", `${DNS_PORT}`, "-d", file, "-l", `${seconds}`, "-T", "1"];
  const { stdout, stderr } = await runProgram("dnsperf", ...args);
  const rate = /Queries per second:\s+([\d.]+)/.exec(stdout)?.[1];
  if (rate === undefined) throw new BenchError(`dnsperf: ${stderr}`);
  return Number(rate);
}

/** Starts a site, measures it and takes it down. */
export async function measureCluster(plan: ClusterPlan): Promise<ClusterResults> {
  const { rounds, seconds, failovers, progress } = plan;
  const results = {
    writes: Object.fromEntries(
      PLACES.map((place) => [place, { rates: [], tookMs: [] }]),
    ) as unknown as ClusterResults["writes"],
    effectMs: [] as number[],
    killedMs: [] as number[],
    cutOffMs: [] as number[],
    queries: { alone: [] as number[], member: [] as number[] },
  };
  await using apart = await Site.make("alone");
  await using site = await Site.make("node1", "node2", "witness");
  const [alone] = apart.nodes;
  await Promise.all([alone.start({ isAlone: true }), ...site.nodes.map((node) => node.start())]);
  const follower = (leader: SiteNode) => site.servers.find((node) => node !== leader) ?? leader;
  for (let round = 1; round <= rounds; round++) {
    const leader = await site.whole();
    progress(`round ${round} of ${rounds}: changes`);
    await measureWrites(alone, results.writes.alone);
    await measureWrites(leader, results.writes.leader);
    await measureWrites(follower(leader), results.writes.follower);
    progress(`round ${round} of ${rounds}: their effect, and queries`);
    await measureEffects(leader, follower(leader), results.effectMs);
    results.queries.alone.push(await measureQueries(alone, seconds));
    results.queries.member.push(await measureQueries(leader, seconds));
  }
  for (let i = 1; i <= failovers; i++) {
    const leader = await site.whole();
    results.killedMs.push(await outage(follower(leader), () => leader.kill()));
    await leader.start();
    const next = await site.whole();
    results.cutOffMs.push(
      await outage(follower(next), () => next.cut("both", site.others(next))),
    );
    await next.heal();
    const [killed, cut] = [results.killedMs, results.cutOffMs].map((all) => all[i - 1].toFixed(0));
    progress(`failover ${i} of ${failovers}: killed ${killed} ms, cut off ${cut} ms`);
  }
  await site.whole();
  await pause(WITNESS_REST_MS);
  const witnessBytes = readMemory(site.node("witness").pid)?.residentBytes ?? NaN;
  return { ...results, witnessBytes };
}
