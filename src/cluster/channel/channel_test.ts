// Goal: members reach each other and nobody else does. Method: real channels on loopback, with
// certificates of an authority of their own.
import assert from "node:assert/strict";
import { FRAME_BYTES_MAX } from "../ports.ts";
import { freePort } from "../../../tests/free_port.ts";
import { TestAuthority, TestMember, until } from "./fakes.ts";
import { QUEUE_BYTES_MAX } from "./limits.ts";

const local = { permissions: { net: true, read: true, write: true, sys: true } } as const;
const authority = await TestAuthority.make();
/** Ticks that come soon, so that tests need not wait for what takes seconds. */
const QUICK = { tickMs: 20, retryMsMin: 5, retryMsMax: 40, renewMs: 20, listenMs: 20 };

function portsOf(...nodes: string[]): Record<string, number> {
  return Object.fromEntries(nodes.map((node) => [node, freePort()]));
}

Deno.test("MemberChannel carries frames both ways, in order", local, async () => {
  const ports = portsOf("node1", "node2");
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  await using two = await TestMember.start({ node: "node2", authority, ports, limits: QUICK });
  await one.connected("node2");
  await two.connected("node1");
  for (let i = 0; i < 100; i++) assert.ok(one.send("node2", `${i}`));
  assert.ok(two.send("node1", "back"));
  const large = new Uint8Array(FRAME_BYTES_MAX).fill(0x2e);
  assert.ok(one.channel.send("node2", large));
  await until("all frames came", () => two.frames.length === 101 && one.frames.length === 1);
  assert.deepEqual(one.frames, ["node2: back"]);
  assert.deepEqual(two.frames.slice(0, 100), Array.from({ length: 100 }, (_, i) => `node1: ${i}`));
  assert.equal(two.frames[100].length, "node1: ".length + FRAME_BYTES_MAX);
  assert.equal(one.channel.send("node2", new Uint8Array(FRAME_BYTES_MAX + 1)), false);
  assert.equal(one.send("node3", "to nobody"), false);
  const [figures] = one.channel.figures.peers;
  assert.deepEqual([figures.framesSent, figures.framesReceived, figures.framesDropped], [
    101,
    1,
    1,
  ]);
});

Deno.test("MemberChannel tells what a member says of itself, and says it anew", local, async () => {
  const ports = portsOf("node1", "node2");
  const greeting = { version: "0.8.0", clusterId: "c1", memberId: "m2", isWitness: true };
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  assert.equal(one.peer("node2").greeting, null);
  await using two = await TestMember.start({ node: "node2", authority, ports, greeting });
  await one.connected("node2");
  assert.deepEqual(one.peer("node2").greeting, greeting);
  two.channel.greet({ ...greeting, clusterId: "c2" });
  await until("it is heard", () => one.told.includes("node2 connected c2"));
  assert.deepEqual(one.peer("node2").greeting, { ...greeting, clusterId: "c2" });
  await two.connected("node1");
  two.send("node1", "after it");
  await until("the frame came", () => one.frames.length === 1);
});

Deno.test("MemberChannel finds a member again that was away", local, async () => {
  const ports = portsOf("node1", "node2");
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  await using two = await TestMember.start({ node: "node2", authority, ports, limits: QUICK });
  await one.connected("node2");
  await two.channel.stop();
  await until("it is missed", () => one.told.includes("node2 disconnected"));
  assert.equal(one.send("node2", "to nobody"), false);
  await until("it says why", () => one.peer("node2").fault?.startsWith("refuses") === true);
  await two.open();
  await one.connected("node2");
  assert.equal(one.peer("node2").fault, null);
});

