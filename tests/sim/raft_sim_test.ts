// Goal: no run of faults makes two leaders of one term or loses a committed entry, and once the
// faults end the cluster goes on. Method: the real raft, on a clock, network and disks drawn from
// one seed. `-- --seeds=N` runs more of them; `SVC_SEED=N` sets the first, which is printed.
import { Prng, seedFromEnv } from "../prng.ts";
import { optionOf } from "./options.ts";
import { Sim, type SimOptions } from "./sim.ts";

const SEEDS = optionOf("seeds", 300);
const TICKS = 1_200;

const TOPOLOGIES: readonly Omit<SimOptions, "seed">[] = [
  { voters: ["a", "b", "c"] },
  { voters: ["a", "b", "w"], witnesses: ["w"] },
  { voters: ["a", "b", "c", "d", "e"] },
  { voters: ["a", "b", "c", "w"], witnesses: ["w"] },
  { voters: ["a"], waiting: ["b", "c"] },
  { voters: ["a"], waiting: ["b", "w"], witnesses: ["w"] },
];

/** Faults and changes of every kind, as often as the seed has it. */
function simulate(seed: number): void {
  const prng = new Prng(seed);
  const topology = prng.pick(TOPOLOGIES);
  const sim = new Sim({
    ...topology,
    seed: prng.next(),
    lossRatio: prng.pick([0, 0.02, 0.1, 0.25]),
    duplicateRatio: prng.pick([0, 0.05, 0.2]),
    delayTicksMax: prng.pick([1, 4, 8, 20]),
    slowDiskRatio: prng.pick([0, 0.05, 0.3]),
  });
  const changesMembers = prng.chance(0.5);
  // An only voter that lost entries votes no more, and there is no cluster without it.
  const damages = !changesMembers && topology.voters.length > 2;
  const harm = prng.pick([0.3, 1, 3]);
  sim.run(TICKS, () => {
    const node = prng.pick(sim.nodes.filter(({ isGone }) => !isGone));
    if (prng.chance(0.2)) { for (const live of sim.live) sim.propose(live); }
    if (prng.chance(0.05)) { for (const live of sim.live) sim.read(live); }
    if (prng.chance(0.01 * harm)) sim.crash(node);
    if (damages && prng.chance(0.001 * harm)) sim.damage(node);
    if (prng.chance(0.05)) sim.restart(node);
    if (prng.chance(0.005 * harm)) {
      const some = sim.nodes.filter(() => prng.chance(0.4)).map(({ id }) => id);
      sim.partition(some, prng.chance(0.3));
    }
    if (prng.chance(0.02)) sim.mend();
    if (prng.chance(0.002 * harm)) sim.fillDisk(node, 1 + prng.int(60));
    if (prng.chance(0.003)) sim.enqueue(node, { type: "transferLeadership", to: node.id });
    if (prng.chance(0.005)) {
      const { leader } = sim;
      if (leader) sim.enqueue(leader, { type: "transferLeadership", to: node.id });
    }
    if (!changesMembers) return;
    if (prng.chance(0.05)) sim.tendMembers();
    if (prng.chance(0.004)) sim.removeMember(node.id);
    if (sim.hasLeft(node)) sim.replace(node);
  });
  sim.heal(3_000);
}

Deno.test(`raft is safe under faults, and goes on after them`, () => {
  const first = Deno.env.has("SVC_SEED") ? seedFromEnv() : 1;
  for (let seed = first; seed < first + SEEDS; seed++) {
    try {
      simulate(seed);
    } catch (error) {
      throw new Error(`SVC_SEED=${seed} -- --seeds=1`, { cause: error });
    }
  }
  console.log(`${SEEDS} seeds from ${first}`);
});
