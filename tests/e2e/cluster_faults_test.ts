// Goal: a cluster loses no answered change and no DNS query, whatever becomes of its members and of
// what lies between them. Method: real processes in namespaces; clients change one rule through every
// member while faults come and go, and what each member says of the cluster is watched; at the end the
// changes must have an order, and be there everywhere.
// `SVC_CLUSTER_ROUNDS=20` adds a cluster of three nodes, and so many rounds of faults drawn by chance
// (`SVC_CLUSTER_SEED` repeats them); the default is none.
import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { Prng } from "../prng.ts";
import { ask } from "./clients.ts";
import { Probe, Site, type SiteNode } from "./cluster_site.ts";
import { FakeClock, FAKETIME_LIBRARY } from "./fake_clock.ts";
import { hasProgram, pause, PERMISSIONS, runProgram, until } from "./harness.ts";
import { type Change, findFault, type Register } from "./linearizable.ts";
import { Watch } from "./cluster_watch.ts";
import { HAS_NAMESPACES } from "./network.ts";

const ROUNDS = Number(Deno.env.get("SVC_CLUSTER_ROUNDS") ?? 0);
const SEED = Number(Deno.env.get("SVC_CLUSTER_SEED") ?? Date.now() % 1_000_000);
/** Between two changes of one client. */
const CHANGE_MS = 40;
/** Room for a member's store, and little more. */
const DISK_BYTES = 48 << 20;
const RULE = "||changed.example^";
const ready = {
  permissions: PERMISSIONS,
  ignore: !HAS_NAMESPACES || !hasProgram("iptables"),
};

/** Clients, one at each member, who change one rule by its revision. */
class Clients implements AsyncDisposable {
  readonly changes: Change[] = [];
  readonly #running: Promise<void>[];
  #isOver = false;
  #count = 0;

  private constructor(
    readonly site: Site,
    readonly path: string,
    readonly first: Register,
  ) {
    this.#running = site.servers.map((node) => this.#run(node));
  }

  static async start(site: Site): Promise<Clients> {
    const { status, json } = await site.servers[0].request("POST", "rules", {
      rule: RULE,
      comment: "first",
    });
    assert.equal(status, 201, JSON.stringify(json));
    const first = { revision: json.revision, value: "first" };
    return new Clients(site, `rules/${json.id}`, first);
  }

  async #run(node: SiteNode): Promise<void> {
    let known = this.first.revision;
    while (!this.#isOver) {
      const read = await node.request("GET", this.path);
      if (read.status === 200) {
        // A member never goes back behind what it has shown.
        assert.ok(read.json.revision >= known, `${node.name}: ${read.json.revision} < ${known}`);
        known = read.json.revision;
        known = await this.#change(node, known) ?? known;
      }
      await pause(CHANGE_MS);
    }
  }

  /** The revision that it was answered, after which the member has it. */
  async #change(node: SiteNode, ifMatch: number): Promise<number | null> {
    const value = `${node.name}-${this.#count++}`;
    const calledAt = performance.now();
    const { status, json } = await node.request(
      "PUT",
      this.path,
      { rule: RULE, comment: value },
      { "if-match": `${ifMatch}` },
    );
    const answeredAt = performance.now();
    const told = { calledAt, answeredAt, ifMatch, value };
    if (status === 200) {
      this.changes.push({ ...told, outcome: { kind: "done", revision: json.revision } });
      return json.revision;
    }
    if (status === 412) this.changes.push({ ...told, outcome: { kind: "mismatch" } });
    else {
      assert.ok(status === 0 || status === 503, `${node.name}: ${status} ${JSON.stringify(json)}`);
      this.changes.push({ ...told, answeredAt: Infinity, outcome: { kind: "unknown" } });
    }
    return null;
  }

  /** Changes that were answered so far. */
  get done(): number {
    return this.changes.filter(({ outcome }) => outcome.kind === "done").length;
  }

  /** Until some more changes are answered. */
  async goOn(): Promise<void> {
    const wanted = this.done + 5;
    await until(`${wanted} changes`, () => this.done >= wanted);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled(this.#running);
  }
}

