// Goal: processes form a cluster, take changes through any member, and lose none of them with a member.
// Method: three members on loopback, started as an operator would, killed and started again.
import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask } from "./clients.ts";
import { PERMISSIONS, runProgram, svcCommand, until } from "./harness.ts";
import { Members } from "./members.ts";

const HEALTH = "health.svc.test";

Deno.test("three nodes are one cluster that goes on without any one of them", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using members = await Members.make("a", "b", "c");
  const rules = async (name: string): Promise<string[]> => {
    const { items } = await members.api(name).call("GET", "rules");
    return items.map((item: { id: string; revision: number; updated_at: string }) =>
      `${item.id} ${item.revision} ${item.updated_at}`
    );
  };
  const spec = (n: number) => ({ rule: `||blocked${n}.example^` });
  const others = (name: string) => members.names.filter((other) => other !== name);

  await t.step("they become three voters of the first one's configuration", async () => {
    await Promise.all(members.names.map((name) => members.start(name)));
    assert.equal(await members.whole(), "a");
    const { cluster } = await members.report("a");
    for (const name of members.names) {
      const report = await members.report(name);
      assert.deepEqual([report.cluster, report.leader], [cluster, "a"]);
    }
    assert.ok(members.service("a").count("started a cluster with this node's configuration") === 1);
    const kept = [...Deno.readDirSync(`${members.directory("b")}/store`)].map(({ name }) => name);
    assert.ok(kept.some((name) => /^replaced-.*\.jsonl$/.test(name)), kept.join());
  });

  await t.step("a change through any member holds there at once, and soon everywhere", async () => {
    for (const [n, name] of members.names.entries()) {
      const id = await members.api(name).create("rules", spec(n));
      assert.ok((await rules(name)).some((rule) => rule.startsWith(id)), name);
    }
    const want = await rules("a");
    assert.equal(want.length, 3);
    for (const name of ["b", "c"]) {
      await until(`the rules of ${name}`, async () => (await rules(name)).join() === want.join());
    }
    const { status } = await members.api("b").call("PUT", "rules/ru_0000000000000000", spec(9));
    assert.equal(status, 404);
  });

  await t.step("metrics tell of it", async () => {
    const text = await members.api("a").metrics();
    assert.match(text, /^svc_cluster_state\{state="leader"\} 1$/m);
    assert.match(text, /^svc_cluster_member_lag_entries\{member="b"\} \d+$/m);
    assert.match(
      await members.api("b").metrics(),
      /^svc_cluster_proposals_total\{result="done"\} 1$/m,
    );
  });

  await t.step("the leader is killed: DNS and changes go on, and it comes back", async () => {
    const before = await members.report("b");
    await members.kill("a");
    const { id } = await putUntilTaken(members, "b", spec(10));
    for (const name of others("a")) {
      const report = await members.report(name);
      assert.ok(report.term > before.term && report.leader !== "a", JSON.stringify(report));
      await until(`the rule on ${name}`, async () => (await rules(name)).join().includes(id));
      const { rcode } = await ask(members.service(name).address, HEALTH, Qtype.A);
      assert.equal(rcode, Rcode.NoError);
    }
    await members.start("a");
    await members.whole();
    assert.equal((await rules("a")).join(), (await rules("b")).join());
  });

  await t.step("an orderly stop of the leader hands over", async () => {
    const leader = await members.whole();
    const [other, third] = others(leader);
    const before = await members.report(other);
    await members.stop(leader);
    await until("another leader", async () => {
      const { leader: now } = await members.report(other);
      return now !== null && now !== leader;
    });
    const after = await members.report(third);
    assert.equal(after.term, before.term + 1, "one election, without a wait");
    const member = after.members.find(({ node }) => node === leader);
    assert.deepEqual([member?.state, member?.reachable], ["stopped", false]);

    const file = `${members.directory(leader)}/svc.toml`;
    for (const args of [["import"], ["user", "list"]]) {
      const [command, ...rest] = svcCommand([...args, "--config", file]);
      const { code, stderr } = await runProgram(command, ...rest);
      assert.deepEqual([code, /cluster/.test(stderr)], [1, true], `${args}: ${stderr}`);
    }
    await members.start(leader);
    await members.whole();
  });

  await t.step("alone, a member refuses changes with the reason and still answers", async () => {
    const leader = await members.whole();
    const [other, third] = others(leader);
    await members.kill(leader);
    await members.kill(other);
    const { status, error } = await members.api(third).call("POST", "rules", spec(20));
    assert.deepEqual([status, error.code], [503, "unavailable"]);
    assert.match(error.message, /no leader can be reached/);
    const { rcode } = await ask(members.service(third).address, HEALTH, Qtype.A);
    assert.equal(rcode, Rcode.NoError);
    await members.start(leader);
    await members.start(other);
    await members.whole();
    for (const name of members.names) members.service(name).assertCalm();
  });
});

/** A rule through a member that may not know of a leader yet. */
async function putUntilTaken(
  members: Members,
  name: string,
  spec: unknown,
): Promise<{ id: string }> {
  let taken: { id?: string } = {};
  await until("a change through what is left", async () => {
    taken = await members.api(name).call("POST", "rules", spec);
    return taken.id !== undefined;
  });
  return { id: taken.id ?? "" };
}
