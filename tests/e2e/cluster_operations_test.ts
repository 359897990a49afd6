// Goal: what the README tells an operator to do to a cluster does what it says: an upgrade of one member
// after another, a member that is taken out, a takeover by force. Method: members as processes; a newer
// release is this one with another version.
import assert from "node:assert/strict";
import { Qtype, Rcode } from "../../src/dns/mod.ts";
import { VERSION } from "../../src/version.ts";
import { ask } from "./clients.ts";
import {
  type ConfigText,
  PERMISSIONS,
  PROGRAM,
  ROOT,
  sideBySide,
  until,
  WAIT_MS_MAX,
} from "./harness.ts";
import { Members, type Report } from "./members.ts";

const NEXT_VERSION = "99.0.0";
let rules = 0;

/** What has Deno run the next release: every module of this one but that of its version. */
async function nextRelease(directory: string): Promise<string[]> {
  const config = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`));
  const [version, map] = [`${directory}/version.ts`, `${directory}/imports.json`];
  const text = await Deno.readTextFile(`${ROOT}src/version.ts`);
  await Deno.writeTextFile(version, text.replace(`"${VERSION}"`, `"${NEXT_VERSION}"`));
  const imports = { ...config.imports, [`file://${ROOT}src/version.ts`]: `file://${version}` };
  await Deno.writeTextFile(map, JSON.stringify({ imports }));
  // The command that follows begins with Deno and `run`.
  return ["sh", "-c", 'deno=$1; map=$0; shift 2; exec "$deno" run --import-map="$map" "$@"', map];
}

/** The tables of two nodes, as they were before there were clusters of three. */
function earlierConfig(members: Members, name: string): ConfigText {
  const { node, listen, ca, cert, key } = members.config(name).cluster as Record<string, string>;
  const [other] = members.names.filter((one) => one !== name);
  const role = name === members.names[0] ? "primary" : "replica";
  return {
    cluster: { node, role, listen, ca, cert, key },
    "cluster.peer": { node: other, address: `127.0.0.1:${members.port(other)}` },
  };
}

const memberships = ({ members }: Report) =>
  members.map(({ node, membership, state }) => `${node} ${membership} ${state}`);

async function untilReport(
  members: Members,
  name: string,
  what: string,
  test: (report: Report) => boolean,
): Promise<Report> {
  let report = await members.report(name);
  try {
    await until(
      `${name}: ${what}`,
      async () => test(report = await members.report(name)),
      2 * WAIT_MS_MAX,
    );
  } catch (error) {
    throw new Error(JSON.stringify(report, null, 1), { cause: error });
  }
  return report;
}

/** The status of a change through a member, and its ID or the message of a refusal. */
async function change(members: Members, name: string): Promise<readonly [number, string]> {
  const spec = { rule: `||blocked${++rules}.example^` };
  const { id, status, error } = await members.api(name).call("POST", "rules", spec);
  return id === undefined ? [status, error.message] : [201, id];
}

async function answers(members: Members, name: string): Promise<void> {
  const { rcode } = await ask(members.service(name).address, "health.svc.test", Qtype.A);
  assert.equal(rcode, Rcode.NoError, name);
}

async function upgrade(t: Deno.TestContext): Promise<void> {
  await using members = await Members.make("a", "b");
  const start = async (name: string, isNext: boolean) => {
    await members.start(name, {
      config: earlierConfig(members, name),
      // In its own directory: what else there is a service may not read.
      ...(isNext && { prefix: await nextRelease(members.directory(name)) }),
    });
  };
  const isWell = (report: Report) => {
    return report.writable && report.problems.length === 0 &&
      memberships(report).join() === "a voter leader,b learner learner";
  };

  let [status, first] = [0, ""];

  await t.step("the primary starts the cluster and votes alone, the replica is added", async () => {
    await start("a", false);
    await start("b", false);
    const [a, b] = await Promise.all(
      members.names.map((name) => untilReport(members, name, "a whole cluster", isWell)),
    );
    assert.deepEqual([a.peer?.node, a.peer?.role], ["b", "replica"]);
    assert.deepEqual([b.peer?.node, b.peer?.role], ["a", "primary"]);
    [status, first] = await change(members, "b");
    assert.equal(status, 201);
  });

  await t.step(
    "while versions differ changes are refused through each, and it is said",
    async () => {
      await members.stop("b");
      await start("b", true);
      for (const name of members.names) {
        const [runs, other] = name === "b" ? [VERSION, "a"] : [NEXT_VERSION, "b"];
        await untilReport(
          members,
          name,
          "it says so",
          ({ problems, writable }) =>
            !writable && problems.some((one) => one.includes(`${other} runs version ${runs}`)),
        );
        const [status, message] = await change(members, name);
        assert.equal(status, 503, name);
        assert.match(message, /changes are refused while members differ in version: /, name);
        await answers(members, name);
      }
    },
  );

  await t.step("once all run the same, changes are made, and none was lost", async () => {
    await members.stop("a");
    await answers(members, "b");
    await start("a", true);
    for (const name of members.names) await untilReport(members, name, "a whole cluster", isWell);
    const [status, last] = await change(members, "b");
    assert.equal(status, 201);
    const shown = async () => {
      const { items } = await members.api("a").call("GET", "rules");
      return items.map(({ id }: { id: string }) => id);
    };
    await until("the change on the other", async () => (await shown()).includes(last));
    assert.deepEqual(await shown(), [first, last], "and none that was refused");
    assert.equal((await members.api("a").call("GET", "status")).version, NEXT_VERSION);
  });
}