/** Everything is well again: the same everywhere, in an order, and no query was lost. */
async function check(
  site: Site,
  clients: Clients,
  probes: Map<SiteNode, Probe>,
  watch: Watch,
): Promise<void> {
  await clients.stop();
  await site.whole();
  const all = await Promise.all(site.servers.map(async (node) => {
    const reads = ["rules", "lists", "groups", "settings", "users"];
    const answers = await Promise.all(reads.map((path) => node.request("GET", path)));
    return JSON.stringify(answers, (key, value) => key === "status" ? undefined : value);
  }));
  for (const one of all) assert.equal(one, all[0]);
  const { json } = await site.servers[0].request("GET", clients.path);
  const last = { revision: json.revision, value: json.spec.comment };
  assert.equal(findFault(clients.changes, clients.first, last), null);
  assert.deepEqual(watch.faults, []);
  assert.ok(watch.looks > 0);
  for (const [node, probe] of probes) {
    await probe.settle();
    assert.deepEqual([probe.lost, probe.asked > 0], [0, true], `${node.name}, of ${probe.asked}`);
  }
}

/** Runs `work` with clients and probes, and checks what came of it. */
async function underChanges(
  site: Site,
  t: Deno.TestContext,
  work: (clients: Clients, probes: Map<SiteNode, Probe>) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const probes = new Map<SiteNode, Probe>();
  for (const node of site.servers) probes.set(node, stack.use(new Probe(node)));
  const watch = stack.use(new Watch(site.servers));
  const clients = stack.use(await Clients.start(site));
  await clients.goOn();
  await work(clients, probes);
  await t.step("no answered change is lost, and no query", async () => {
    await check(site, clients, probes, watch);
  });
}

/** A disk of its own for a member, of so many bytes; `false` where that is not permitted. */
async function mountDisk(node: SiteNode, bytes: number): Promise<boolean> {
  await Deno.mkdir(node.directory, { recursive: true });
  const options = ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", node.directory];
  return (await runProgram("mount", ...options)).code === 0;
}

