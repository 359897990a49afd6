// Goal: processes form a cluster, take changes through any member, and lose none of them with a member.
// Method: three members on loopback, started as an operator would, killed and started again.
import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { ask } from "./clients.ts";
import { PERMISSIONS, runProgram, svcCommand, until } from "./harness.ts";
import { Members, type Report } from "./members.ts";

const DAMAGED = "the cluster's log is damaged: this node votes no more as the member it was";
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

Deno.test("what is left of two nodes takes over, and the other one joins it", {
  permissions: PERMISSIONS,
}, async (t) => {
  await using members = await Members.make("a", "b");
  const untilReport = async (name: string, what: string, test: (report: Report) => boolean) => {
    await until(`${name}: ${what}`, async () => test(await members.report(name)));
  };
  const isWell = ({ writable, problems, members }: Report) =>
    writable && problems.length === 0 &&
    members.every(({ membership, state }) => membership !== "configured" && state !== "unknown");
  const post = async (name: string, action: string, force = false) => {
    return await members.api(name).call("POST", `cluster/${action}`, { force });
  };

  await t.step("two nodes alone have one voter, and nothing to take over", async () => {
    await members.start("a");
    await members.start("b");
    for (const name of members.names) await untilReport(name, "a whole cluster", isWell);
    const report = await members.report("b");
    assert.deepEqual(report.members.map(({ membership }) => membership), ["voter", "learner"]);
    for (const action of ["promote", "demote"]) {
      const { status, error } = await post("b", action);
      assert.deepEqual([status, error.code], [409, "conflict"], action);
    }
  });

  await t.step(
    "without its voter the configuration is frozen, until the other is promoted",
    async () => {
      const before = await members.report("b");
      await members.kill("a");
      await untilReport("b", "it misses the leader", ({ leader }) => leader === null);
      const after: Report = await post("b", "promote");
      assert.deepEqual([after.state, after.writable], ["leader", true], JSON.stringify(after));
      assert.ok(after.term > before.term && after.config.epoch > before.config.epoch);
      assert.notEqual(after.cluster, before.cluster);
      await members.api("b").create("rules", { rule: "||new.example^" });
    },
  );

  await t.step("the one that comes back says so, and joins once it is demoted", async () => {
    await members.start("a");
    for (const [name, other] of ["ab", "ba"]) {
      const text = `member ${other} is in another cluster`;
      await untilReport(name, text, ({ problems }) => problems.some((one) => one.includes(text)));
    }
    assert.equal((await post("a", "demote")).status, undefined);
    for (const name of members.names) await untilReport(name, "a whole cluster", isWell);
    const { items } = await members.api("a").call("GET", "rules");
    assert.deepEqual(items.map((item: { spec: { rule: string } }) => item.spec.rule), [
      "||new.example^",
    ]);
    const { items: audit } = await members.api("b").call("GET", "audit");
    assert.ok(audit.some(({ action }: { action: string }) => action === "promote"));
  });

  await t.step(
    "a log that was cut is said to be damaged, and its member is added anew",
    async () => {
      await members.kill("a");
      const path = `${members.directory("a")}/store/raft.log`;
      const { size } = await Deno.stat(path);
      await Deno.truncate(path, size - 1);
      await members.start("a");
      assert.equal(members.service("a").count(DAMAGED), 1);
      for (const name of members.names) await untilReport(name, "a whole cluster", isWell);
    },
  );

  await t.step(
    "a password that is changed through one member ends sessions on the other",
    async () => {
      const password = "a long enough password";
      await members.api("a").create("users", { name: "ann", role: "admin", password });
      const call = async (
        name: string,
        method: string,
        path: string,
        cookie: string,
        body?: unknown,
      ) => {
        const response = await fetch(`${members.api(name).base}/${path}`, {
          method,
          headers: { "content-type": "application/json", cookie },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        await response.body?.cancel();
        return response;
      };
      const login = async (name: string) => {
        const { status, headers } = await call(name, "POST", "auth/login", "", {
          name: "ann",
          password,
        });
        assert.equal(status, 200);
        return headers.get("set-cookie")?.split(";")[0] ?? "";
      };
      const cookies = { a: await login("a"), b: await login("b") };
      assert.equal((await call("a", "GET", "auth/me", cookies.a)).status, 200);
      const change = { current: password, password: "another long password" };
      assert.equal((await call("b", "PUT", "auth/password", cookies.b, change)).status, 204);
      await until("the end of the session on a", async () => {
        return (await call("a", "GET", "auth/me", cookies.a)).status === 401;
      });
    },
  );
});