async function removeAndTakeOver(t: Deno.TestContext): Promise<void> {
  await using members = await Members.make("a", "b", "c");
  const call = async (name: string, method: string, path: string, body?: unknown) =>
    await members.api(name).call(method, `cluster/${path}`, body);

  await t.step("unknown members and whole clusters are left alone", async () => {
    await Promise.all(members.names.map((name) => members.start(name)));
    await members.whole(2 * WAIT_MS_MAX);
    const unknown = await call("b", "DELETE", "members/x");
    assert.deepEqual([unknown.status, unknown.error.code], [404, "not_found"]);
    for (const action of ["promote", "demote"]) {
      const { status, error } = await call("b", "POST", action);
      assert.deepEqual([status, error.code], [409, "conflict"], action);
    }
  });

  await t.step(
    "out of the files, members restarted one at a time, then out of the cluster",
    async () => {
      await members.stop("c");
      // As an operator edits them.
      const without = (name: string): ConfigText => {
        const { cluster } = members.config(name) as { cluster: { member: { node: string }[] } };
        const member = cluster.member.filter(({ node }) => node !== "c");
        return { cluster: { ...cluster, member } } as ConfigText;
      };
      for (const name of ["b", "a"]) {
        await members.stop(name);
        await members.start(name, { config: without(name) });
        await untilReport(members, name, "a leader", ({ leader }) => leader !== null);
      }
      const leader = (await members.report("a")).leader ?? "";
      const [other] = ["a", "b"].filter((name) => name !== leader);
      await until("the removal through the one that follows", async () => {
        // An election may be under way: then it is refused, and asked for again.
        const removed = await call(other, "DELETE", "members/c");
        assert.ok(removed?.status === undefined || removed.status === 503, JSON.stringify(removed));
        return removed?.status === undefined;
      });
      const report = await untilReport(members, other, "two members", (report) => {
        return report.problems.length === 0 && report.members.length === 2;
      });
      const voters = report.members.filter(({ membership }) => membership === "voter");
      assert.equal(voters.length, 1, "two would remain: the leader votes alone");
      for (const name of ["a", "b"]) assert.equal((await change(members, name))[0], 201, name);
    },
  );

  await t.step("the removed member says so, disturbs nothing, and takes no changes", async () => {
    const { term } = await members.report("a");
    await members.start("c");
    await untilReport(
      members,
      "c",
      "it is alone",
      ({ writable, problems }) => !writable && problems.length > 0,
    );
    assert.equal((await change(members, "c"))[0], 503);
    await answers(members, "c");
    assert.equal((await members.report("a")).term, term);
    await members.stop("c");
  });

  await t.step("by force a node leaves a cluster that is whole, and starts its own", async () => {
    const { leader, cluster } = await members.report("a");
    const [other] = ["a", "b"].filter((name) => name !== leader);
    assert.equal((await call(other, "POST", "promote", { force: false })).status, 409);
    const promoted: Report = await call(other, "POST", "promote", { force: true });
    assert.deepEqual([promoted.state, promoted.writable], ["leader", true]);
    assert.notEqual(promoted.cluster, cluster);
    for (const name of ["a", "b"]) {
      await untilReport(
        members,
        name,
        "two clusters",
        ({ problems }) => problems.some((one) => one.includes("is in another cluster")),
      );
    }
    const demoted: Report = await call(other, "POST", "demote", { force: true });
    assert.equal(demoted.cluster, "");
    await untilReport(
      members,
      other,
      "it is added again",
      (report) => report.cluster === cluster && report.writable && report.problems.length === 0,
    );
  });
}

Deno.test(
  "a cluster is run as its operator is told to",
  { permissions: PERMISSIONS },
  (t) =>
    sideBySide(t, [
      // The next release is made of the checkout.
      ...(PROGRAM === undefined
        ? [["two nodes of the earlier tables are upgraded one at a time", upgrade] as const]
        : []),
      ["a member is taken out, and a node takes over by force", removeAndTakeOver],
    ]),
);