for (
  const [names, isLong] of [[["node1", "node2", "witness"], false], [
    ["node1", "node2", "node3"],
    true,
  ]] as const
) {
  Deno.test(`${names.join(", ")} go on without any one of them`, {
    ...ready,
    ignore: ready.ignore || (isLong && ROUNDS === 0),
  }, async (t) => {
    await using site = await Site.make(...names);
    const [first, second, third] = site.nodes;
    const hasDisk = await mountDisk(first, DISK_BYTES);
    const clock = FAKETIME_LIBRARY === null
      ? null
      : await FakeClock.make(`${site.directory}/clock`, "+0d");
    await Promise.all([
      first.start(),
      second.start({ prefix: clock?.prefix ?? [] }),
      third.start(),
    ]);
    await site.whole();
    const leading = async () => {
      const leader = await site.whole();
      const others = site.servers.filter((one) => one !== leader);
      return { leader, others, next: () => site.newLeader(leader, others) };
    };
    const counted = async (node: SiteNode) => {
      const { json } = await node.request("GET", "stats?hours=2&scope=cluster");
      return { total: json.total, nodes: json.nodes, unreachable: json.unreachable };
    };
    await t.step("statistics of the whole cluster are the sum of its members'", async () => {
      const record = { name: "counted.example", type: "A", value: "192.0.2.1" };
      assert.equal((await first.request("POST", "records", record)).status, 201);
      await site.whole(); // It holds everywhere.
      for (const node of site.servers) await ask(node.dns, "counted.example", Qtype.A);
      await ask(second.dns, "counted.example", Qtype.A);
      const nodes = site.servers.map(({ name }) => name);
      for (const [i, node] of site.servers.entries()) {
        const want = [node.name, ...nodes.toSpliced(i, 1)];
        const total = nodes.length + 1;
        await until("all are counted", async () => (await counted(node)).total === total);
        assert.deepEqual(await counted(node), { total, nodes: want, unreachable: [] });
      }
    });
    await underChanges(site, t, async (clients, probes) => {
      await t.step("the leader is killed, and each voter logs who leads", async () => {
        const { leader, next } = await leading();
        probes.get(leader)?.pause();
        const skip = third.witness?.logs.length ?? 0;
        await leader.kill();
        const now = await next();
        await clients.goOn();
        await third.witness?.logged("leader changed", { leader: now.name }, skip);
        await leader.start(leader === second ? { prefix: clock?.prefix ?? [] } : {});
        probes.get(leader)?.resume();
      });
      await t.step("the leader is cut off: it says so, and the others go on", async () => {
        const { leader, next } = await leading();
        await leader.cut("both", site.others(leader));
        await next();
        await clients.goOn();
        await until("the one that is cut off says so", async () => {
          const report = await leader.report();
          return report !== null && report.state !== "leader" && !report.writable &&
            report.problems.length > 0;
        });
        const { nodes, unreachable } = await counted(leader);
        const others = site.servers.filter((one) => one !== leader).map(({ name }) => name);
        assert.deepEqual([nodes, unreachable], [[leader.name], others]);
        await leader.heal();
      });
      await t.step("the leader hears nobody, and is heard", async () => {
        const { leader, next } = await leading();
        await leader.cut("in", site.others(leader));
        await next();
        await clients.goOn();
        await leader.heal();
      });
      await t.step("the leader stands still, and goes on", async () => {
        const { leader, next } = await leading();
        probes.get(leader)?.pause();
        leader.signal("SIGSTOP");
        await next();
        await clients.goOn();
        leader.signal("SIGCONT");
        await site.whole();
        probes.get(leader)?.resume();
      });
      await t.step("the third is killed", async () => {
        probes.get(third)?.pause();
        await third.kill();
        await clients.goOn();
        await third.start();
        probes.get(third)?.resume();
        await site.whole();
      });
      await t.step("a fifth of all packets is lost", async () => {
        for (const node of site.nodes) await node.lose(0.2);
        await clients.goOn();
        for (const node of site.nodes) await node.heal();
        await site.whole();
      });
      await t.step({
        name: "a clock jumps by a year, there and back",
        ignore: clock === null,
        fn: async () => {
          for (const offset of ["+400d", "-400d", "+0d"]) {
            await clock?.set(offset);
            await clients.goOn();
          }
          await site.whole();
        },
      });
      await t.step({
        name: "a full disk: the member steps back and says so, and takes part once there is room",
        ignore: !hasDisk,
        fn: async () => {
          await site.whole();
          await runProgram("sh", "-c", `cat /dev/zero > ${first.directory}/ballast`);
          await until("it says so", async () => {
            const report = await first.report();
            return report !== null && report.state !== "leader" &&
              report.problems.some((problem) => /disk|space|full/i.test(problem));
          });
          await clients.goOn();
          await Deno.remove(`${first.directory}/ballast`);
          await site.whole();
        },
      });
    });
    await t.step({
      name: "a witness never led, and listens on its channel alone",
      ignore: !third.isWitness,
      fn: async () => {
        const text = await third.exec("cat", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp");
        const listening = text.split("\n").filter((line) => / 0A | 07 /.test(line));
        assert.equal(listening.length, 1, text);
        assert.match(listening[0], /:1F76 /); // 8054.
        for (const node of site.servers) {
          assert.equal(node.service?.logs.some(({ leader }) => leader === third.name), false);
        }
      },
    });
  });
}

Deno.test("faults by chance lose nothing", {
  ...ready,
  ignore: ready.ignore || ROUNDS === 0,
}, async (t) => {
  const prng = new Prng(SEED);
  console.log(`SVC_CLUSTER_SEED=${SEED}`);
  await using site = await Site.make("node1", "node2", "node3");
  await Promise.all(site.nodes.map((node) => node.start()));
  await site.whole();
  await underChanges(site, t, async (clients, probes) => {
    for (let round = 0; round < ROUNDS; round++) {
      const node = site.nodes[prng.int(site.nodes.length)];
      const probe = probes.get(node);
      const kind = (["kill", "stop", "both", "in", "out", "lose"] as const)[prng.int(6)];
      await t.step(`${round}: ${kind} ${node.name}`, async () => {
        if (kind === "kill" || kind === "stop") probe?.pause();
        if (kind === "kill") await node.kill();
        else if (kind === "stop") node.signal("SIGSTOP");
        else if (kind === "lose") await node.lose(0.3);
        else await node.cut(kind, site.others(node));
        await pause(500 + prng.int(4_000));
        await clients.goOn();
        if (kind === "kill") await node.start();
        else if (kind === "stop") node.signal("SIGCONT");
        else await node.heal();
        await site.whole();
        probe?.resume();
      });
    }
  });
});
