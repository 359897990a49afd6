/** Looks at what every member says of the cluster, all the time, and notes what must never be said. */
import type { SiteNode } from "./cluster_site.ts";
import type { Report } from "./members.ts";

/** Ten looks a second at each member. */
const LOOK_MS = 100;

/** What a member has told, which must not fall: not with a restart either. */
interface Told {
  readonly term: number;
  readonly cluster: string;
  readonly version: number;
}

export class Watch implements AsyncDisposable {
  /** What was seen that must not be, in words. */
  readonly faults: string[] = [];
  looks = 0;
  readonly #told = new Map<string, Told>();
  /** Who leads a term of a cluster, by its own word or another's. */
  readonly #leaders = new Map<string, string>();
  readonly #running: Promise<void>[];
  #isOver = false;

  constructor(nodes: readonly SiteNode[]) {
    this.#running = nodes.map((node) => this.#run(node));
  }

  async #run(node: SiteNode): Promise<void> {
    while (!this.#isOver) {
      const report = await node.report(); // Of one member they come in order.
      if (report !== null) this.#look(node, report);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  #look({ name, site }: SiteNode, report: Report): void {
    this.looks++;
    const { cluster, state, role, term, leader, config: { version }, members } = report;
    const told = this.#told.get(name);
    if (told !== undefined && term < told.term) this.#note(`${name}: term ${told.term} to ${term}`);
    if (told?.cluster === cluster && version < told.version) {
      this.#note(`${name}: version ${told.version} to ${version}`);
    }
    this.#told.set(name, { term, cluster, version });
    if ((role === "primary") !== (state === "leader")) this.#note(`${name}: ${role}, ${state}`);
    if (state === "leader" && leader !== name) this.#note(`${name} leads, and says ${leader} does`);
    const key = `${cluster} ${term}`;
    const other = leader === null ? undefined : this.#leaders.get(key);
    if (other !== undefined && other !== leader) {
      this.#note(`${other} and ${leader} lead term ${term}, says ${name}`);
    }
    if (leader !== null) this.#leaders.set(key, leader);
    if (leader !== null && site.node(leader).isWitness) this.#note(`${leader}, a witness, leads`);
    const voters = members.filter(({ membership }) => membership === "voter");
    if (state === "leader" && voters.length === 2) this.#note(`${name} says there are two voters`);
  }

  #note(fault: string): void {
    this.faults.push(fault);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled(this.#running);
  }
}
