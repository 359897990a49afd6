// Goal: members of a cluster are upgraded one after another, and who changes something notices a short
// wait at most. Method: SIGUSR2 to real members while clients make changes through each of them and
// knock at the port of the channel; and a program that fails with everything in its hands.
import assert from "node:assert/strict";
import { pause, PERMISSIONS, PROGRAM } from "./harness.ts";
import { Members } from "./members.ts";

/** Between two changes of one client, and between two knocks. */
const AGAIN_MS = 10;

/** Makes changes through a member, one after another, until it is told to end. */
class Client {
  /** IDs of the rules that it was answered. */
  readonly made: string[] = [];
  readonly refused: number[] = [];
  longestMs = 0;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(readonly base: string, readonly name: string) {
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    for (let i = 0; !this.#isOver; i++) {
      const sentAtMs = performance.now();
      const response = await fetch(`${this.base}/rules`, {
        method: "POST",
        headers: { "content-type": "application/json", connection: "close" },
        body: JSON.stringify({ rule: `||${this.name}${i}.example^` }),
      });
      const json = await response.json();
      this.longestMs = Math.max(this.longestMs, performance.now() - sentAtMs);
      if (response.status === 201) this.made.push(json.id);
      else this.refused.push(response.status);
      await pause(AGAIN_MS);
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }
}

/** Connects to a port again and again; what came of those that failed. */
async function knock(port: number, isOver: () => boolean): Promise<string[]> {
  const failures: string[] = [];
  while (!isOver()) {
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    } catch (error) {
      failures.push(String(error));
    }
    await pause(AGAIN_MS);
  }
  return failures;
}

Deno.test("members are upgraded while their cluster is used", {
  permissions: PERMISSIONS,
  // The one that fails is run from the checkout.
  ignore: Deno.build.os !== "linux" || PROGRAM !== undefined,
}, async (t) => {
  await using members = await Members.make("a", "b", "c");
  const rules = async (name: string): Promise<Set<string>> => {
    const { items } = await members.api(name).call("GET", "rules");
    return new Set(items.map(({ id }: { id: string }) => id));
  };
  const termOf = async (name: string) => (await members.report(name)).term;
  await Promise.all([
    members.start("a", { main: "tests/e2e/failing_upgrade.ts" }),
    members.start("b"),
    members.start("c"),
  ]);
  assert.equal(await members.whole(), "a");

  await t.step("one whose next program fails takes part again by itself", async () => {
    const before = await termOf("a");
    members.service("a").kill("SIGUSR2");
    const { error } = await members.service("a").logged("not upgraded, this program goes on");
    assert.match(String(error), /thrown by the test/);
    const leader = await members.whole();
    assert.notEqual(leader, "a", "somebody else leads since it was to be replaced");
    assert.equal(await termOf("a"), before + 1, "one election, without a wait");
    const id = await members.api("a").create("rules", { rule: "||again.example^" });
    await members.whole();
    for (const name of members.names) assert.ok((await rules(name)).has(id), name);
  });

  await t.step("a leader is replaced, and no answered change is lost", async () => {
    const leader = await members.whole();
    const before = await termOf(leader);
    const clients = members.names.map((name) => new Client(members.api(name).base, name));
    let isOver = false;
    const knocked = knock(members.port(leader), () => isOver);
    await members.service(leader).upgrade();
    await Promise.all(clients.map((client) => client.end()));
    const after = await members.whole();
    isOver = true;
    assert.notEqual(after, leader);
    assert.equal(await termOf(leader), before + 1, "one election, without a wait");
    assert.deepEqual(await knocked, [], "its port is never closed");
    const all = await Promise.all(members.names.map(rules));
    for (const { name, made, refused, longestMs } of clients) {
      assert.ok(made.length > 0, name);
      for (const [i, has] of all.entries()) {
        assert.deepEqual(made.filter((id) => !has.has(id)), [], `${name}, at ${members.names[i]}`);
      }
      assert.ok(refused.every((status) => status === 503), `${name}: ${refused}`);
      const whose = name === leader ? "the one that is replaced" : "another";
      console.log(
        `through ${whose}: ${made.length} changes, ${refused.length} refused, ` +
          `the longest took ${Math.round(longestMs)} ms`,
      );
    }
    for (const name of ["b", "c"]) members.service(name).assertCalm();
  });
});