Deno.test("MemberChannel tries on where its address is taken", local, async () => {
  const ports = portsOf("node1", "node2");
  const listener = Deno.listen({ hostname: "127.0.0.1", port: ports.node1 });
  await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
  assert.match(one.channel.problems[0], /^cluster.listen: 127.0.0.1:\d+ can't be listened on/);
  listener.close();
  await using two = await TestMember.start({ node: "node2", authority, ports, limits: QUICK });
  await two.connected("node1");
  assert.deepEqual(one.channel.problems, []);
});

Deno.test("MemberChannel.ask() gets an answer over a connection of its own", local, async (t) => {
  const ports = portsOf("node1", "node2", "node3");
  const waits = Promise.withResolvers<Uint8Array>();
  const onQuestion = async (from: string, question: Uint8Array) => {
    const text = new TextDecoder().decode(question);
    if (text === "wait") return await waits.promise;
    if (text === "fail") throw new Error("no answer");
    return new TextEncoder().encode(`${text}, ${from}`);
  };
  await using one = await TestMember.start({
    ...{ node: "node1", authority, ports },
    limits: { ...QUICK, answerMs: 300 },
  });
  await using _two = await TestMember.start({ node: "node2", authority, ports, onQuestion });
  const ask = async (to: string, text: string) =>
    new TextDecoder().decode(await one.channel.ask(to, new TextEncoder().encode(text)));
  await t.step("an answer", async () => assert.equal(await ask("node2", "hello"), "hello, node1"));
  await t.step("none", async () => {
    await assert.rejects(ask("node2", "fail"), { code: "unavailable", message: /^node2 / });
  });
  await t.step("a member that is not there", async () => {
    await assert.rejects(ask("node3", "hello"), { code: "unavailable", message: /^node3 refuses/ });
  });
  await t.step("none in time", async () => {
    await assert.rejects(ask("node2", "wait"), { message: "node2 does not answer in time" });
    waits.resolve(new Uint8Array());
  });
});

Deno.test(
  "MemberChannel shows a renewed certificate, and keeps one that is good",
  local,
  async (t) => {
    const ports = portsOf("node1", "node2");
    await using one = await TestMember.start({ node: "node1", authority, ports, limits: QUICK });
    await using two = await TestMember.start({ node: "node2", authority, ports, limits: QUICK });
    await one.connected("node2");
    const other = await TestAuthority.make();
    await t.step("a key that is not the certificate's is left", async () => {
      const { cert } = await authority.issue("node2");
      const { key } = await authority.issue("node2");
      await two.write(authority.cert, { cert, key });
      await until("it says so", () => two.channel.problems.length > 0);
      assert.match(two.channel.problems[0], /^cluster.key: .* is not the key of .*: name one pair/);
      assert.ok(one.peer("node2").isConnected);
    });
    await t.step("another CA holds from then on", async () => {
      await two.write(other.cert, await other.issue("node2"));
      await until("it is left", () => !one.peer("node2").isConnected);
      await until("it says why", () => /CA/.test(one.peer("node2").fault ?? ""));
      assert.deepEqual(two.channel.problems, []);
      await one.write(other.cert, await other.issue("node1"));
      await one.connected("node2");
      await two.connected("node1");
    });
    await t.step("two CAs in one file are both believed", async () => {
      const before = one.told.length;
      await one.write(other.cert + authority.cert, await other.issue("node1"));
      await two.write(other.cert + authority.cert, await authority.issue("node2"));
      await until(
        "both are connected anew",
        () => one.told.slice(before).includes("node2 connected "),
      );
      await one.connected("node2");
      await two.connected("node1");
    });
  },
);

Deno.test(
  "KeptIdentity tells of a certificate that ends, or is not valid yet",
  local,
  async (t) => {
    const ports = portsOf("node1");
    const dayMs = 86_400_000;
    const yearMs = 365.25 * dayMs;
    for (
      const [what, atMs, want] of [
        ["now", 0, /^$/],
        ["soon", 10 * yearMs - 10 * dayMs, / expires at .*svc cluster cert node1 --force$/],
        ["over", 10 * yearMs + 10 * dayMs, / expired at /],
        ["a clock that is behind", -yearMs, /is not valid before .*: set this node's clock$/],
      ] as const
    ) {
      await t.step(what, async () => {
        const nowMs = () => Date.now() + atMs;
        await using one = await TestMember.start({ node: "node1", authority, ports, nowMs });
        assert.match(one.channel.problems.join("\n"), want);
      });
    }
    await t.step("an authority that ends before it", async () => {
      const pair = await authority.issue("node1", Date.now() + 5 * yearMs);
      const nowMs = () => Date.now() + 10 * yearMs - 10 * dayMs;
      await using one = await TestMember.start({ node: "node1", authority, ports, nowMs, pair });
      assert.match(one.channel.problems.join("\n"), /^cluster\.ca: \S+ca\.crt expires at [^\n]*$/);
    });
  },
);

Deno.test(
  "MemberChannel drops frames for who does not read, and bounds what waits",
  local,
  async () => {
    const ports = portsOf("node1", "node2");
    const limits = { ...QUICK, tickMs: 60_000 };
    await using one = await TestMember.start({ node: "node1", authority, ports, limits });
    await using two = await TestMember.start({ node: "node2", authority, ports, limits });
    await one.connected("node2");
    const frame = new Uint8Array(FRAME_BYTES_MAX);
    let sent = 0;
    // One turn: nothing is written in it.
    while (one.channel.send("node2", frame)) sent++;
    assert.ok(sent >= 1 && sent * FRAME_BYTES_MAX <= QUEUE_BYTES_MAX, `${sent} frames`);
    assert.equal(one.channel.figures.peers[0].framesDropped, 1);
    await until("all that was taken comes", () => two.frames.length === sent);
    await until("there is room again", () => one.send("node2", "more"));
  },
);
